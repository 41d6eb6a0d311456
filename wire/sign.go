package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tolerance is how far rf-timestamp may differ from the verifier's clock, in either direction.
const Tolerance = 5 * time.Minute

const (
	v2Prefix = "v2=" // cannot start 32 bytes of base64, so v1 and v2 never mix
	v2Domain = "holdfast-hmac-v2"
	macText  = 44 // 32 bytes in base64
)

// ErrSignature is wrapped by every error of Verify.
var ErrSignature = errors.New("signature refused")

// SignatureError says why a signature was refused. It is for the verifier's own log; the caller
// must not learn it.
type SignatureError struct{ Problem string }

func (e *SignatureError) Error() string { return ErrSignature.Error() + ": " + e.Problem }

// Unwrap returns ErrSignature.
func (e *SignatureError) Unwrap() error { return ErrSignature }

// Check says what Verify accepts.
type Check struct {
	Secrets []*Secret // valid secrets of the envelope's source; several while they are rotated
	V1      bool      // also accept the form of OI-09, which covers neither time nor headers
	Path    string    // zero: ReceivePath
	Now     time.Time // the verifier's clock
	// Names are the names of the verifier. A v2 signature for another receiver is refused, since
	// two receivers may share a secret. Empty: any name is accepted.
	Names []string
}

// Verify checks the signature in constant time. A v1 signature covers no header, so Verify then
// clears Attempt.Forced. The error wraps ErrSignature.
func (e *Envelope) Verify(c Check) error {
	text, isV2 := strings.CutPrefix(e.Signature, v2Prefix)
	switch {
	case e.Signature == "":
		return refuse("there is none")
	case !isV2 && !c.V1:
		return refuse("v1 is not accepted from this source")
	case len(text) != macText:
		return refuse("malformed")
	}
	var room [macText]byte
	got := room[:copy(room[:], text)]
	n, err := base64.StdEncoding.Strict().Decode(got, got)
	if err != nil || n != sha256.Size {
		return refuse("malformed")
	}
	if isV2 {
		return e.verifyV2(got[:n], c)
	}
	for _, s := range c.Secrets {
		if s.matches(got[:n], func(in []byte) []byte { return e.appendV1(in) }) {
			e.Message.Attempt.Forced = false
			return nil
		}
	}
	return refuse("no secret of this source made it")
}

func (e *Envelope) verifyV2(got []byte, c Check) error {
	known, ok := false, false
	for _, s := range c.Secrets {
		if s.id == e.KeyID {
			known = true
			ok = ok || s.matches(got, func(in []byte) []byte { return e.appendV2(in, c.Path) })
		}
	}
	switch {
	case !known:
		return refuse("no secret of this source has key id " + clip(e.KeyID))
	case !ok:
		return refuse("the secret did not make it")
	case e.To != "" && len(c.Names) > 0 && !slices.Contains(c.Names, e.To):
		return refuse("it is meant for " + clip(e.To) + ", and this is " + strings.Join(c.Names, ", "))
	}
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	if err != nil {
		return refuse("rf-timestamp is not RFC 3339")
	}
	if off := c.Now.Sub(at); off > Tolerance || off < -Tolerance {
		return refuse(fmt.Sprintf("rf-timestamp is %s off this clock; %s are allowed", off.Round(time.Second), Tolerance))
	}
	return nil
}

func refuse(problem string) error { return &SignatureError{problem} }

func (s *Secret) matches(got []byte, input func([]byte) []byte) bool {
	m := s.macs.Get().(*mac) // the pool holds only *mac
	defer s.macs.Put(m)
	m.in = input(m.in[:0])
	return hmac.Equal(got, m.compute())
}

func (e *Envelope) sign(s Seal) {
	m := s.Secret.macs.Get().(*mac) // the pool holds only *mac
	defer s.Secret.macs.Put(m)
	var room [len(v2Prefix) + macText]byte
	text := room[:0]
	if s.V1 {
		m.in = e.appendV1(m.in[:0])
	} else {
		m.in = e.appendV2(m.in[:0], s.Path)
		text = append(text, v2Prefix...)
		e.KeyID = s.Secret.id
	}
	e.Signature = string(base64.StdEncoding.AppendEncode(text, m.compute()))
}

// SigningInput returns the bytes that a signature of e covers, for finding the difference between
// two programs.
func (e *Envelope) SigningInput(v1 bool, path string) []byte {
	if v1 {
		return e.appendV1(nil)
	}
	return e.appendV2(nil, path)
}

// appendV1 appends the input of OI-09, a bare concatenation: messageId + sourceServiceId + endpoint
// + lower-case hex SHA-256 of payload.
func (e *Envelope) appendV1(in []byte) []byte {
	in = append(in, e.MessageID...)
	in = append(in, e.Message.Source...)
	in = append(in, e.Message.Endpoint...)
	sum := sha256.Sum256(e.Message.Payload)
	return hex.AppendEncode(in, sum[:])
}

// appendV2 appends our input. Each field comes after its length in 8 bytes, big-endian, so that no
// boundary can move. Then come the number of headers and, sorted by name, each name and value.
func (e *Envelope) appendV2(in []byte, path string) []byte {
	if path == "" {
		path = ReceivePath
	}
	m := &e.Message
	sum := sha256.Sum256(m.Payload)
	in = appendField(in, v2Domain)
	in = appendField(in, Method)
	in = appendField(in, path)
	in = appendField(in, e.MessageID)
	in = appendField(in, m.CorrelationID)
	in = appendField(in, m.Source)
	in = appendField(in, e.kind)
	in = appendField(in, m.Endpoint)
	in = appendField(in, sum[:])
	in = binary.BigEndian.AppendUint64(in, uint64(len(e.headers)))
	for _, h := range e.headers {
		in = appendField(in, h.Name)
		in = appendField(in, h.Value)
	}
	return in
}

func appendField[T string | []byte](in []byte, field T) []byte {
	in = binary.BigEndian.AppendUint64(in, uint64(len(field)))
	return append(in, field...)
}
