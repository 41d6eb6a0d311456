package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

// sample is what a dispatcher hands to a transport: a JSON payload of about
// 512 bytes.
func sample() holdfast.Message {
	return holdfast.Message{
		ID: "018f4b6e-7c1a-7b3c-9d5e-0123456789ab", Source: "inventory-service", Destination: "engine", Endpoint: "OrderApproved",
		Kind: holdfast.Signal, CorrelationID: "order-42",
		Payload: []byte(`{"orderId":42,"approvedBy":"a manager","lines":["` + strings.Repeat("x", 450) + `"]}`),
		Attempt: holdfast.Attempt{Number: 2, Cycle: 1, FirstAgo: 2500 * time.Millisecond, RetryFor: time.Minute},
	}
}

var noon = time.Date(2026, 2, 14, 12, 0, 0, 0, time.UTC)

func secret(tb testing.TB, fill string) *wire.Secret {
	tb.Helper()
	s, err := wire.NewSecret([]byte(strings.Repeat(fill, 32)))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkEncode(b *testing.B) {
	for name, s := range map[string]wire.Seal{"unsigned": {Now: noon}, "v1": {Now: noon, V1: true, Secret: secret(b, "k")}, "v2": {Now: noon, Secret: secret(b, "k")}} {
		b.Run(name, func(b *testing.B) {
			m, buf := sample(), make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Encode(buf, &m, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	m := sample()
	data, err := wire.Encode(nil, &m, wire.Seal{Now: noon, Secret: secret(b, "k")})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("fresh", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reused", func(b *testing.B) {
		var d wire.Decoder
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	for name, v1 := range map[string]bool{"v1": true, "v2": false} {
		b.Run(name, func(b *testing.B) {
			m, key := sample(), secret(b, "k")
			data, err := wire.Encode(nil, &m, wire.Seal{Now: noon, Secret: key, V1: v1})
			if err != nil {
				b.Fatal(err)
			}
			e, err := wire.Decode(data)
			if err != nil {
				b.Fatal(err)
			}
			check := wire.Check{Secrets: []*wire.Secret{secret(b, "o"), key}, V1: v1, Now: noon}
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Verify(check); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
