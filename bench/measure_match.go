package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// matchMeasure: one event against 10 subscriptions, and against many of which 10 match: processor time of a look
// into the index of filters, and of a whole publish with 64 callers. The growth is of one run.
func matchMeasure(z sizes) measure {
	many := strconv.Itoa(z.subscribers)
	m := measure{name: "match", columns: []column{
		{key: "match10", title: "against 10", unit: "us", lower: true},
		{key: "match", title: "against " + many, unit: "us", lower: true},
		{key: "matchGrowth", title: "growth", unit: "x", lower: true},
		{key: "publish10", title: "publish, 10", unit: "us/event", lower: true},
		{key: "publish", title: "publish, " + many, unit: "us/event", lower: true},
		{key: "publishGrowth", title: "publish, growth", unit: "x", lower: true},
		{key: "start", title: "first publish, " + many, unit: "ms", lower: true},
		{key: "size", title: "memory of a subscription", unit: "B", lower: true},
	}}
	counts := map[string]int{"10": eventFan, many: z.subscribers}
	m.contenders = []contender{{
		name: "holdfast", role: roleOurs, files: "match",
		prepare: func(ctx context.Context, dir string) error {
			for name, n := range counts {
				if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o755), subscribed(ctx, filepath.Join(dir, name), n)); err != nil {
					return err
				}
			}
			return nil
		},
		run: func(_ context.Context, c cell) (values, error) { return matchCell(c, z, many) },
	}}
	return m
}

func matchCell(c cell, z sizes, many string) (values, error) {
	few, err1 := matchCost(eventFan, z)
	lots, err2 := matchCost(z.subscribers, z)
	small, err3 := publishCost(c, "10", z)
	large, err4 := publishCost(c, many, z)
	return values{
		"match10": few, "match": lots, "matchGrowth": lots / few,
		"publish10": small.each, "publish": large.each, "publishGrowth": large.each / small.each,
		"start": large.start, "size": (large.heap - small.heap) / float64(z.subscribers-eventFan),
	}, errors.Join(err1, err2, err3, err4)
}

// matchCost returns the processor time of an event in an index of filters, in microseconds.
func matchCost(subscriptions int, z sizes) (float64, error) {
	var x filter.Index
	for n := range subscriptions {
		var f filter.Filter
		if err := json.Unmarshal([]byte(filterOf(n)), &f); err != nil {
			return 0, fmt.Errorf("read filter %d: %w", n, err)
		}
		if err := x.Set(fmt.Sprintf("subscription-%06d", n), []string{eventTopic, "returns"}, f); err != nil {
			return 0, err
		}
	}
	runtime.GC()
	before, err := processor()
	if err != nil {
		return 0, err
	}
	count, began := 0, time.Now()
	for ; time.Since(began) < z.cell/2; count++ {
		e := event()
		asked := filter.Event{Topic: e.Topic, Type: e.Type, Source: "bench", Subject: e.Subject, Time: began, Attributes: e.Attributes, Data: e.Data}
		if got := x.Match(&asked); len(got) != eventFan {
			return 0, fmt.Errorf("an event meets %d filters, not %d", len(got), eventFan)
		}
	}
	after, err := processor()
	return float64((after - before).Nanoseconds()) / 1e3 / float64(count), err
}

// published is the cost of events: processor time of each in microseconds, the first one in milliseconds, and
// the memory in use, in bytes.
type published struct{ each, start, heap float64 }

func publishCost(c cell, name string, z sizes) (p published, err error) {
	dir := filepath.Join(c.dir, name)
	if err := copyDir(filepath.Join(c.prepared, name), dir); err != nil {
		return p, err
	}
	ctx := context.Background()
	h, err := openHub(ctx, dir)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	began := time.Now()
	if err := h.publish(ctx); err != nil { // the book reads all subscriptions
		return p, err
	}
	p.start = float64(time.Since(began).Nanoseconds()) / 1e6
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	p.heap = float64(s.HeapAlloc)
	before, err := processor()
	if err != nil {
		return p, err
	}
	each := z.webhooks / eventFan / publishers
	if err := crowdOf(publishers, each, func(int) error { return h.publish(ctx) })(); err != nil {
		return p, err
	}
	after, err := processor()
	p.each = float64((after - before).Nanoseconds()) / 1e3 / float64(each*publishers)
	return p, err
}
