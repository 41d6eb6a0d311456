package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// What a site keeps of the calls in recordMeasure.
const (
	keepNothing = "off"
	keepTracks  = "tracked" // a record of each call that was purged
	keepAudit   = "audited" // the same, and the audit log
)

// purgedAfter is how long the calls of recordMeasure stay once they are settled.
const purgedAfter = 200 * time.Millisecond

// recordMeasure: the cycle of a site whose calls are purged soon after they are settled. With the audit
// log, the clock runs until it has the last entry of the journal.
func recordMeasure(z sizes) measure {
	m := measure{name: "record cycle/64", columns: []column{
		{key: keepNothing, title: "nothing is kept", unit: "msg/s"},
		{key: keepTracks, title: "tracked", unit: "msg/s"},
		{key: keepAudit, title: "tracked and audited", unit: "msg/s"},
		{key: "tracks", title: "share with tracking", unit: "x"},
		{key: "audit", title: "share with the audit log", unit: "x"},
	}}
	z.cell, z.cutoff = z.recorded, z.recorded+z.cutoff
	for _, s := range queues() {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			v := values{}
			for _, keep := range []string{keepNothing, keepTracks, keepAudit} {
				dir := filepath.Join(c.dir, keep)
				if err := os.Mkdir(dir, 0o755); err != nil {
					return nil, err
				}
				rate, err := recordRate(dir, z, keep)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", keep, err)
				}
				v[keep] = rate
			}
			v["tracks"], v["audit"] = v[keepTracks]/v[keepNothing], v[keepAudit]/v[keepNothing]
			return v, nil
		})
	}
	return m
}

func recordRate(dir string, z sizes, keep string) (rate float64, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := openStore(ctx, dir)
	if err != nil {
		return 0, err
	}
	f := newFlow(z.window)
	s := &keepingSite{ourQueue: dispatchOurs(ctx, db, routesTo(Setup{Destinations: 1, Deliver: f.deliver}), nil), db: db}
	defer func() { err = errors.Join(err, s.Close()) }()
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	sweeper := &hf.Sweeper{Outbox: db, Every: purgedAfter, Retention: hf.Retention{Delivered: purgedAfter}}
	if keep != keepNothing {
		sweeper.Retention.Track, sweeper.Retention.Tracking = map[string]hf.Category{destination(0): hf.CategoryExternalSystem}, time.Hour
	}
	if keep == keepAudit {
		if s.log, err = siteLog(dir, db); err != nil {
			return 0, err
		}
		parts.Go(func() { _ = s.log.Run(ctx) })
		parts.Go(func() { _ = s.log.Checkpoints(ctx) })
	}
	parts.Go(func() { _ = sweeper.Run(ctx) })
	v, err := f.cycle(ctx, s, z, 64)
	if err == nil && s.log != nil && s.log.Failures() > 0 {
		err = errors.New("the audit log could not be written")
	}
	return v["rate"], err
}

// siteLog returns the audit log of a site whose calls are messages to destination 0.
func siteLog(dir string, db *sqlite.DB) (*audit.Log, error) {
	key, err := audit.OpenKey(filepath.Join(dir, "audit.key"))
	if err != nil {
		return nil, err
	}
	store := nodestore.New(db, nil).Audit
	d := &audit.Describer{
		Site: "plant-0", Node: "plant-0", Incarnation: store.Incarnation,
		Category: func(string) hf.Category { return hf.CategoryExternalSystem },
	}
	return &audit.Log{Store: store, Journal: db, Describe: d.Describe, Site: d.Site, Node: d.Node, Key: key}, nil
}

// keepingSite is a queue of calls as a program of a site makes them.
type keepingSite struct {
	*ourQueue

	db  *sqlite.DB
	log *audit.Log // nil: none
}

func (s *keepingSite) Enqueue(ctx context.Context, dest int, payload []byte) error {
	m := hf.Message{Destination: destination(dest), Endpoint: "Bench", Payload: payload}
	m.Headers = notify.Origin{Instance: "filler-3", Script: "watch", Execution: "run-4711"}.Headers()
	_, err := s.db.Enqueue(ctx, m)
	return err
}

// Unsettled counts a call that is settled, but whose entries the audit log has not read, as not settled.
func (s *keepingSite) Unsettled(ctx context.Context) (int, error) {
	n, err := s.ourQueue.Unsettled(ctx)
	if err != nil || n > 0 || s.log == nil {
		return n, err
	}
	all, err := s.db.Followers(ctx)
	for _, f := range all {
		if !f.Unread.IsZero() {
			n = 1
		}
	}
	return n, err
}
