package metrics

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Source is a part of a node that has numbers of its own to show.
type Source struct {
	Metrics []Metric
	// Read is called for each request of the page, from any goroutine. It passes each number
	// to see: the name of the metric, its value and, if the metric has a label, the
	// label's value. A number that it does not pass is not shown. It asks no database.
	Read func(see func(name string, value int64, label ...string))
}

// Metric is one metric of a Source.
type Metric struct {
	Name string
	Help string // one sentence
	// Counter says that the number only grows, from zero at the start of the process.
	Counter bool
	// Label is the name of the metric's label. Its values are few and fixed, or names
	// of the configuration: never what a peer or caller chooses. Empty: it has none.
	Label string
}

// register shows the metrics of a source. They are read together, so that the numbers of
// one page belong together.
func (s *Source) register(meter metric.Meter) error {
	var faults []error
	var all []metric.Observable
	named, labels := map[string]metric.Int64Observable{}, map[string]string{}
	for _, m := range s.Metrics {
		var o metric.Int64Observable
		var err error
		if m.Counter {
			o, err = meter.Int64ObservableCounter(m.Name, metric.WithDescription(m.Help))
		} else {
			o, err = meter.Int64ObservableGauge(m.Name, metric.WithDescription(m.Help))
		}
		faults, all = append(faults, err), append(all, o)
		named[m.Name], labels[m.Name] = o, m.Label
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	if _, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		var unknown error
		s.Read(func(name string, value int64, label ...string) {
			o := named[name]
			if o == nil {
				unknown = errors.Join(unknown, fmt.Errorf("the metric %q is not in the list of its source", name))
				return
			}
			if len(label) > 0 {
				to.ObserveInt64(o, value, metric.WithAttributes(attribute.String(labels[name], label[0])))
				return
			}
			to.ObserveInt64(o, value)
		})
		return unknown
	}, all...); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
