package main

import (
	"context"
	"errors"
)

// latencyMeasure: the time to the deliverer at 1,000 messages a second, from the durable answer and
// from the moment when the message was to be enqueued.
func latencyMeasure(z sizes) measure {
	m := measure{name: "latency", columns: []column{
		{key: "answer50", title: "after commit p50", unit: "ms", lower: true},
		{key: "answer99", title: "after commit p99", unit: "ms", lower: true},
		{key: "due50", title: "with commit p50", unit: "ms", lower: true},
		{key: "due99", title: "with commit p99", unit: "ms", lower: true},
	}}
	sources := queues(
		goqiteJobs(), goqiteJobsTuned(), backliteDefault(), backliteTuned(), riverDefault(), riverTuned(), bareQueue(),
	)
	for _, s := range sources {
		m.add(s, nil, func(_ context.Context, c cell) (v values, err error) {
			ctx := context.Background()
			w := newStopwatch(int(z.paced.Seconds() * pacedRate))
			q, err := s.open(ctx, Setup{Dir: c.dir, Destinations: 1, Deliver: w.deliver})
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, q.Close()) }()
			if err := w.load(ctx, q, z.late, func(int) int { return 0 }); err != nil {
				return nil, err
			}
			answer, due := w.latencies()
			return values{
				"answer50": percentile(answer, 50), "answer99": percentile(answer, 99),
				"due50": percentile(due, 50), "due99": percentile(due, 99),
			}, nil
		})
	}
	return m
}
