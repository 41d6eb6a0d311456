package notificaties

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// maxAge is how long a token is good from its iat on, and maxToken how many bytes it may have.
const (
	maxAge   = time.Hour
	maxToken = 16 << 10
)

// token is a JWT whose signature has not been looked at.
type token struct {
	signed    string // what the signature is of
	signature []byte
	algorithm string
	client    any // claim client_id; nil: there is none
	times     map[string]any
}

func broken(why string) *Problem {
	return forbidden("jwt-decode-error", "Het JWT kan niet gelezen worden: "+why+".")
}

// parseToken reads a token.
func parseToken(text string) (t token, err error) {
	if len(text) > maxToken {
		return t, broken("het is te lang")
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return t, broken("het heeft geen drie delen")
	}
	var header struct {
		Algorithm string          `json:"alg"`
		Critical  json.RawMessage `json:"crit"`
	}
	claims := map[string]any{}
	for i, into := range []any{&header, &claims} {
		part, err := segment(parts[i])
		if err != nil {
			return t, err
		}
		dec := json.NewDecoder(bytes.NewReader(part))
		dec.UseNumber()
		if dec.Decode(into) != nil || dec.More() {
			return t, broken("een deel is geen JSON")
		}
	}
	if header.Critical != nil {
		return t, broken("het verlangt uitbreidingen")
	}
	t.signed, t.algorithm, t.client, t.times = parts[0]+"."+parts[1], header.Algorithm, claims["client_id"], claims
	t.signature, err = segment(parts[2])
	return t, err
}

func segment(text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, broken("een deel is geen base64url")
	}
	return b, nil
}

// verify checks a token with the secret of its client, in the order of the upstream.
func (t *token) verify(secret string, now time.Time, leeway time.Duration) error {
	if t.algorithm != "HS256" {
		return forbidden("jwt-invalidalgorithmerror", "Het JWT is niet met HS256 ondertekend.")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t.signed)) // a hash never fails
	if !hmac.Equal(mac.Sum(nil), t.signature) {
		return forbidden("invalid-jwt-signature", "De handtekening van het JWT klopt niet.")
	}
	if from, given, err := t.seconds("nbf"); err != nil {
		return err
	} else if given && from > unix(now.Add(leeway)) {
		return forbidden("jwt-immaturesignatureerror", "Het JWT is nog niet geldig.")
	}
	if until, given, err := t.seconds("exp"); err != nil {
		return err
	} else if given && until <= unix(now.Add(-leeway)) {
		return forbidden("jwt-expiredsignatureerror", "Het JWT is verlopen.")
	}
	return t.age(now, leeway)
}

// age refuses a token without iat, and one that is too old by it. One from the future is taken.
func (t *token) age(now time.Time, leeway time.Duration) error {
	claim, given := t.times["iat"]
	if !given || claim == nil {
		return forbidden("jwt-missing-iat-claim", "Het JWT heeft geen iat.")
	}
	n, ok := claim.(json.Number)
	iat, err := n.Int64()
	if !ok || err != nil {
		return forbidden("permission_denied", "De iat van het JWT is geen geheel getal.")
	}
	if now.Unix()-iat >= int64((maxAge+leeway)/time.Second) {
		return forbidden("jwt-expired", "Het JWT is ouder dan een uur.")
	}
	return nil
}

// seconds returns a claim that is an instant, if it is given.
func (t *token) seconds(name string) (at float64, given bool, err error) {
	claim := t.times[name]
	if claim == nil {
		return 0, false, nil
	}
	n, ok := claim.(json.Number)
	if ok {
		at, err = n.Float64()
	}
	if !ok || err != nil {
		return 0, false, broken("de " + name + " is geen getal")
	}
	return at, true, nil
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// sign returns a token of a client, for another API.
func sign(client, secret string, now time.Time) string {
	claims, _ := json.Marshal(map[string]any{ // cannot fail
		"iss": client, "client_id": client, "user_id": "", "user_representation": "", "iat": now.Unix(),
	})
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed)) // a hash never fails
	return signed + "." + encode(mac.Sum(nil))
}
