package people

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238: what authenticator programs have; HMAC needs no collision resistance
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	step      = 30 * time.Second
	digits    = 1_000_000
	secretLen = 20 // bytes: the length of the hash (RFC 4226)
	codes     = 10 // recovery codes of a person
	codeLen   = 10 // bytes of each: nobody guesses one, so a fast hash will do
)

// NewTOTP makes the secret of a second factor.
func NewTOTP() []byte {
	secret := make([]byte, secretLen)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// TOTPText returns a secret as authenticator programs take it.
func TOTPText(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// TOTPAddress returns the otpauth URL of a secret, for a QR code.
func TOTPAddress(secret []byte, node, person string) string {
	u := url.URL{
		Scheme: "otpauth", Host: "totp", Path: "/" + node + ":" + person,
		RawQuery: "secret=" + TOTPText(secret) + "&issuer=" + url.QueryEscape(node),
	}
	return u.String()
}

// TakeTOTP returns the step of a code, if it is the code of now, or of the step before or after, and later than
// the last step that was taken: a code is taken once (RFC 6238, section 5.2).
func TakeTOTP(secret []byte, code string, now time.Time, last int64) (taken int64, ok bool) {
	code = strings.ReplaceAll(code, " ", "")
	at := now.Unix() / int64(step/time.Second)
	for s := at - 1; s <= at+1; s++ {
		if s > last && subtle.ConstantTimeCompare([]byte(totp(secret, s)), []byte(code)) == 1 {
			return s, true
		}
	}
	return last, false
}

// totp is the code of a step, of six digits.
func totp(secret []byte, s int64) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, s)
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	n := binary.BigEndian.Uint32(sum[at:]) &^ (1 << 31)
	return fmt.Sprintf("%06d", n%digits)
}

// NewCodes makes recovery codes, and what a store keeps of them.
func NewCodes() (list []string, kept string) {
	var hashes []string
	for range codes {
		b := make([]byte, codeLen)
		_, _ = rand.Read(b) // never fails
		text := base32.StdEncoding.EncodeToString(b)
		list = append(list, strings.ToLower(text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:]))
		hashes = append(hashes, hashCode(text))
	}
	return list, strings.Join(hashes, " ")
}

// TakeCode returns what is kept once a recovery code is used, if it is one. A code is taken once. After the
// last one, something that no code fits is left: the person still needs the second factor.
func TakeCode(kept, code string) (left string, ok bool) {
	want := hashCode(code)
	var rest []string
	for h := range strings.FieldsSeq(kept) {
		if subtle.ConstantTimeCompare([]byte(h), []byte(want)) == 1 {
			ok = true
			continue
		}
		rest = append(rest, h)
	}
	if len(rest) == 0 {
		rest = []string{"-"}
	}
	return strings.Join(rest, " "), ok
}

// CodesLeft returns how many recovery codes are kept.
func CodesLeft(kept string) int {
	if kept == "-" {
		return 0
	}
	return len(strings.Fields(kept))
}

func hashCode(code string) string {
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	sum := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(sum[:])
}
