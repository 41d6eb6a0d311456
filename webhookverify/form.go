package webhookverify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/wire"
)

// Form is how a sender signs.
type Form string

// The forms.
const (
	// StandardWebhooks is that of https://www.standardwebhooks.com, and of Holdfast's webhooks. A secret
	// is shared (whsec_…) or the public half of a key pair (whpk_…).
	StandardWebhooks Form = "standard"
	// Holdfast is version 2 of the wire protocol between nodes. A secret is base64. The body is an
	// envelope, and the sender wants an envelope's reply: package transport has a server for both.
	Holdfast Form = "holdfast"
	// GitHub signs the body in X-Hub-Signature-256: no time, and no id.
	GitHub Form = "github"
	// Stripe signs time and body in Stripe-Signature. A secret is used as it stands, whsec_ included.
	Stripe Form = "stripe"
	// Slack signs time and body in X-Slack-Signature.
	Slack Form = "slack"
)

// check verifies one request.
type check func(h http.Header, body []byte, now time.Time, tolerance time.Duration) (Delivery, error)

// checkWith returns the check of a form for secrets.
func (f Form) checkWith(secrets []string) (check, error) {
	for i, s := range secrets {
		if s == "" {
			return nil, fmt.Errorf("secrets[%d] is empty", i)
		}
	}
	switch f {
	case StandardWebhooks:
		return standard(secrets)
	case Holdfast:
		return ownWire(secrets)
	case GitHub:
		return github(keys(secrets)), nil
	case Stripe:
		return stripe(keys(secrets)), nil
	case Slack:
		return slack(keys(secrets)), nil
	}
	return nil, fmt.Errorf("form %q is not one of %s, %s, %s, %s, %s", string(f), StandardWebhooks, Holdfast, GitHub, Stripe, Slack)
}

func standard(secrets []string) (check, error) {
	verifiers := make([]standardwebhooks.Verifier, len(secrets))
	for i, s := range secrets {
		var err error
		if verifiers[i], err = standardwebhooks.NewVerifier(s); err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, err)
		}
	}
	return func(h http.Header, body []byte, now time.Time, tolerance time.Duration) (Delivery, error) {
		id, err := standardwebhooks.Verify(h, body, now, tolerance, verifiers...)
		return Delivery{ID: id}, err
	}, nil
}

func ownWire(secrets []string) (check, error) {
	all := make([]*wire.Secret, len(secrets))
	for i, s := range secrets {
		var err error
		if all[i], err = wire.ParseSecret(s); err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, err)
		}
	}
	return func(_ http.Header, body []byte, now time.Time, _ time.Duration) (Delivery, error) {
		e, err := wire.Decode(body)
		if err == nil {
			err = e.Verify(wire.Check{Secrets: all, Now: now})
		}
		return Delivery{ID: e.MessageID, Source: e.Message.Source}, err
	}, nil
}

func keys(secrets []string) [][]byte {
	all := make([][]byte, len(secrets))
	for i, s := range secrets {
		all[i] = []byte(s)
	}
	return all
}

var (
	errHeader = errors.New("a header of the signature is missing, malformed, or there twice")
	errTime   = errors.New("the time of the request is outside the tolerance")
	errForged = errors.New("no signature matches")
)

func github(keys [][]byte) check {
	return func(h http.Header, body []byte, _ time.Time, _ time.Duration) (Delivery, error) {
		text, ok := strings.CutPrefix(single(h, "X-Hub-Signature-256"), "sha256=")
		if !ok {
			return Delivery{}, errHeader
		}
		return Delivery{ID: single(h, "X-GitHub-Delivery")}, signedBy(keys, []string{text}, body)
	}
}

// mostSignatures bounds the work that one header can cause.
const mostSignatures = 16

func stripe(keys [][]byte) check {
	return func(h http.Header, body []byte, now time.Time, tolerance time.Duration) (Delivery, error) {
		at, signatures := "", []string(nil)
		for part := range strings.SplitSeq(single(h, "Stripe-Signature"), ",") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); {
			case name == "t" && at != "":
				return Delivery{}, errHeader // of two times, another reader could believe the other one
			case name == "t":
				at = value
			case name == "v1" && len(signatures) < mostSignatures:
				signatures = append(signatures, value)
			}
		}
		if err := fresh(at, now, tolerance); err != nil {
			return Delivery{}, err
		}
		err := signedBy(keys, signatures, []byte(at+"."), body)
		return Delivery{ID: member(body, "id", err)}, err
	}
}

func slack(keys [][]byte) check {
	return func(h http.Header, body []byte, now time.Time, tolerance time.Duration) (Delivery, error) {
		at := single(h, "X-Slack-Request-Timestamp")
		text, ok := strings.CutPrefix(single(h, "X-Slack-Signature"), "v0=")
		if !ok {
			return Delivery{}, errHeader
		}
		if err := fresh(at, now, tolerance); err != nil {
			return Delivery{}, err
		}
		err := signedBy(keys, []string{text}, []byte("v0:"+at+":"), body)
		return Delivery{ID: member(body, "event_id", err)}, err
	}
}

// fresh checks a time in seconds.
func fresh(at string, now time.Time, tolerance time.Duration) error {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return errHeader
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > tolerance || off < -tolerance {
		return errTime
	}
	return nil
}

// signedBy looks for a hexadecimal HMAC-SHA256 of the content by one of the keys, in constant time.
func signedBy(keys [][]byte, signatures []string, content ...[]byte) error {
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		for _, part := range content {
			mac.Write(part) // a hash never fails
		}
		want := mac.Sum(nil)
		for _, text := range signatures {
			if got, err := hex.DecodeString(text); err == nil && hmac.Equal(got, want) {
				return nil
			}
		}
	}
	return errForged
}

// single returns the value of a header that must occur once.
func single(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// member returns a text of a JSON object, or nothing. What is not verified is not read.
func member(body []byte, name string, fault error) (text string) {
	var all map[string]json.RawMessage
	if fault != nil || json.Unmarshal(body, &all) != nil || json.Unmarshal(all[name], &text) != nil {
		return ""
	}
	return text
}
