package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// auditPage is how many records fillAudit writes at once. It signs a checkpoint after each page.
const auditPage = 1000

// auditKey is the file of the key of a filled log.
const auditKey = "audit.key"

// fillAudit makes an audit log of n records and its first one, with chain, tree and checkpoints, as the
// appender makes it. The journal, which would be most of the work, is left out.
func fillAudit(ctx context.Context, dir, site string, n int) (err error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	key, err := audit.OpenKey(filepath.Join(dir, auditKey))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &auditFeed{Journal: db, db: db, site: site, n: n, end: cancel, since: time.Now().Add(-time.Duration(n) * time.Second)}
	f.log = &audit.Log{Store: nodestore.New(db, nil).Audit, Journal: f, Describe: f.describe, Site: site, Node: site, Key: key}
	return errors.Join(f.log.Run(ctx), f.err)
}

// auditFeed is a journal whose entries nobody has written.
type auditFeed struct {
	hf.Journal

	db      *sqlite.DB
	log     *audit.Log
	site    string
	n, done int
	since   time.Time // of the first record; one a second follows
	end     func()
	err     error
}

// Project implements holdfast.Journal, until all records are written.
func (f *auditFeed) Project(ctx context.Context, who hf.Follower, project func(ctx context.Context, page []hf.Entry) ([]hf.Row, error)) error {
	defer f.end()
	f.err = who.Resume(ctx)
	for f.err == nil && f.done < f.n {
		page := make([]hf.Entry, min(auditPage, f.n-f.done))
		for i := range page {
			page[i] = hf.Entry{Seq: int64(f.done + i), Kind: hf.Attempted}
		}
		var list []hf.Row
		if list, f.err = project(ctx, page); f.err == nil {
			f.err = f.db.Side().Change(ctx, side.Cost{Rows: len(list)}, func(tx side.Tx) error { return tx.Put(list...) })
		}
		if f.done += len(page); f.err == nil {
			f.err = f.log.Checkpoint(ctx)
		}
	}
	return nil
}

func (f *auditFeed) describe(_ context.Context, page []hf.Entry) (list []audit.Record, err error) {
	for _, e := range page {
		r, err := auditRecord(f.site, int(e.Seq), f.since.Add(time.Duration(e.Seq)*time.Second))
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// rarely is what the oldest 3 records have in each field that a filter can ask for.
const rarely = "rare"

// auditRecord is record i, of 600 bytes: one of 20 actors and 50 targets, one error in 100, 8 records of a
// correlation id.
func auditRecord(site string, i int, at time.Time) (audit.Record, error) {
	pad, err := json.Marshal(map[string]string{"endpoint": strings.Repeat("fill", 68)})
	r := audit.Record{
		ID: audit.EventID(at, fmt.Append(nil, i)), Occurred: at.Truncate(time.Microsecond),
		Channel: audit.Message, Kind: audit.MessageSend, Status: audit.Success, Site: site, Node: fmt.Sprint("node-", i%4), Instance: fmt.Sprint("instance-", i%3),
		Actor: fmt.Sprint("actor-", i%20), Target: fmt.Sprint("target-", i%50), Correlation: fmt.Sprint("corr-", i/8), Extra: pad,
	}
	switch {
	case i < 3:
		r.Node, r.Instance, r.Actor, r.Target, r.Correlation = rarely, rarely, rarely, rarely, rarely
	case i%100 == 0:
		r.Status = audit.Parked
	}
	return r, err
}
