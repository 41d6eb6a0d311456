package main

import (
	"context"
	"fmt"
)

// enqueueMeasure: producers enqueue, each waiting for its own durable answer.
func enqueueMeasure(z sizes, producers int) measure {
	m := measure{name: fmt.Sprintf("enqueue/%d", producers), columns: []column{{key: "rate", unit: "msg/s"}}}
	for _, s := range queues(goqiteRaw(), backliteDefault(), backliteTuned(), riverDefault(), bareQueue()) {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return enqueueRate(s.open, c.dir, z, producers)
		})
	}
	return m
}
