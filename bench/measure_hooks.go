package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/fanout"
)

const (
	hooksRate    = 100 // events a second, each for one healthy subscriber
	hooksHealthy = 50  // subscribers 0 to 49 answer
	hooksSilent  = 50  // subscribers 50 to 99 take a connection and say nothing
	hooksWaiting = 20  // events for each silent one before the clock runs
)

// hooksMeasure: the time from the moment when an event is to be published until its subscriber has it, at 100 events a
// second for 50 subscribers, with 50 others that are black holes and without them. Those get as many events.
func hooksMeasure(z sizes) measure {
	m := measure{name: "webhook paced", columns: []column{
		{key: "alone50", title: "p50", unit: "ms", lower: true},
		{key: "alone99", title: "p99", unit: "ms", lower: true},
		{key: "beside50", title: "p50 beside 50 black holes", unit: "ms", lower: true},
		{key: "beside99", title: "p99 beside 50 black holes", unit: "ms", lower: true},
	}}
	m.contenders = []contender{{name: "holdfast", role: roleOurs, run: func(_ context.Context, c cell) (values, error) {
		return bothTimes(c, func(dir string, beside bool) ([]float64, error) {
			return hookTimes(context.Background(), dir, z, beside)
		})
	}}}
	return m
}

// hookTimes returns the milliseconds until healthy subscribers have their events.
func hookTimes(ctx context.Context, dir string, z sizes, silent bool) (times []float64, err error) {
	h, err := openHub(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	w := newStopwatch(int(z.paced.Seconds() * hooksRate))
	good, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: w}
	go func() { _ = server.Serve(good) }()
	defer func() { err = errors.Join(err, server.Close()) }()
	hole, port, err := openSilent()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hole.Close()) }()
	if _, err := h.book.Store().PutTopic(ctx, fanout.Topic{Name: eventTopic}, ""); err != nil {
		return nil, err
	}
	for n := range hooksHealthy + hooksSilent {
		s := fanout.Subscription{ID: strconv.Itoa(n), Topics: []string{"*"}, Filter: json.RawMessage(`{"types":["` + strconv.Itoa(n) + `"]}`)}
		if s.URL = "http://" + good.Addr().String(); n >= hooksHealthy {
			s.URL = "http://127.0.0.1:" + strconv.Itoa(port)
		}
		if _, err := h.book.Store().PutSubscription(ctx, s, ""); err != nil {
			return nil, err
		}
	}
	stop, err := h.deliver(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if silent {
		end, err := h.feedHoles(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	start := time.Now()
	for n := range w.due {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / hooksRate)))
		w.due[n].Store(w.now())
		if err := h.publishTo(ctx, n%hooksHealthy, n); err != nil {
			return nil, err
		}
	}
	for end := time.Now().Add(z.late); w.left.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	_, times = w.latencies()
	return times, nil
}

// publishTo publishes an event for one subscriber, with a number as its data.
func (h *hub) publishTo(ctx context.Context, subscriber, n int) error {
	_, err := h.publisher.Publish(ctx, fanout.Event{Topic: eventTopic, Type: strconv.Itoa(subscriber), Data: payload(n)})
	return err
}

// feedHoles gives the silent subscribers a backlog, and then an event every 10 ms until end is called.
func (h *hub) feedHoles(ctx context.Context) (end func(), err error) {
	for n := range hooksSilent * hooksWaiting {
		if err := h.publishTo(ctx, hooksHealthy+n%hooksSilent, n); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_ = h.publishTo(ctx, hooksHealthy+n%hooksSilent, n) // only pressure; not measured
			time.Sleep(time.Second / hooksRate)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}, nil
}

// ServeHTTP is a subscriber that notes what it gets.
func (w *stopwatch) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	var b json.RawMessage
	err := json.NewDecoder(req.Body).Decode(&b)
	if err == nil {
		err = w.deliver(req.Context(), 0, b)
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	out.WriteHeader(http.StatusNoContent)
}
