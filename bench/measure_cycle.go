package main

import (
	"context"
	"fmt"
)

// cycleMeasure: durable enqueue, handler that does nothing, durably settled.
func cycleMeasure(z sizes, producers int) measure {
	m := measure{name: fmt.Sprintf("cycle/%d", producers), columns: []column{{key: "rate", unit: "msg/s"}}}
	for _, s := range queues(goqiteCycles(), riverDefault(), riverTuned(), bareQueue()) {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return cycleRate(s.open, c.dir, z, producers)
		})
	}
	return m
}
