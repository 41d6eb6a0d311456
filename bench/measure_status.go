package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/track"
)

const (
	bareIDs = `SELECT id FROM hf_message WHERE lane = 1 ORDER BY seq`
	// id
	bareStatus = `SELECT m.seq, m.state, m.tries, m.created, m.due, m.settled, r.endpoint, b.payload FROM hf_message m
JOIN hf_route r ON r.route = m.route JOIN hf_body b ON b.seq = m.seq WHERE m.id = ?1`
)

// statusMeasure: a site is asked what became of a call, two callers at a time, while its backlog of calls
// drains.
func statusMeasure(z sizes) measure {
	m := measure{name: "status", columns: []column{
		{key: "p50", title: "of a call p50", unit: "ms", lower: true},
		{key: "p99", title: "of a call p99", unit: "ms", lower: true},
	}}
	ours := queues()[0]
	bare := bareDrainer(500)
	bare.settings = "bare drain, and one connection for each caller"
	m.add(ours, func(_ context.Context, dir string) error { return fill(ours.open, dir, 1, 0, z.backlog) }, func(_ context.Context, c cell) (values, error) {
		return statusTimes(c, ours.open, z, func(q Queue, _ string) (func(id []byte) error, func() error, error) {
			db := q.(*ourQueue).db.(*sqlite.DB) //nolint:forcetypeassert // it is ours
			t := &track.Tracker{Outbox: db, Past: nodestore.New(db, nil).Operations, Category: func(string) (hf.Category, bool) { return hf.CategoryExternalSystem, true }}
			return func(id []byte) error {
				_, err := t.Status(context.Background(), hf.IDOf([16]byte(id)))
				return err
			}, func() error { return nil }, nil
		})
	})
	m.add(bare, func(_ context.Context, dir string) error { return fillBare(dir, 0, z.backlog) }, func(_ context.Context, c cell) (values, error) {
		return statusTimes(c, bare.open, z, func(_ Queue, dir string) (func(id []byte) error, func() error, error) {
			conn, err := openBareFile(filepath.Join(dir, "holdfast.db"))
			if err != nil {
				return nil, nil, err
			}
			return func(id []byte) error {
				found := false
				err := conn.query(bareStatus, func([]driver.Value) { found = true }, id)
				if err == nil && !found {
					err = fmt.Errorf("message %x is not there", id)
				}
				return err
			}, conn.Close, nil
		})
	})
	return m
}

// statusTimes asks while a backlog drains. asker makes what one caller asks with, and what ends it.
func statusTimes(c cell, open Opener, z sizes, asker func(q Queue, dir string) (ask func(id []byte) error, end func() error, err error)) (v values, err error) {
	if err := copyDir(c.prepared, c.dir); err != nil {
		return nil, err
	}
	ids, err := backlogIDs(c.dir)
	if err != nil {
		return nil, err
	}
	ctx, f := context.Background(), newFlow(0)
	q, err := open(ctx, Setup{Dir: c.dir, Destinations: 1, Deliver: f.deliver})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	var times [2][]float64
	var errs [2]error
	var all sync.WaitGroup
	drained := make(chan struct{})
	for i := range times {
		ask, end, err := asker(q, c.dir)
		if err != nil {
			close(drained)
			all.Wait()
			return nil, err
		}
		all.Go(func() {
			defer func() { errs[i] = errors.Join(errs[i], end()) }()
			for errs[i] == nil {
				select {
				case <-drained:
					return
				default:
				}
				began := time.Now()
				errs[i] = ask(ids[rand.IntN(len(ids))])
				times[i] = append(times[i], float64(time.Since(began))/1e6)
				time.Sleep(time.Millisecond)
			}
		})
	}
	n, err := f.settled(ctx, q, z.backlog, time.Now().Add(z.cutoff))
	close(drained)
	all.Wait()
	if err == nil && n == 0 {
		err = errors.New("nothing was settled")
	}
	asked := slices.Concat(times[0], times[1])
	return values{"p50": percentile(asked, 50), "p99": percentile(asked, 99)}, errors.Join(err, errs[0], errs[1])
}

func backlogIDs(dir string) (ids [][]byte, err error) {
	c, err := openBareFile(filepath.Join(dir, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	err = c.query(bareIDs, func(row []driver.Value) { ids = append(ids, row[0].([]byte)) })
	return ids, errors.Join(err, c.Close())
}
