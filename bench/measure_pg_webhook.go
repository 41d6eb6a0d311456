package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/postgres"
)

// pgWebhookMeasure: the same backlog of deliveries as of webhookMeasure, at 10 addresses, worked off by one node
// and by two.
func pgWebhookMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg webhook", columns: []column{{key: "1", title: "by 1", unit: "msg/s"}, {key: "2", title: "by 2", unit: "msg/s"}}}
	m.contenders = []contender{{name: "holdfast", role: roleOurs, run: func(_ context.Context, c cell) (values, error) {
		v := values{}
		for n := 1; n <= 2; n++ {
			if _, err := p.cell(c.dir, "", func(dsn string) (values, error) {
				got, err := webhookCell(c, z, eventFan, func(ctx context.Context, _ string, z sizes, to []string) (webhookRun, error) {
					return openPGWebhooks(ctx, dsn, n, z, to)
				})
				v[fmt.Sprint(n)] = got["rate"]
				return nil, err
			}); err != nil {
				return nil, err
			}
		}
		return v, nil
	}}}
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
	if err := hubs[0].fill(ctx, z, to); err != nil {
		return w, err
	}
	pool, err := openPool(ctx, dsn, 1)
	if err != nil {
		return w, err
	}
	hubsClosed := w.close
	w.close = func() error { pool.Close(); return hubsClosed() }
	w.deliver = func() (done int, err error) {
		for _, h := range hubs {
			stop, failed := h.deliver(ctx)
			if failed != nil {
				return 0, failed
			}
			defer func() { err = errors.Join(err, stop()) }()
		}
		left := z.webhooks
		for began := time.Now(); left > 0 && time.Since(began) < z.cutoff; time.Sleep(5 * time.Millisecond) {
			if err := pool.QueryRow(ctx, "SELECT count(*) FROM hf_queue").Scan(&left); err != nil {
				return 0, err
			}
		}
		return z.webhooks - left, nil
	}
	return w, nil
}
