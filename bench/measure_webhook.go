package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// webhookMeasure: a backlog of deliveries of 1 KB to 10 subscriptions, each with a secret of its own and 8
// requests at a time. They go to one process that checks the signatures, at as many addresses.
func webhookMeasure(z sizes, hosts int) measure {
	m := measure{name: fmt.Sprintf("webhook/%d hosts", hosts), columns: []column{
		{key: "rate", unit: "msg/s"},
		{key: "processor", title: "processor of the sender", unit: "us/msg", lower: true},
		{key: "connections", title: "connections", lower: true},
	}}
	if hosts == 1 {
		m.name = "webhook/1 host"
	}
	add := func(name string, r role, settings string, open func(ctx context.Context, dir string, z sizes, to []string) (webhookRun, error)) {
		m.contenders = append(m.contenders, contender{name: name, role: r, settings: settings, run: func(_ context.Context, c cell) (values, error) {
			return webhookCell(c, z, hosts, open)
		}})
	}
	add("holdfast", roleOurs, "", openWebhooks)
	add("bare webhook", roleBare, "net/http's client, crypto/hmac, as many requests at a time, connections stay open; no store, no guard of addresses", openBareWebhooks)
	return m
}

// webhookRun delivers z.webhooks messages.
type webhookRun struct {
	start   func() error                      // before the clock runs; may be nil
	deliver func() (delivered int, err error) // ends when all are delivered, or at the cutoff
	close   func() error
}

func webhookCell(c cell, z sizes, hosts int, open func(ctx context.Context, dir string, z sizes, to []string) (webhookRun, error)) (v values, err error) {
	ctx := context.Background()
	child, err := startChild(ctx, childArgs{task: "webhook", profile: c.profile})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, child.end()) }()
	to := child.ready.Addresses[:hosts]
	w, err := open(ctx, c.dir, z, to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if w.start != nil {
		if err := w.start(); err != nil {
			return nil, err
		}
	}
	before, err := processor()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	n, err := w.deliver()
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	after, err := processor()
	if err != nil {
		return nil, err
	}
	t, err := askTally(ctx, to[0])
	if err != nil {
		return nil, err
	}
	if t.Refused > 0 || t.Taken < int64(n) || n == 0 {
		return nil, fmt.Errorf("the receiver took %d of %d webhooks, and refused %d", t.Taken, n, t.Refused)
	}
	return values{
		"rate": float64(n) / took.Seconds(), "processor": float64((after - before).Microseconds()) / float64(n),
		"connections": float64(t.Connections),
	}, nil
}

// openWebhooks publishes all events before anything is delivered.
func openWebhooks(ctx context.Context, dir string, z sizes, to []string) (w webhookRun, err error) {
	h, err := openHub(ctx, dir)
	if err != nil {
		return w, err
	}
	if err = h.fill(ctx, z, to); err != nil {
		return w, errors.Join(err, h.Close())
	}
	stop := func() error { return nil }
	w.close = func() error { return errors.Join(stop(), h.Close()) }
	w.deliver = func() (int, error) {
		end, err := h.deliver(ctx)
		if err != nil {
			return 0, err
		}
		stop = end
		for began := time.Now(); h.db.Counts().Pending > 0 && time.Since(began) < z.cutoff; {
			time.Sleep(time.Millisecond)
		}
		return z.webhooks - int(h.db.Counts().Pending), nil
	}
	return w, nil
}
