package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

func FuzzDecode(f *testing.F) {
	for _, a := range makeVectors(f).Accept {
		f.Add([]byte(a.Envelope))
	}
	for _, in := range []string{
		minimal, `{}`, `{"messageId":"m","messageId":"n"}`, `{"message\u0049d":"m1","sourceServiceId":"s","endpoint":"e","x":[{"x":null}]}`,
		`{"messageId":"m1","sourceServiceId":"s","endpoint":"e","payload": [1.0 , "\ud800"] ,"headers":{"a":"\u0062","rf-attempt":"0"}}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		e, err := wire.Decode(data)
		if !bytes.Equal(before, data) {
			t.Fatal("decoding changed its input")
		}
		if err != nil {
			if _, ok := errors.AsType[*holdfast.Failure](err); !ok {
				t.Fatalf("got %v, want a Failure", err)
			}
			return
		}
		if p := e.Message.Payload; !bytes.Contains(data, p) && string(p) != "null" {
			t.Fatalf("got payload %q, which is no part of the input", p)
		}
		again, err := wire.Encode(nil, &e.Message, wire.Seal{Now: noon})
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		second, err := wire.Decode(again)
		if err != nil {
			t.Fatalf("decode %s: %v", again, err)
		}
		if diff := cmp.Diff(e.Message, second.Message); diff != "" {
			t.Fatalf("the message changed (-first +second):\n%s", diff)
		}
	})
}

func FuzzBatch(f *testing.F) {
	f.Add([]byte(makeVectors(f).Batch.Body))
	for _, in := range []string{"", "0\n\n", "2\n{}\n0\n\n", "1\n\n\n", "00\n\n", "-1\n\n", "9999999999\n{}\n", "3\n{}\n"} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, batch []byte) {
		const limit = 16
		frames, err := wire.Frames(batch, limit)
		if err != nil {
			return
		}
		var again []byte
		for _, frame := range frames {
			again = wire.AppendFrame(again, frame)
		}
		if !bytes.Equal(batch, again) || len(frames) > limit {
			t.Fatalf("got %d frames that make %q, want %q: one batch has one form", len(frames), again, batch)
		}
	})
}

// A bit that is flipped anywhere is refused, or means nothing.
func FuzzVerify(f *testing.F) {
	f.Add("m1", "source", "endpoint", "correlation", "key", "name", "value", []byte(`{"a":"\u0041"}`), uint(12))
	f.Add("018f4b6e-7c1a-7b3c-9d5e-0123456789ab", "s", "e", "", "", "größe", "ü", []byte(" null "), uint(100))
	f.Add(`"`, `\`, "e", "c", "", "a", "", []byte(`[1, 2]`), uint(1000))
	key := secret(f, "a")
	check := wire.Check{Secrets: []*wire.Secret{secret(f, "b"), key}, Now: noon}
	f.Fuzz(func(t *testing.T, id, source, endpoint, correlation, ordering, name, value string, payload []byte, bit uint) {
		m := holdfast.Message{
			ID: holdfast.ID(id), Source: source, Endpoint: endpoint, CorrelationID: correlation, OrderingKey: ordering,
			Payload: payload, Headers: map[string]string{name: value},
			Attempt: holdfast.Attempt{Number: int(bit % 7), Cycle: 1, RetryFor: -1, Forced: bit%2 == 0},
		}
		data, err := wire.Encode(nil, &m, wire.Seal{Secret: key, Now: noon})
		if err != nil {
			return
		}
		before, err := wire.Decode(data)
		if err != nil {
			t.Fatalf("decode %s: %v", data, err)
		}
		if err := before.Verify(check); err != nil {
			t.Fatalf("verify %s: %v", data, err)
		}
		bit %= uint(len(data)) * 8
		data[bit/8] ^= 1 << (bit % 8)
		after, err := wire.Decode(data)
		if err != nil || after.Verify(check) != nil {
			return
		}
		if diff := cmp.Diff(before.Message, after.Message); diff != "" || before.Timestamp != after.Timestamp || before.Version != after.Version {
			t.Fatalf("bit %d changes a signed message (-before +after):\n%s", bit, diff)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, r := range makeVectors(f).Replies {
		f.Add([]byte(r.Body))
	}
	f.Add([]byte(`{"acknowledged":true,"payload": [1 ] ,"x":{},"code":"a","retryAfterMs":5,"maybeDelivered":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d wire.Decoder
		first, err := d.DecodeReply(data)
		if err != nil {
			return
		}
		second, err := d.DecodeReply(first.AppendTo(nil))
		if err != nil {
			t.Fatalf("decode %s: %v", first.AppendTo(nil), err)
		}
		// A response's own spaces are cut where they stood in a string.
		first.Response, second.Response = bytes.Trim(first.Response, " \t\r\n"), bytes.Trim(second.Response, " \t\r\n")
		if len(first.Response) == 0 && len(second.Response) == 0 {
			first.Response, second.Response = nil, nil
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the reply changed (-first +second):\n%s", diff)
		}
	})
}
