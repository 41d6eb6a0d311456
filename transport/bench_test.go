package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// none takes everything and does nothing with it.
type none struct{}

func (none) Receive(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}, nil
}

func (none) ReceiveBatch(_ context.Context, ms []holdfast.Message) []holdfast.Result {
	return make([]holdfast.Result, len(ms))
}

func benchMessages(n int) []holdfast.Message {
	ms := messages(n)
	for i := range ms {
		ms[i].CorrelationID, ms[i].OrderingKey, ms[i].Headers = "order-42", "", nil
		ms[i].Payload = []byte(`{"lines":"` + strings.Repeat("x", 490) + `"}`)
	}
	return ms
}

func BenchmarkDeliver(b *testing.B) {
	client := pair(b, none{}, secret(b, "k"))
	m := benchMessages(1)[0]
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := client.Deliver(b.Context(), m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDeliverBatch counts messages, client and server together.
func BenchmarkDeliverBatch(b *testing.B) {
	for _, size := range []int{8, 64, 512} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			client := pair(b, none{}, secret(b, "k"))
			ms := benchMessages(size)
			if _, err := client.Deliver(b.Context(), transporttest.Message()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for _, r := range client.DeliverBatch(b.Context(), ms) {
					if r.Err != nil {
						b.Fatal(r.Err)
					}
				}
				n += size
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

var _ holdfast.BatchReceiver = none{}
