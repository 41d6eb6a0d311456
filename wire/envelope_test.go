package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

func encode(tb testing.TB, m holdfast.Message, s wire.Seal) []byte {
	tb.Helper()
	data, err := wire.Encode(nil, &m, s)
	if err != nil {
		tb.Fatalf("encode: %v", err)
	}
	return data
}

func decode(tb testing.TB, data []byte) wire.Envelope {
	tb.Helper()
	e, err := wire.Decode(data)
	if err != nil {
		tb.Fatalf("decode %s: %v", data, err)
	}
	return e
}

// traveled is what a receiver sees of m.
func traveled(m holdfast.Message) holdfast.Message {
	m.Destination = ""
	return m
}

func failure(tb testing.TB, err error) *holdfast.Failure {
	tb.Helper()
	f, ok := errors.AsType[*holdfast.Failure](err)
	if !ok {
		tb.Fatalf("got error %v, want a Failure", err)
	}
	return f
}

func TestEnvelopeHasTheFieldsOfTheSource(t *testing.T) {
	t.Parallel()
	m := sample()
	m.Payload = []byte(`{"a": 1}`)
	m.OrderingKey, m.Attempt.Forced = "order-42", true
	m.Headers = map[string]string{"traceparent": "00-1-2-01"}
	got := string(encode(t, m, wire.Seal{Now: noon.In(time.FixedZone("x", 3600))}))
	want := `{"messageId":"018f4b6e-7c1a-7b3c-9d5e-0123456789ab","correlationId":"order-42","sourceServiceId":"inventory-service",` +
		`"messageType":"Signal","endpoint":"OrderApproved","payload":{"a": 1},"headers":{` +
		`"rf-attempt":"2","rf-cycle":"1","rf-first-ago-ms":"2500","rf-force":"true","rf-ordering-key":"order-42",` +
		`"rf-retry-for-ms":"60000","rf-timestamp":"2026-02-14T12:00:00.000Z","rf-version":"2.0","traceparent":"00-1-2-01"}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got %s, want %s (-want +got):\n%s", got, want, diff)
	}
}

func TestMessageSurvivesTheWire(t *testing.T) {
	t.Parallel()
	change := map[string]func(m *holdfast.Message){
		"plain":                 func(*holdfast.Message) {},
		"every kind":            func(m *holdfast.Message) { m.Kind = holdfast.Response },
		"an id of its own":      func(m *holdfast.Message) { m.ID = `order/42?"\` },
		"quotes in an endpoint": func(m *holdfast.Message) { m.Endpoint = `a"b\c<d>&` },
		"no correlation":        func(m *holdfast.Message) { m.CorrelationID = "" },
		"text beyond ASCII":     func(m *holdfast.Message) { m.CorrelationID, m.OrderingKey = "größe\u2028", "ключ 🔑" },
		"headers": func(m *holdfast.Message) {
			m.Headers = map[string]string{"a": "", "größe": "ü\u2028<&>", "RX-1": `"\`, "r": "f", "rf": "not ours"}
		},
		"no attempt known":  func(m *holdfast.Message) { m.Attempt = holdfast.Attempt{RetryFor: -1} },
		"last attempt":      func(m *holdfast.Message) { m.Attempt.RetryFor = 0 },
		"forced":            func(m *holdfast.Message) { m.Attempt.Forced = true },
		"long ago":          func(m *holdfast.Message) { m.Attempt.FirstAgo = 20 * 365 * 24 * time.Hour },
		"payload of spaces": func(m *holdfast.Message) { m.Payload = []byte("{ \"a\" :\t[ 1 ,\r\n2 ] }") },
		"escapes": func(m *holdfast.Message) {
			m.Payload = []byte(`"\u0041\u00e9\/\ud83d\ude00 <script>&amp;` + "\u2028é" + `"`)
		},
		"lone surrogate":  func(m *holdfast.Message) { m.Payload = []byte(`"\ud800"`) },
		"big numbers":     func(m *holdfast.Message) { m.Payload = []byte(`[12345678901234567890.10,1E400,-0.0,1e-0]`) },
		"same name twice": func(m *holdfast.Message) { m.Payload = []byte(`{"a":1,"a":2,"messageId":"x"}`) },
		"null":            func(m *holdfast.Message) { m.Payload = []byte(`null`) },
		"a line feed":     func(m *holdfast.Message) { m.Payload = []byte("[\n\n1]") },
		"deep": func(m *holdfast.Message) {
			m.Payload = []byte(strings.Repeat("[", wire.MaxDepth-1) + strings.Repeat("]", wire.MaxDepth-1))
		},
	}
	for name, change := range change {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sample()
			change(&m)
			data := encode(t, m, wire.Seal{Now: noon})
			if !json.Valid(data) {
				t.Errorf("got %s, which is not JSON", data)
			}
			if diff := cmp.Diff(traveled(m), decode(t, data).Message); diff != "" {
				t.Errorf("the message changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsRoundedOrFilledOnTheWay(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change, want func(m *holdfast.Message)
	}{
		"spaces around the payload go": {
			func(m *holdfast.Message) { m.Payload = []byte(" \r\n\t{\"a\": 1} \n") },
			func(m *holdfast.Message) { m.Payload = []byte(`{"a": 1}`) },
		},
		"no payload is null": {
			func(m *holdfast.Message) { m.Payload = nil },
			func(m *holdfast.Message) { m.Payload = []byte("null") },
		},
		"ids get their canonical form": {
			func(m *holdfast.Message) { m.ID = "{018F4B6E-7C1A-7B3C-9D5E-0123456789AB}" },
			func(*holdfast.Message) {},
		},
		"no kind is Signal": {func(m *holdfast.Message) { m.Kind = "" }, func(*holdfast.Message) {}},
		"ages round up": {
			func(m *holdfast.Message) { m.Attempt.FirstAgo, m.Attempt.RetryFor = 1, time.Minute-1 },
			func(m *holdfast.Message) { m.Attempt.FirstAgo = time.Millisecond },
		},
		"an endless age stays in bounds": {
			func(m *holdfast.Message) { m.Attempt.RetryFor = 1<<63 - 1 },
			func(m *holdfast.Message) { m.Attempt.RetryFor = 100 * 365 * 24 * time.Hour },
		},
		"a message without attempt does not say when it ends": {
			func(m *holdfast.Message) { m.Attempt = holdfast.Attempt{} },
			func(m *holdfast.Message) { m.Attempt = holdfast.Attempt{RetryFor: -1} },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, want := sample(), sample()
			c.change(&m)
			c.want(&want)
			got := decode(t, encode(t, m, wire.Seal{Now: noon, Secret: secret(t, "k")})).Message
			if diff := cmp.Diff(traveled(want), got); diff != "" {
				t.Errorf("got another message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeParksWhatCannotTravel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(m *holdfast.Message)
		code   string
	}{
		"not JSON":            {func(m *holdfast.Message) { m.Payload = []byte("hello") }, wire.CodePayload},
		"two values":          {func(m *holdfast.Message) { m.Payload = []byte("1 2") }, wire.CodePayload},
		"only spaces":         {func(m *holdfast.Message) { m.Payload = []byte("  ") }, wire.CodePayload},
		"half a value":        {func(m *holdfast.Message) { m.Payload = []byte(`{"a":`) }, wire.CodePayload},
		"closes the envelope": {func(m *holdfast.Message) { m.Payload = []byte(`1},"x":{`) }, wire.CodePayload},
		"not UTF-8":           {func(m *holdfast.Message) { m.Payload = []byte("\"\xff\"") }, wire.CodePayload},
		"too deep": {func(m *holdfast.Message) {
			m.Payload = []byte(strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth))
		}, wire.CodePayload},
		"a header of ours":   {func(m *holdfast.Message) { m.Headers = map[string]string{"rf-force": "true"} }, wire.CodeReserved},
		"in another case":    {func(m *holdfast.Message) { m.Headers = map[string]string{"RF-Hmac": "x"} }, wire.CodeReserved},
		"no id":              {func(m *holdfast.Message) { m.ID = "" }, wire.CodeInvalid},
		"no source":          {func(m *holdfast.Message) { m.Source = "" }, wire.CodeInvalid},
		"a source of spaces": {func(m *holdfast.Message) { m.Source = "a b" }, wire.CodeInvalid},
		"an unknown kind":    {func(m *holdfast.Message) { m.Kind = "Shout" }, wire.CodeInvalid},
		"a broken header":    {func(m *holdfast.Message) { m.Headers = map[string]string{"a": "\xff"} }, wire.CodeInvalid},
		"a long header": {func(m *holdfast.Message) {
			m.Headers = map[string]string{"a": strings.Repeat("x", holdfast.MaxHeaderSize)}
		}, wire.CodeInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sample()
			c.change(&m)
			_, err := wire.Encode(nil, &m, wire.Seal{Now: noon})
			f := failure(t, err)
			if f.Outcome != holdfast.Permanent || f.Reason != holdfast.ReasonUndecodable || f.Code != c.code {
				t.Errorf("got %v, reason %q, code %q; want permanent, undecodable, %q", f.Outcome, f.Reason, f.Code, c.code)
			}
		})
	}
}

func TestLargestFieldsFitTheOverhead(t *testing.T) {
	t.Parallel()
	m := sample()
	wide := strings.Repeat("\u2028", 41) // as much as fits and escapes worst
	m.Source, m.Endpoint, m.ID = strings.Repeat(`"`, 128), strings.Repeat(`\`, 128), holdfast.ID(strings.Repeat(`"`, 128))
	m.CorrelationID, m.OrderingKey = wide, wide
	m.Payload = []byte("1")
	m.Headers = map[string]string{}
	for i := range 63 {
		m.Headers[fmt.Sprintf("header-%02d", i)] = ""
	}
	m.Headers["rest"] = strings.Repeat(`"`, holdfast.MaxHeaderSize-63*len("header-00")-len("rest"))
	data := encode(t, m, wire.Seal{Now: noon, Secret: secret(t, "k")})
	if got := len(data) - len(m.Payload); got > wire.Overhead {
		t.Errorf("got an envelope of %d bytes around the payload, want at most %d", got, wire.Overhead)
	}
	decode(t, data)
}

func TestPayloadSharesTheEnvelopesBytes(t *testing.T) {
	t.Parallel()
	data := encode(t, sample(), wire.Seal{Now: noon})
	before := bytes.Clone(data)
	p := decode(t, data).Message.Payload
	at := bytes.Index(data, p)
	if at < 0 || &data[at] != &p[0] {
		t.Error("got a copy of the payload, want a part of the input")
	}
	if cap(p) != len(p) {
		t.Errorf("got capacity %d over length %d: an append would write into the envelope", cap(p), len(p))
	}
	if !bytes.Equal(before, data) {
		t.Error("decoding changed its input")
	}
}

// Whatever skips the slow check must pass it unchanged.
func TestPlainMessagesAreValidMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,130}`), rapid.String())
		m := holdfast.Message{
			ID:     holdfast.ID(rapid.OneOf(rapid.StringMatching(`[0-9a-fA-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), text).Draw(rt, "id")),
			Source: text.Draw(rt, "source"), Endpoint: text.Draw(rt, "endpoint"),
			CorrelationID: text.Draw(rt, "correlation"), OrderingKey: text.Draw(rt, "key"),
			Kind:    holdfast.Kind(rapid.SampledFrom([]string{"", "Signal", "Response", "signal"}).Draw(rt, "kind")),
			Headers: rapid.MapOfN(text, text, 0, 3).Draw(rt, "headers"),
		}
		data, err := wire.Encode(nil, &m, wire.Seal{Now: noon})
		n := m
		n.Headers = maps.Clone(m.Headers)
		n.Destination = "somewhere"
		ms := []holdfast.Message{n}
		wantErr := holdfast.Normalize("", ms)
		for name := range m.Headers {
			if len(name) >= 3 && strings.EqualFold(name[:3], "rf-") {
				rt.Skip("refused for another reason")
			}
		}
		if m.ID == "" {
			rt.Skip("minted by Normalize, refused by Encode")
		}
		if (err == nil) != (wantErr == nil) {
			rt.Fatalf("got %v, Normalize says %v", err, wantErr)
		}
		if err == nil {
			if got := decode(t, data).Message.ID; got != ms[0].ID {
				rt.Fatalf("got id %q, want %q", got, ms[0].ID)
			}
		}
	})
}
