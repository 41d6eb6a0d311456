package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/postgres"
)

// pgWebhookMeasure: deliveries as of webhookMeasure, at 10 addresses, by one node and by two. The clock runs when
// all nodes have their share and the receiver has a tenth of the backlog.
func pgWebhookMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg webhook", columns: []column{{key: "1", title: "by 1", unit: "msg/s"}, {key: "2", title: "by 2", unit: "msg/s"}}}
	z.webhooks = z.pgWebhooks
	add := func(name string, r role, settings string, open func(ctx context.Context, dsn string, n int, z sizes, to []string) (webhookRun, error)) {
		m.contenders = append(m.contenders, contender{name: name, role: r, settings: settings, run: func(_ context.Context, c cell) (values, error) {
			v := values{}
			for n := 1; n <= 2; n++ {
				if _, err := p.cell(c.dir, "", func(dsn string) (values, error) {
					got, err := webhookCell(c, z, eventFan, func(ctx context.Context, _ string, z sizes, to []string) (webhookRun, error) {
						return open(ctx, dsn, n, z, to)
					})
					v[fmt.Sprint(n)] = got["rate"]
					return nil, err
				}); err != nil {
					return nil, err
				}
			}
			return v, nil
		}})
	}
	add(pgOurName, roleOurs, "", openPGWebhooks)
	add("bare lease and webhook", roleBare, "for each node 2 loops of UPDATE with SKIP LOCKED and RETURNING, webhooks as by bare webhook, DELETE; as many requests at a time", openPGBareWebhooks)
	return m
}

// openPGWebhooks publishes all events at the first of n nodes.
func openPGWebhooks(ctx context.Context, dsn string, n int, z sizes, to []string) (w webhookRun, err error) {
	var hubs []*hub
	w.close = func() (err error) {
		for _, h := range hubs {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for range n {
		db, err := postgres.Open(ctx, dsn, postgres.Options{Source: "bench"})
		if err != nil {
			return w, err
		}
		h, err := newHub(db)
		if err != nil {
			return w, errors.Join(err, db.Close())
		}
		hubs = append(hubs, h)
	}
	if err := hubs[0].subscribe(ctx, to...); err != nil {
		return w, err
	}
	if err := meet(ctx, z, hubs); err != nil {
		return w, err
	}
	if err := hubs[0].publishAll(ctx, z); err != nil {
		return w, err
	}
	pool, err := openPool(ctx, dsn, 1)
	if err != nil {
		return w, err
	}
	hubsClosed, stops := w.close, []func() error{}
	w.close = func() (err error) {
		pool.Close()
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
		return errors.Join(err, hubsClosed())
	}
	w.start = func() error {
		for _, h := range hubs {
			stop, err := h.deliver(ctx)
			if err != nil {
				return err
			}
			stops = append(stops, stop)
		}
		return nil
	}
	w.inSteadyState(z, to[0], func() (n int, err error) {
		err = pool.QueryRow(ctx, "SELECT count(*) FROM hf_queue").Scan(&n)
		return n, err
	})
	return w, nil
}

// meet delivers one event to each subscription, until each node has its share of the requests: a node that joins others
// waits for that, until all have certainly heard of it.
func meet(ctx context.Context, z sizes, hubs []*hub) (err error) {
	if err := hubs[0].publish(ctx); err != nil {
		return err
	}
	for _, h := range hubs {
		first, failed := newHub(h.db) // a book tells of each subscription once
		if failed != nil {
			return failed
		}
		stop, failed := first.deliver(ctx)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	for began := time.Now(); !shared(hubs); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > z.cutoff+10*time.Second {
			return errors.New("the nodes did not share what the subscribers bear")
		}
	}
	return nil
}

// shared reports whether all nodes have equal parts of what each subscriber bears.
func shared(hubs []*hub) bool {
	for _, h := range hubs {
		for n := range eventFan {
			if h.db.(hf.Shared).Share(fanout.Lane(subscriptionID(n)), fanout.DefaultConcurrency) != fanout.DefaultConcurrency/len(hubs) {
				return false
			}
		}
	}
	return true
}

// inSteadyState starts the clock when the receiver has a tenth, and stops it when left says that nothing is. What the
// receiver has at the start does not count.
func (w *webhookRun) inSteadyState(z sizes, receiver string, left func() (int, error)) {
	start, before := w.start, 0
	taken := func(most int) (int, error) {
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			t, err := askTally(context.Background(), receiver)
			if err != nil || int(t.Taken) >= most || time.Since(began) > z.cutoff {
				return int(t.Taken), err
			}
		}
	}
	w.start = func() (err error) {
		if err = start(); err == nil {
			before, err = taken(z.webhooks / 10)
		}
		return err
	}
	w.deliver = func() (int, error) {
		if _, err := taken(z.webhooks); err != nil {
			return 0, err
		}
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			if n, err := left(); err != nil || n == 0 || time.Since(began) > z.cutoff {
				return z.webhooks - n - before, err
			}
		}
	}
}

// openPGBareWebhooks fills the table of bare loops.
func openPGBareWebhooks(ctx context.Context, dsn string, n int, z sizes, to []string) (w webhookRun, err error) {
	o := pgBareOptions{writers: 1, drainers: 2, page: 400, atOnce: eventFan * fanout.DefaultConcurrency / 2 / n}
	q, err := openPGBare(o)(ctx, Setup{DSN: dsn})
	if err != nil {
		return w, err
	}
	if err := errors.Join(q.(Filler).Fill(ctx, 0, z.webhooks, func(int) []byte { return eventData }), q.Close()); err != nil {
		return w, err
	}
	var next atomic.Int64
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: eventFan * fanout.DefaultConcurrency}}
	post := func(ctx context.Context, _ int, _ []byte) error {
		n := int(next.Add(1) % eventFan)
		return bareWebhook(ctx, client, subscriberURL(to, n), subscriberKey(n))
	}
	var nodes []Queue
	w.close = func() (err error) {
		for _, q := range nodes {
			err = errors.Join(err, q.Close())
		}
		client.CloseIdleConnections()
		return err
	}
	w.start = func() error {
		for range n {
			q, err := openPGBare(o)(ctx, Setup{DSN: dsn, Deliver: post})
			if err != nil {
				return err
			}
			nodes = append(nodes, q)
		}
		return nil
	}
	w.inSteadyState(z, to[0], func() (int, error) { return nodes[0].Unsettled(ctx) })
	return w, nil
}
