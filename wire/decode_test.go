package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

const minimal = `{"messageId":"m1","sourceServiceId":"s","endpoint":"e"}`

func TestForeignEnvelopesAreUnderstood(t *testing.T) {
	t.Parallel()
	base := holdfast.Message{
		ID: "m1", Source: "s", Endpoint: "e", Kind: holdfast.Signal, Payload: []byte("null"),
		Attempt: holdfast.Attempt{RetryFor: -1},
	}
	with := func(change func(m *holdfast.Message)) holdfast.Message {
		m := base
		change(&m)
		return m
	}
	cases := map[string]struct {
		in   string
		want holdfast.Message
	}{
		"as little as possible": {minimal, base},
		"nulls":                 {`{"messageId":"m1","sourceServiceId":"s","endpoint":"e","correlationId":null,"messageType":null,"payload":null,"headers":null}`, base},
		"unknown fields":        {`{"destination":{"messageId":"x"},"messageId":"m1","MessageId":"x","sourceServiceId":"s","endpoint":"e","extra":[1]}`, base},
		"pretty printed": {
			"\n{\n  \"messageId\" : \"m1\" ,\n  \"sourceServiceId\" : \"s\",\n \"endpoint\":\"e\", \"payload\" : \n { \"a\" : 1 } \n,\"headers\" : { } }\r\n",
			with(func(m *holdfast.Message) { m.Payload = []byte(`{ "a" : 1 }`) }),
		},
		"escaped names and values": {
			`{"message\u0049d":"m\u0031","sourceServiceId":"s","endpoint":"\/e","headers":{"\u0072f-force":"tru\u0065"}}`,
			with(func(m *holdfast.Message) { m.Endpoint, m.Attempt.Forced = "/e", true }),
		},
		"any form of a UUID": {
			strings.Replace(minimal, "m1", "URN:UUID:018F4B6E-7C1A-7B3C-9D5E-0123456789AB", 1),
			with(func(m *holdfast.Message) { m.ID = "018f4b6e-7c1a-7b3c-9d5e-0123456789ab" }),
		},
		"headers of a later version": {
			`{"messageId":"m1","sourceServiceId":"s","endpoint":"e","headers":{"rf-version":"2.7","rf-later":"x","mine":"y"}}`,
			with(func(m *holdfast.Message) { m.Headers = map[string]string{"mine": "y"} }),
		},
		"only the end of the tries": {
			`{"messageId":"m1","sourceServiceId":"s","endpoint":"e","headers":{"rf-retry-for-ms":"86400000"}}`,
			with(func(m *holdfast.Message) { m.Attempt.RetryFor = 24 * time.Hour }),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decode(t, []byte(c.in)).Message); diff != "" {
				t.Errorf("got another message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	headers := func(h string) string {
		return `{"messageId":"m1","sourceServiceId":"s","endpoint":"e","headers":{` + h + `}}`
	}
	many := func(n int, member string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(member, "#", strings.Repeat("x", i+1)))
		}
		return b.String()
	}
	cases := map[string]string{
		"nothing":                          ``,
		"no JSON":                          `hello`,
		"another value":                    `[` + minimal + `]`,
		"a second value":                   minimal + minimal,
		"rubbish behind":                   minimal + `x`,
		"cut off":                          minimal[:len(minimal)-1],
		"a byte order mark":                "\ufeff" + minimal,
		"not UTF-8":                        strings.Replace(minimal, "m1", "m\xff", 1),
		"not UTF-8 in the payload":         strings.Replace(minimal, "{", "{\"payload\":\"\xc0\xaf\",", 1),
		"too deep":                         strings.Replace(minimal, "{", `{"payload":`+strings.Repeat("[", wire.MaxDepth)+strings.Repeat("]", wire.MaxDepth)+`,`, 1),
		"too deep in what is skipped":      strings.Replace(minimal, "{", `{"x":`+strings.Repeat(`{"":`, wire.MaxDepth)+"1"+strings.Repeat("}", wire.MaxDepth)+`,`, 1),
		"an id twice":                      strings.Replace(minimal, "{", `{"messageId":"m2",`, 1),
		"an id twice by escape":            strings.Replace(minimal, "{", `{"message\u0049d":"m2",`, 1),
		"a payload twice":                  strings.Replace(minimal, "{", `{"payload":1,"payload":2,`, 1),
		"headers twice":                    strings.Replace(minimal, "{", `{"headers":{},"headers":{},`, 1),
		"an unknown name twice":            strings.Replace(minimal, "{", `{"x":1,"\u0078":2,`, 1),
		"too many unknown names":           strings.Replace(minimal, "{", `{`+many(200, `"#":1,`), 1),
		"no id":                            `{"sourceServiceId":"s","endpoint":"e"}`,
		"an empty id":                      strings.Replace(minimal, "m1", "", 1),
		"null for an id":                   strings.Replace(minimal, `"m1"`, "null", 1),
		"a number for an id":               strings.Replace(minimal, `"m1"`, "1", 1),
		"a space in an id":                 strings.Replace(minimal, "m1", "m 1", 1),
		"a long id":                        strings.Replace(minimal, "m1", strings.Repeat("m", 129), 1),
		"no source":                        `{"messageId":"m1","endpoint":"e"}`,
		"no endpoint":                      `{"messageId":"m1","sourceServiceId":"s"}`,
		"another case":                     strings.Replace(minimal, "endpoint", "Endpoint", 1),
		"an unknown kind":                  strings.Replace(minimal, "{", `{"messageType":"signal",`, 1),
		"a lone surrogate in a field":      strings.Replace(minimal, "{", `{"correlationId":"\ud800",`, 1),
		"a control in a field":             strings.Replace(minimal, "{", `{"correlationId":"a\u0000",`, 1),
		"headers as a list":                strings.Replace(minimal, "{", `{"headers":[],`, 1),
		"a number as a header":             headers(`"a":1`),
		"null as a header":                 headers(`"a":null`),
		"a header twice":                   headers(`"a":"1","a":"1"`),
		"a header twice by escape":         headers(`"a":"1","\u0061":"2"`),
		"a signature twice":                headers(`"rf-hmac":"1","rf-hmac":"1"`),
		"a header of ours twice":           headers(`"rf-force":"true","rf-force":"true"`),
		"a header of ours in capitals":     headers(`"RF-Force":"true"`),
		"a negative attempt":               headers(`"rf-attempt":"-1"`),
		"an attempt of rubbish":            headers(`"rf-attempt":"1x"`),
		"a padded attempt":                 headers(`"rf-attempt":"01"`),
		"a huge attempt":                   headers(`"rf-cycle":"99999999999999999999"`),
		"an age beyond reason":             headers(`"rf-first-ago-ms":"9999999999999"`),
		"maybe forced":                     headers(`"rf-force":"yes"`),
		"an empty ordering key as control": headers(`"rf-ordering-key":"\u0001"`),
		"too many headers":                 headers(strings.TrimSuffix(many(65, `"#":"",`), ",")),
		"far too many headers":             headers(strings.TrimSuffix(many(97, `"rf-#":"",`), ",")),
		"too large headers":                headers(`"a":"` + strings.Repeat("x", holdfast.MaxHeaderSize) + `"`),
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := wire.Decode([]byte(in))
			if err == nil {
				t.Fatalf("got %+v, want a refusal", e.Message)
			}
			f := failure(t, err)
			if f.Outcome != holdfast.Permanent || f.Code != wire.CodeEnvelope || f.Reason != holdfast.ReasonUndecodable {
				t.Errorf("got %v, code %q, reason %q; want permanent, %q, undecodable", f.Outcome, f.Code, f.Reason, wire.CodeEnvelope)
			}
		})
	}
}

func TestAnotherVersionIsAFaultOfTheLane(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"3.0", "1.0", "20", "2x", "x"} {
		e, err := wire.Decode([]byte(`{"messageId":"m1","sourceServiceId":"s","endpoint":"e","headers":{"rf-version":"` + v + `"}}`))
		if err == nil {
			t.Errorf("version %s: got no error, want a refusal", v)
			continue
		}
		if f := failure(t, err); f.Outcome != holdfast.LaneFault || f.Code != wire.CodeVersion || e.MessageID != "m1" {
			t.Errorf("version %s: got %v, code %q, id %q; want lane_fault, %q, m1", v, f.Outcome, f.Code, e.MessageID, wire.CodeVersion)
		}
	}
}

func TestARefusedEnvelopeStillNamesItsMessage(t *testing.T) {
	t.Parallel()
	e, err := wire.Decode([]byte(`{"messageId":"m1","sourceServiceId":"s","endpoint":"e","headers":{"rf-attempt":"x"}}`))
	if err == nil || e.MessageID != "m1" || e.Message.ID != "" {
		t.Errorf("got id %q, message id %q, error %v; want m1, none, an error", e.MessageID, e.Message.ID, err)
	}
}

// A payload's own names and values must not reach an operator's log.
func TestErrorsDoNotQuoteThePayload(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"messageId":"m1","payload":{"hidden-name":hidden-value}}`,
		`{"messageId":"m1","payload":{"hidden-name":"hidden`,
	} {
		_, err := wire.Decode([]byte(in))
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("got %v, want an error without the payload's text", err)
		}
	}
}

func TestADecoderForgetsTheEnvelopeBefore(t *testing.T) {
	t.Parallel()
	var d wire.Decoder
	full := encode(t, func() holdfast.Message {
		m := sample()
		m.Headers = map[string]string{"a": "b"}
		return m
	}(), wire.Seal{Now: noon, Secret: secret(t, "k")})
	first, err := d.Decode(full)
	if err != nil {
		t.Fatal(err)
	}
	kept := first.Message
	for _, in := range []string{`{"messageId":"x","unknown":1,`, minimal, `{"unknown":1,"unknown":2}`} {
		d.Decode([]byte(in)) //nolint:errcheck // what matters is the next one
	}
	second, err := d.Decode([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, []byte(minimal)).Message, second.Message); diff != "" {
		t.Errorf("got traces of earlier envelopes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(kept, decode(t, full).Message); diff != "" {
		t.Errorf("a later envelope changed an earlier one (-want +got):\n%s", diff)
	}
}
