package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Names of our headers inside the envelope. The prefix "rf-" is ours: a message whose own headers
// use it is refused.
const (
	HeaderVersion     = "rf-version"
	HeaderTimestamp   = "rf-timestamp"    // RFC 3339, UTC, of this attempt
	HeaderHMAC        = "rf-hmac"         // the signature
	HeaderKey         = "rf-key"          // id of the secret that signed; v2 only
	HeaderAttempt     = "rf-attempt"      // Attempt.Number
	HeaderCycle       = "rf-cycle"        // Attempt.Cycle
	HeaderFirstAgo    = "rf-first-ago-ms" // Attempt.FirstAgo
	HeaderRetryFor    = "rf-retry-for-ms" // Attempt.RetryFor; absent: unknown
	HeaderForce       = "rf-force"        // "true": Attempt.Forced
	HeaderOrderingKey = "rf-ordering-key" // Message.OrderingKey
	HeaderTo          = "rf-to"           // the intended receiver; a receiver of another name refuses the message; v2 only
)

const (
	reservedPrefix = "rf-"
	timestampForm  = "2006-01-02T15:04:05.000Z"
	// maxAge limits the durations that a peer may state: about 100 years.
	maxAge = 100 * 365 * 24 * time.Hour
	// maxCount limits the attempt and cycle numbers that a peer may state.
	maxCount = math.MaxInt32
	// maxReserved is how many headers with our prefix, known or of a later version, an envelope may
	// have besides the message's own.
	maxReserved = 32
)

// Header is one header of an envelope.
type Header struct{ Name, Value string }

// knownHeader returns the constant for one of our names, so that decoding need not allocate it.
func knownHeader(name []byte) (string, bool) {
	switch string(name) {
	case HeaderVersion:
		return HeaderVersion, true
	case HeaderTimestamp:
		return HeaderTimestamp, true
	case HeaderHMAC:
		return HeaderHMAC, true
	case HeaderKey:
		return HeaderKey, true
	case HeaderAttempt:
		return HeaderAttempt, true
	case HeaderCycle:
		return HeaderCycle, true
	case HeaderFirstAgo:
		return HeaderFirstAgo, true
	case HeaderRetryFor:
		return HeaderRetryFor, true
	case HeaderForce:
		return HeaderForce, true
	case HeaderOrderingKey:
		return HeaderOrderingKey, true
	case HeaderTo:
		return HeaderTo, true
	}
	return "", false
}

// reserved reports whether a name has our prefix, in any case: HTTP libraries change the case.
func reserved(name string) bool {
	return len(name) >= len(reservedPrefix) && strings.EqualFold(name[:len(reservedPrefix)], reservedPrefix)
}

// headersOf lists the headers of one attempt, sorted, without the signature. Numbers and time share
// one string to save allocations.
func headersOf(m *holdfast.Message, s Seal) []Header {
	var room [128]byte
	text := s.Now.UTC().AppendFormat(room[:0], timestampForm)
	stamped := len(text)
	ours := [4]struct {
		name  string
		value int64
		send  bool
	}{
		{HeaderAttempt, int64(m.Attempt.Number), m.Attempt.Number > 0},
		{HeaderCycle, int64(m.Attempt.Cycle), m.Attempt.Cycle > 0},
		{HeaderFirstAgo, millis(m.Attempt.FirstAgo), m.Attempt.FirstAgo > 0},
		// A message that no dispatcher has numbered has no known end.
		{HeaderRetryFor, millis(m.Attempt.RetryFor), m.Attempt.RetryFor > 0 || m.Attempt.RetryFor == 0 && m.Attempt.Number > 0},
	}
	var ends [len(ours)]int
	for i, h := range ours {
		if h.send {
			text = strconv.AppendInt(text, h.value, 10)
		}
		ends[i] = len(text)
	}
	all := string(text)
	dst := append(make([]Header, 0, 10+len(m.Headers)), Header{HeaderVersion, Version}, Header{HeaderTimestamp, all[:stamped]})
	start := stamped
	for i, h := range ours {
		if h.send {
			dst = append(dst, Header{h.name, all[start:ends[i]]})
		}
		start = ends[i]
	}
	if m.Attempt.Forced {
		dst = append(dst, Header{HeaderForce, "true"})
	}
	if m.OrderingKey != "" {
		dst = append(dst, Header{HeaderOrderingKey, m.OrderingKey})
	}
	if s.Secret != nil && !s.V1 {
		dst = append(dst, Header{HeaderKey, s.Secret.ID()})
		if s.To != "" {
			dst = append(dst, Header{HeaderTo, s.To})
		}
	}
	for name, value := range m.Headers {
		dst = append(dst, Header{name, value})
	}
	sortHeaders(dst)
	return dst
}

func sortHeaders(h []Header) {
	slices.SortFunc(h, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
}

// millis rounds up: either duration makes the receiver remember an id longer.
func millis(d time.Duration) int64 {
	return int64((min(d, maxAge) + time.Millisecond - 1) / time.Millisecond)
}

// take stores one header: in e, in its message, or in the message's own headers.
func (e *Envelope) take(h Header) (err error) {
	m := &e.Message
	switch h.Name {
	case HeaderVersion:
		e.Version = h.Value
	case HeaderTimestamp:
		e.Timestamp = h.Value
	case HeaderHMAC:
		e.Signature = h.Value
	case HeaderKey:
		e.KeyID = h.Value
	case HeaderAttempt:
		m.Attempt.Number, err = count(h)
	case HeaderCycle:
		m.Attempt.Cycle, err = count(h)
	case HeaderFirstAgo:
		m.Attempt.FirstAgo, err = age(h)
	case HeaderRetryFor:
		m.Attempt.RetryFor, err = age(h)
	case HeaderForce:
		if h.Value != "true" && h.Value != "false" {
			err = headerFault(h, `must be "true" or "false"`)
		}
		m.Attempt.Forced = h.Value == "true"
	case HeaderOrderingKey:
		m.OrderingKey = h.Value
	case HeaderTo:
		e.To = h.Value
	default:
		if strings.HasPrefix(h.Name, reservedPrefix) {
			return nil // of a later version: signed, but ignored
		}
		if reserved(h.Name) {
			return headerFault(h, "names that start with rf- are lower-case")
		}
		if m.Headers == nil {
			m.Headers = make(map[string]string)
		}
		m.Headers[h.Name] = h.Value
	}
	return err
}

func count(h Header) (int, error) {
	n, ok := digits(h.Value, maxCount)
	if !ok {
		return 0, headerFault(h, fmt.Sprintf("must be a number from 0 to %d", maxCount))
	}
	return int(n), nil
}

func age(h Header) (time.Duration, error) {
	n, ok := digits(h.Value, int64(maxAge/time.Millisecond))
	if !ok {
		return 0, headerFault(h, "must be milliseconds, at most 100 years of them")
	}
	return time.Duration(n) * time.Millisecond, nil
}

// digits reads a decimal number: no sign, no spaces, no leading zero.
func digits[T string | []byte](s T, most int64) (int64, bool) {
	if len(s) == 0 || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, n <= most
}

func headerFault(h Header, problem string) error {
	return &holdfast.FieldError{Field: "headers." + clip(h.Name), Value: clip(h.Value), Problem: problem}
}

// clip shortens a hostile value for an error text.
func clip(s string) string { return shown.Clip(s, 80) }
