package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	hf "github.com/holdfast-mq/holdfast"
)

// followMeasure: messages are settled as delivered, a page of claims at a time: while a follower
// reads the journal, while one will read it later, and while there is none. The shares are of one
// run.
func followMeasure(z sizes) measure {
	m := followColumns("follow")
	for _, s := range queues() {
		m.add(s, nil, func(ctx context.Context, c cell) (values, error) {
			return followRates(ctx, s.open, func(name string, measured func(s Setup) error) error {
				dir := filepath.Join(c.dir, name)
				if err := os.Mkdir(dir, 0o755); err != nil {
					return err
				}
				return measured(Setup{Dir: dir, Destinations: 1})
			}, z)
		})
	}
	return m
}

func pgFollowMeasure(z sizes, p *pgServer) measure {
	m := followColumns("pg follow")
	for _, s := range pgQueues() {
		m.add(s, nil, func(ctx context.Context, c cell) (values, error) {
			return followRates(ctx, s.open, func(name string, measured func(s Setup) error) error {
				_, err := p.cell(c.dir, "", func(dsn string) (values, error) {
					return values{}, measured(Setup{Dir: c.dir, DSN: dsn, Destinations: 1})
				})
				return err
			}, z)
		})
	}
	return m
}

func followColumns(name string) measure {
	return measure{name: name, columns: []column{
		{key: "alone", title: "settled, nothing follows", unit: "msg/s"},
		{key: "known", title: "settled, for a follower that is away", unit: "msg/s"},
		{key: "followed", title: "settled, a follower reads", unit: "msg/s"},
		{key: "away", title: "share with one that is away", unit: "x"},
		{key: "ratio", title: "share with one that reads", unit: "x"},
	}}
}

// followRates measures each case on a fresh store.
func followRates(ctx context.Context, open Opener, fresh func(name string, measured func(s Setup) error) error, z sizes) (values, error) {
	v := values{}
	for _, name := range []string{"alone", "known", "followed"} {
		if err := fresh(name, func(s Setup) (err error) {
			v[name], err = settleRate(context.WithoutCancel(ctx), open, s, z, name)
			return err
		}); err != nil {
			return nil, err
		}
	}
	v["away"], v["ratio"] = v["known"]/v["alone"], v["followed"]/v["alone"]
	return v, nil
}

// settleRate returns messages per second of the time that settlements take.
func settleRate(ctx context.Context, open Opener, s Setup, z sizes, how string) (rate float64, err error) {
	q, err := open(ctx, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	db := q.(interface{ store() ourStore }).store() //nolint:forcetypeassert // it is ours
	if how != "alone" {
		stop, err := followAll(ctx, db)
		if err == nil && how == "known" {
			err, stop = stop(), func() error { return nil }
		}
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	const page = 200
	count := 40000
	if z.brief {
		count = 4000
	}
	var took time.Duration
	for done := 0; done < count; done += page {
		ms := make([]hf.Message, page)
		for i := range ms {
			ms[i] = hf.Message{Destination: destination(0), Endpoint: "E", Payload: payload(done + i)}
		}
		if _, err := db.Enqueue(ctx, ms...); err != nil {
			return 0, err
		}
		b, err := db.Claim(ctx, map[string]int{destination(0): page})
		if err != nil {
			return 0, err
		}
		list := make([]hf.Settlement, len(b.Claims))
		for i, c := range b.Claims {
			list[i] = hf.Settlement{Seq: c.Seq, Token: c.Token, State: hf.Delivered, Outcome: hf.Succeeded, Took: time.Millisecond}
		}
		began := time.Now()
		if _, err := db.Settle(ctx, list...); err != nil {
			return 0, err
		}
		took += time.Since(began)
	}
	return float64(count) / took.Seconds(), nil
}

// followAll reads the journal until stop is called.
func followAll(ctx context.Context, db ourStore) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var end error
	running.Go(func() {
		end = db.Project(ctx, hf.Follower{Name: "bench"}, func(context.Context, []hf.Entry) ([]hf.Row, error) { return nil, nil })
	})
	stop = func() error { cancel(); running.Wait(); return end }
	for {
		all, err := db.Followers(ctx)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		if len(all) > 0 {
			return stop, nil
		}
		time.Sleep(time.Millisecond)
	}
}

func (q *ourQueue) store() ourStore { return q.db }
