package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-mq/holdfast"
)

// Options say what is counted beside what an Observer is told.
type Options struct {
	// Counts returns the gauges kept in memory; Outbox has it. It is called
	// for each request of the metrics.
	Counts func() holdfast.Counts
	// Lanes tells how the lanes of the destinations fare; Dispatcher has it.
	// Nil: nobody knows.
	Lanes func() []holdfast.LaneStatus
	// Oldest tells for how long the oldest due message of each destination has
	// waited; Progress has it. Nil: nobody knows.
	Oldest func() map[string]time.Duration
	// Refused tells how many requests and connections were refused since the
	// start, by reason; the reasons are few and fixed. Nil: nobody counts.
	Refused func() map[string]int64

	// Sources have numbers of their own.
	Sources []Source

	Version, Commit string // of the program
}

// Metrics is an Observer, and a page of metrics. Its methods may be called
// concurrently.
type Metrics struct {
	provider     *sdk.MeterProvider
	handler      http.Handler
	tally        *counters
	destinations sync.Map // name → *destination
}

// destination holds the numbers of one destination.
type destination struct {
	send    [outcomes]*histogram
	retries *histogram
	parked  atomic.Int64
}

const (
	scope    = "github.com/holdfast-mq/holdfast"
	outcomes = int(holdfast.Succeeded) + 1
)

// Bounds of the buckets in milliseconds: from a local call to an endpoint that
// uses its whole time-out.
var durationBounds = [...]float64{0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000}

// Bounds of the buckets in retries: up to the largest usual budget.
var retryBounds = [...]float64{0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100}

// The results of an incoming message.
const (
	processed = iota
	duplicate
	refused
)

var resultNames = [...]string{"processed", "duplicate", "failed"}

var _ holdfast.Observer = (*Metrics)(nil)

// New returns metrics on a registry of their own.
func New(o Options) (*Metrics, error) {
	if o.Counts == nil {
		return nil, errors.New("metrics: Counts is nil")
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of the process: %w", err)
		}
	}
	m := &Metrics{tally: &counters{start: time.Now(), requests: o.Refused}}
	m.tally.each = m.eachDestination
	for i, name := range resultNames {
		m.tally.results[i] = newHistogram(durationBounds[:], attribute.String("result", name))
	}
	exporter, err := otelprom.New(
		otelprom.WithRegisterer(registry),
		// Names stay as they are: no unit, no _total (OI-16).
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes),
		otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(), otelprom.WithProducer(m.tally),
	)
	if err != nil {
		return nil, fmt.Errorf("make metrics exporter: %w", err)
	}
	m.provider = sdk.NewMeterProvider(sdk.WithReader(exporter))
	// The OpenMetrics format would append _total to each counter.
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: false})
	err = gauges(m.provider.Meter(scope), o)
	for i := range o.Sources {
		err = errors.Join(err, o.Sources[i].register(m.provider.Meter(scope)))
	}
	if err != nil {
		return nil, errors.Join(err, m.provider.Shutdown(context.Background()))
	}
	return m, nil
}

// Handler answers GET /metrics.
func (m *Metrics) Handler() http.Handler { return m.handler }

// MeterProvider lets other parts of a node count on the same page.
func (m *Metrics) MeterProvider() metric.MeterProvider { return m.provider }

// Shutdown ends the counting; what is observed afterwards is lost.
func (m *Metrics) Shutdown(ctx context.Context) error {
	if err := m.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("shut metrics down: %w", err)
	}
	return nil
}

// ObserveAttempt records an attempt, and the retries of a message that is
// delivered or parked.
func (m *Metrics) ObserveAttempt(a holdfast.AttemptInfo) {
	d := m.destination(a.Destination)
	if int(a.Outcome) < outcomes {
		d.send[a.Outcome].observe(milliseconds(a.Took))
	}
	switch a.State {
	case holdfast.Parked:
		d.parked.Add(1)
		d.retries.observe(float64(a.Retries))
	case holdfast.Delivered:
		d.retries.observe(float64(a.Retries))
	case holdfast.Pending, holdfast.Claimed, holdfast.Expired, holdfast.Discarded:
	}
}

// ObserveExpired counts messages whose TTL ended.
func (m *Metrics) ObserveExpired(n int) { m.tally.expired.Add(int64(n)) }

// ObserveReceived records an incoming message. Its source and endpoint are no
// labels: the sender chooses them.
func (m *Metrics) ObserveReceived(r holdfast.ReceivedInfo) {
	result := processed
	switch {
	case r.Err != nil:
		result = refused
	case r.Duplicate:
		result = duplicate
		m.tally.duplicates.Add(1)
	}
	m.tally.results[result].observe(milliseconds(r.Took))
}

// ObserveRefused counts an incoming message that did not get as far as the
// inbox. The code is one of package transport or wire, never a sender's.
func (m *Metrics) ObserveRefused(code string) {
	n, ok := m.tally.messages.Load(code)
	if !ok {
		n, _ = m.tally.messages.LoadOrStore(code, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1) //nolint:forcetypeassert // nothing else is stored
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (m *Metrics) destination(name string) *destination {
	if d, ok := m.destinations.Load(name); ok {
		return d.(*destination) //nolint:forcetypeassert // nothing else is stored
	}
	to := attribute.String("destination", name)
	d := &destination{retries: newHistogram(retryBounds[:], to)}
	for o := range d.send {
		d.send[o] = newHistogram(durationBounds[:], to, attribute.String("outcome", holdfast.Outcome(o).String()))
	}
	kept, _ := m.destinations.LoadOrStore(name, d)
	return kept.(*destination) //nolint:forcetypeassert // nothing else is stored
}

func (m *Metrics) eachDestination(yield func(d *destination)) {
	m.destinations.Range(func(_, d any) bool {
		yield(d.(*destination)) //nolint:forcetypeassert // nothing else is stored
		return true
	})
}
