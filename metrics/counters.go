package metrics

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-mq/holdfast"
)

// The counts of each message are kept here, in atomics, and handed to OpenTelemetry when it asks. An
// instrument of its SDK would normalize the attributes of each measurement, which takes ten times as long.

// histogram counts values per bucket.
type histogram struct {
	attributes attribute.Set
	bounds     []float64 // shared; the last bucket has no bound
	counts     []atomic.Uint64
	sum        atomic.Uint64 // bits of a float64
}

func newHistogram(bounds []float64, attributes ...attribute.KeyValue) *histogram {
	return &histogram{attributes: attribute.NewSet(attributes...), bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v) // a value equal to a bound belongs to the bucket below it
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

func (h *histogram) point(start, now time.Time) metricdata.HistogramDataPoint[float64] {
	p := metricdata.HistogramDataPoint[float64]{
		Attributes: h.attributes, StartTime: start, Time: now, Bounds: h.bounds,
		BucketCounts: make([]uint64, len(h.counts)), Sum: math.Float64frombits(h.sum.Load()),
	}
	for i := range h.counts {
		p.BucketCounts[i] = h.counts[i].Load()
		p.Count += p.BucketCounts[i]
	}
	return p
}

// Totals are what happened since the start.
type Totals struct{ Delivered, Failed, Parked, Expired int64 } // messages; of Failed, attempts

// Totals returns what happened since the start to messages of the destinations that of picks. Expired is of all.
func (m *Metrics) Totals(of func(destination string) bool) (t Totals) {
	m.destinations.Range(func(name, d any) bool {
		if of(name.(string)) { //nolint:forcetypeassert // nothing else is stored
			d := d.(*destination) //nolint:forcetypeassert // nothing else is stored
			t.Parked += d.parked.Load()
			for o, h := range d.send {
				if holdfast.Outcome(o) == holdfast.Succeeded {
					t.Delivered += h.count()
				} else {
					t.Failed += h.count()
				}
			}
		}
		return true
	})
	t.Expired = m.tally.expired.Load()
	return t
}

func (h *histogram) count() (n int64) {
	for i := range h.counts {
		n += int64(h.counts[i].Load())
	}
	return n
}

// counters holds all counters.
type counters struct {
	start      time.Time
	expired    atomic.Int64
	duplicates atomic.Int64
	results    [len(resultNames)]*histogram
	each       func(yield func(d *destination))
	requests   func() map[string]int64 // refused requests, by reason; nil: nobody counts them
	messages   sync.Map                // refused messages: code → *atomic.Int64
}

// refused returns the numbers of refused requests and messages.
func (t *counters) refused(now time.Time) (requests, messages metricdata.Sum[int64]) {
	requests = metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	messages = requests
	point := func(reason string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attribute.String("reason", reason)), StartTime: t.start, Time: now, Value: n}
	}
	if t.requests != nil {
		for reason, n := range t.requests() {
			requests.DataPoints = append(requests.DataPoints, point(reason, n))
		}
	}
	t.messages.Range(func(code, n any) bool {
		messages.DataPoints = append(messages.DataPoints, point(code.(string), n.(*atomic.Int64).Load())) //nolint:forcetypeassert // nothing else is stored
		return true
	})
	return requests, messages
}

// Produce returns the numbers. It implements the SDK's Producer.
func (t *counters) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	send := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
	retries, process := send, send
	failed := metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	t.each(func(d *destination) {
		for _, h := range d.send {
			if p := h.point(t.start, now); p.Count > 0 {
				send.DataPoints = append(send.DataPoints, p)
			}
		}
		retries.DataPoints = append(retries.DataPoints, d.retries.point(t.start, now))
		failed.DataPoints = append(failed.DataPoints, metricdata.DataPoint[int64]{
			Attributes: d.retries.attributes, StartTime: t.start, Time: now, Value: d.parked.Load(),
		})
	})
	for _, h := range t.results {
		process.DataPoints = append(process.DataPoints, h.point(t.start, now))
	}
	single := func(n *atomic.Int64) metricdata.Sum[int64] {
		return metricdata.Sum[int64]{
			Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
			DataPoints: []metricdata.DataPoint[int64]{{StartTime: t.start, Time: now, Value: n.Load()}},
		}
	}
	requests, messages := t.refused(now)
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: scope},
		Metrics: []metricdata.Metrics{
			{Name: "rf_outbox_send_duration_ms", Description: "Time that one attempt took, in milliseconds.", Data: send},
			{Name: "rf_outbox_retry_count", Description: "Retries that a message took until it was delivered or parked.", Data: retries},
			{Name: "rf_outbox_failed_count", Description: "Messages that were parked, since the start.", Data: failed},
			{Name: "rf_outbox_expired_count", Description: "Messages whose TTL ended before they were delivered, since the start.", Data: single(&t.expired)},
			{Name: "rf_inbox_duplicate_count", Description: "Incoming messages that were known, since the start.", Data: single(&t.duplicates)},
			{Name: "rf_inbox_process_duration_ms", Description: "Time to process an incoming message, in milliseconds.", Data: process},
			{Name: "holdfast_requests_refused_count", Description: "Requests and connections that were refused since the start, by reason: the status, or why there was no room.", Data: requests},
			{Name: "holdfast_messages_refused_count", Description: "Incoming messages and callers that were refused before the inbox since the start, by reason.", Data: messages},
		},
	}}, nil
}
