package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/wire"
)

func TestSignedEnvelopesVerify(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		seal  wire.Seal
		check wire.Check
		ok    bool
	}{
		"v2":                      {wire.Seal{Secret: secret(t, "a")}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, true},
		"v2 where v1 may be":      {wire.Seal{Secret: secret(t, "a")}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}, V1: true}, true},
		"v2, new of two secrets":  {wire.Seal{Secret: secret(t, "b")}, wire.Check{Secrets: []*wire.Secret{secret(t, "a"), secret(t, "b")}}, true},
		"v2, the other secret":    {wire.Seal{Secret: secret(t, "b")}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, false},
		"v2, no secret":           {wire.Seal{Secret: secret(t, "a")}, wire.Check{}, false},
		"v2 for another path":     {wire.Seal{Secret: secret(t, "a"), Path: "/other"}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, false},
		"v2 on that path":         {wire.Seal{Secret: secret(t, "a"), Path: "/other"}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}, Path: "/other"}, true},
		"v1 where it may be":      {wire.Seal{Secret: secret(t, "a"), V1: true}, wire.Check{Secrets: []*wire.Secret{secret(t, "b"), secret(t, "a")}, V1: true}, true},
		"v1 where it may not be":  {wire.Seal{Secret: secret(t, "a"), V1: true}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, false},
		"v1, the other secret":    {wire.Seal{Secret: secret(t, "b"), V1: true}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}, V1: true}, false},
		"unsigned":                {wire.Seal{}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}, V1: true}, false},
		"v2, a clock 5 min ahead": {wire.Seal{Secret: secret(t, "a"), Now: noon.Add(wire.Tolerance)}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, true},
		"v2, a clock 5 min late":  {wire.Seal{Secret: secret(t, "a"), Now: noon.Add(-wire.Tolerance)}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, true},
		"v2 of the future":        {wire.Seal{Secret: secret(t, "a"), Now: noon.Add(wire.Tolerance + time.Millisecond)}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, false},
		"v2 replayed":             {wire.Seal{Secret: secret(t, "a"), Now: noon.Add(-wire.Tolerance - time.Millisecond)}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}}, false},
		"v1 does not know time":   {wire.Seal{Secret: secret(t, "a"), V1: true, Now: noon.AddDate(-1, 0, 0)}, wire.Check{Secrets: []*wire.Secret{secret(t, "a")}, V1: true}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.seal.Now.IsZero() {
				c.seal.Now = noon
			}
			c.check.Now = noon
			e := decode(t, encode(t, sample(), c.seal))
			err := e.Verify(c.check)
			if got := err == nil; got != c.ok {
				t.Errorf("got %v, want accepted: %v", err, c.ok)
			}
			if err != nil && !errors.Is(err, wire.ErrSignature) {
				t.Errorf("got %v, want an error that wraps ErrSignature", err)
			}
		})
	}
}

func TestNothingInASignedEnvelopeCanBeAltered(t *testing.T) {
	t.Parallel()
	m := sample()
	m.Payload, m.OrderingKey, m.Attempt.Forced = []byte(`{"amount":1}`), "k", true
	m.Headers = map[string]string{"traceparent": "t"}
	key := secret(t, "a")
	signed := string(encode(t, m, wire.Seal{Secret: key, Now: noon}))
	change := map[string][2]string{
		"id":               {`"messageId":"018f`, `"messageId":"028f`},
		"id's letter case": {`"messageId":"018f`, `"messageId":"018F`},
		"correlation":      {`"order-42"`, `"order-43"`},
		"no correlation":   {`"order-42"`, `null`},
		"source":           {`"inventory-service"`, `"inventory-servicf"`},
		"kind":             {`"Signal"`, `"Command"`},
		"endpoint":         {`"OrderApproved"`, `"OrderRefused"`},
		"payload":          {`"amount":1`, `"amount":2`},
		"payload's spaces": {`"amount":1`, `"amount": 1`},
		"attempt":          {`"rf-attempt":"2"`, `"rf-attempt":"1"`},
		"no cycle":         {`"rf-cycle":"1",`, ``},
		"age":              {`"rf-first-ago-ms":"2500"`, `"rf-first-ago-ms":"0"`},
		"end of tries":     {`"rf-retry-for-ms":"60000"`, `"rf-retry-for-ms":"0"`},
		"force":            {`"rf-force":"true"`, `"rf-force":"false"`},
		"ordering key":     {`"rf-ordering-key":"k"`, `"rf-ordering-key":"l"`},
		"time":             {`12:00:00.000Z`, `12:00:01.000Z`},
		"version":          {`"rf-version":"2.0"`, `"rf-version":"2.1"`},
		"user header":      {`"traceparent":"t"`, `"traceparent":"u"`},
		"header's name":    {`"traceparent"`, `"traceparenT"`},
		"one header more":  {`"headers":{`, `"headers":{"a":"b",`},
		"a later header":   {`"headers":{`, `"headers":{"rf-later":"b",`},
		"moved boundary":   {`"inventory-service","messageType":"Signal","endpoint":"OrderApproved"`, `"inventory-serviceO","messageType":"Signal","endpoint":"rderApproved"`},
		"key id":           {`"rf-key":"` + key.ID(), `"rf-key":"0` + key.ID()[1:]},
		"key id gone":      {`"rf-key":"` + key.ID() + `",`, ``},
		"v2 as v1":         {`"v2=`, `"`},
		"v2 in capitals":   {`"v2=`, `"V2=`},
	}
	for name, c := range change {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(signed, c[0]) != 1 {
				t.Fatalf("%s does not stand once in %s", c[0], signed)
			}
			e, err := wire.Decode([]byte(strings.Replace(signed, c[0], c[1], 1)))
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Verify(wire.Check{Secrets: []*wire.Secret{key}, V1: true, Now: noon}); !errors.Is(err, wire.ErrSignature) {
				t.Errorf("got %v, want a refused signature", err)
			}
		})
	}
}

// What may change on the way without meaning anything.
func TestTheOrderOfFieldsIsNotSigned(t *testing.T) {
	t.Parallel()
	key := secret(t, "a")
	m := sample()
	m.Payload = []byte("1")
	e := decode(t, encode(t, m, wire.Seal{Secret: key, Now: noon}))
	other := fmt.Sprintf(`{"headers":{"rf-hmac":%q,"rf-version":"2.0","rf-timestamp":%q,"rf-retry-for-ms":"60000","rf-key":%q,"rf-first-ago-ms":"2500",`+
		`"rf-cycle":"1","rf-attempt":"\u0032"}, "unknown":1,"endpoint":"OrderApproved","payload": 1 ,"messageType":"Signal",`+
		`"sourceServiceId":"inventory-service","correlationId":"order-42","messageId":"018f4b6e-7c1a-7b3c-9d5e-0123456789ab"}`,
		e.Signature, e.Timestamp, e.KeyID)
	again := decode(t, []byte(other))
	if err := again.Verify(wire.Check{Secrets: []*wire.Secret{key}, Now: noon}); err != nil {
		t.Errorf("got %v, want it accepted", err)
	}
}

func TestV1VouchesForNoForce(t *testing.T) {
	t.Parallel()
	key := secret(t, "a")
	m := sample()
	m.Attempt.Forced = true
	e := decode(t, encode(t, m, wire.Seal{Secret: key, V1: true, Now: noon}))
	if err := e.Verify(wire.Check{Secrets: []*wire.Secret{key}, V1: true, Now: noon}); err != nil {
		t.Fatal(err)
	}
	if e.Message.Attempt.Forced {
		t.Error("got a forced message on an unsigned header")
	}
}

func TestMalformedSignaturesAreRefused(t *testing.T) {
	t.Parallel()
	key := secret(t, "a")
	good := decode(t, encode(t, sample(), wire.Seal{Secret: key, Now: noon}))
	for _, sig := range []string{
		"v2=", "v2=" + strings.Repeat("!", 44), "v2=" + strings.Repeat("A", 43), "v2=" + strings.Repeat("A", 45),
		good.Signature + " ", " " + good.Signature, "v3=" + good.Signature[3:], "v1=" + good.Signature[3:],
		good.Signature[:46] + "\n", strings.Repeat("A", 44), "=", "v2=" + strings.Repeat("A", 40) + "A===",
	} {
		e := good
		e.Signature = sig
		if err := e.Verify(wire.Check{Secrets: []*wire.Secret{key}, V1: true, Now: noon}); !errors.Is(err, wire.ErrSignature) {
			t.Errorf("%q: got %v, want a refused signature", sig, err)
		}
	}
	good.Timestamp = "yesterday"
	if err := good.Verify(wire.Check{Secrets: []*wire.Secret{key}, Now: noon}); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("an unreadable time: got %v, want a refusal", err)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	s := secret(t, "s")
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		if got := fmt.Sprintf(form, s); strings.Contains(got, "ssss") || strings.Contains(got, "115 115") {
			t.Errorf("%s prints %s", form, got)
		}
	}
	if _, err := wire.ParseSecret("not base64!"); err == nil || strings.Contains(err.Error(), "not base64!") {
		t.Errorf("got %v, want an error that does not repeat the text", err)
	}
	if _, err := wire.ParseSecret("c2hvcnQ="); err == nil {
		t.Error("got a secret of 5 bytes, want an error")
	}
	a, err := wire.ParseSecret(" c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=\n")
	if err != nil || a.ID() != s.ID() || len(a.ID()) != 8 {
		t.Errorf("got id %v, %v; want %s", a, err, s.ID())
	}
}

func TestSecretsAreUsedConcurrently(t *testing.T) {
	t.Parallel()
	key, m := secret(t, "a"), sample()
	done := make(chan error)
	for range 8 {
		go func() {
			for range 50 {
				data, err := wire.Encode(nil, &m, wire.Seal{Secret: key, Now: noon})
				if err == nil {
					var e wire.Envelope
					if e, err = wire.Decode(data); err == nil {
						err = e.Verify(wire.Check{Secrets: []*wire.Secret{key}, Now: noon})
					}
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
