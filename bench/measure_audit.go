package main

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// The statements of the bare loop: the columns of a record, and a page by one index.
const (
	bareAuditColumns = `SELECT seq, leaf, hash, id, at, channel, kind, status, failed, site, node, instance, actor, target, corr FROM hf_audit `
	bareAuditAll     = bareAuditColumns + `WHERE log = 1 AND seq > ?1 ORDER BY seq LIMIT 1000`
	bareAuditPage    = bareAuditColumns + `WHERE %s AND at < ?2 ORDER BY at DESC, log DESC, seq DESC LIMIT ?3`
)

// auditPageOf is how many records a person is shown at once.
const auditPageOf = 50

// auditMeasure: an audit log of so many records is verified, and asked by each filter, by each pair of
// filters unless the run is quick, and by all at once: with many, few and no matches, for the first page.
func auditMeasure(z sizes) measure {
	m := measure{name: "audit log", columns: []column{
		{key: "verify", title: "verified", unit: "rec/s"},
		{key: "heap", title: "heap of a verification", unit: "MB", lower: true},
		{key: "led", title: "slowest page that an index leads to", unit: "ms", lower: true},
		{key: "looked", title: "slowest page of all", unit: "ms", lower: true},
	}}
	prepare := func(ctx context.Context, dir string) error { return fillAudit(ctx, dir, siteName(0), z.records) }
	add := func(name string, r role, run func(dir string, z sizes) (values, error)) {
		m.contenders = append(m.contenders, contender{
			name: name, role: r, prepare: prepare, files: "audit", run: func(_ context.Context, c cell) (values, error) { return run(c.prepared, z) },
		})
	}
	add("holdfast", roleOurs, ourAudit)
	add(bareName, roleBare, bareAudit)
	return m
}

func ourAudit(dir string, z sizes) (v values, err error) {
	ctx := context.Background()
	db, err := openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	key, err := audit.OpenKey(filepath.Join(dir, auditKey))
	if err != nil {
		return nil, err
	}
	v, store := values{}, nodestore.New(db, nil).Audit
	peak := heapPeak()
	began := time.Now()
	report, err := audit.Verify(ctx, store, audit.VerifyOptions{Keys: []audit.Public{key.Public()}})
	took := time.Since(began)
	v["verify"], v["heap"] = float64(z.records)/took.Seconds(), float64(peak())/1e6
	if err == nil && (report.Status == audit.Broken || report.Logs[0].Size != int64(z.records)+1 || report.Logs[0].Anchored != report.Logs[0].Size) {
		err = fmt.Errorf("the log is %+v", report)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range auditPages(z) {
		began := time.Now()
		if _, err := store.Query(ctx, audit.Query{Filter: p.filter, Limit: auditPageOf}); err != nil {
			return nil, err
		}
		ms := float64(time.Since(began)) / 1e6
		if v["looked"] = max(v["looked"], ms); p.led {
			v["led"] = max(v["led"], ms)
		}
	}
	return v, nil
}

// heapPeak looks at the heap until the answer is asked for: the most that it grew.
func heapPeak() (grown func() uint64) {
	size := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, most := size(), uint64(0)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if n := size(); n > before {
				most = max(most, n-before)
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-ended
		return most
	}
}

// auditPageAsked is a filter, and whether an index leads to its records.
type auditPageAsked struct {
	filter audit.Filter
	led    bool
}

// auditPages returns the filters of which the first page is timed.
func auditPages(z sizes) (list []auditPageAsked) {
	now := time.Now()
	for _, form := range []string{"many", "few", "none"} {
		pick := func(many string) string {
			return map[string]string{"many": many, "few": rarely, "none": "nobody"}[form]
		}
		from := map[string]time.Time{"many": now.Add(-time.Duration(z.records/2) * time.Second), "few": now.Add(-3 * time.Second), "none": now.Add(time.Hour)}[form]
		fields := []struct {
			set func(f *audit.Filter)
			led bool
		}{
			{func(f *audit.Filter) { f.From = from }, true},
			{func(f *audit.Filter) { f.Site = pick(siteName(0)) }, true},
			{func(f *audit.Filter) { f.Actor = pick("actor-4") }, true},
			{func(f *audit.Filter) { f.Target = pick("target-4") }, true},
			{func(f *audit.Filter) { f.Correlation = pick(fmt.Sprint("corr-", z.records/16)) }, true},
			{func(f *audit.Filter) { f.ErrorsOnly = true }, true},
			{func(f *audit.Filter) { f.Node = pick("node-0") }, false},
			{func(f *audit.Filter) { f.Instance = pick("instance-1") }, false},
			{func(f *audit.Filter) { f.Channel = audit.Channel(pick(string(audit.Message))) }, false},
			{func(f *audit.Filter) { f.Kind = audit.Kind(pick(string(audit.MessageSend))) }, false},
			{func(f *audit.Filter) { f.Status = audit.Status(pick(string(audit.Parked))) }, form == "many"},
		}
		all := auditPageAsked{}
		for i, field := range fields {
			field.set(&all.filter)
			one := auditPageAsked{led: field.led}
			field.set(&one.filter)
			list = append(list, one)
			for j := i + 1; j < len(fields) && !z.brief; j++ {
				two := auditPageAsked{filter: one.filter}
				fields[j].set(&two.filter)
				list = append(list, two)
			}
		}
		list = append(list, all)
	}
	return list
}

// bareAudit reads and hashes the log, and reads a page by each index.
func bareAudit(dir string, z sizes) (v values, err error) {
	c, err := openBareFile(filepath.Join(dir, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	began := time.Now()
	var head audit.Hash
	seq, broken := int64(0), false
	for last := int64(-1); seq > last; {
		last = seq
		if err := c.query(bareAuditAll, func(row []driver.Value) {
			seq = row[0].(int64)
			head = audit.ChainHash(seq, head, audit.LeafHash(row[1].([]byte)))
			broken = broken || !bytes.Equal(head[:], row[2].([]byte))
		}, last); err != nil {
			return nil, err
		}
	}
	v = values{"verify": float64(seq) / time.Since(began).Seconds()}
	if broken || seq != int64(z.records)+1 {
		return nil, fmt.Errorf("%d records, broken: %t", seq, broken)
	}
	for _, p := range []struct {
		where string
		value any
	}{
		{`at > ?1`, int64(0)},
		{`site = ?1`, siteName(0)},
		{`actor = ?1 AND actor <> 'system'`, "actor-4"},
		{`target = ?1`, "target-4"},
		{`corr = ?1`, fmt.Sprint("corr-", z.records/16)},
		{`failed = TRUE AND 0 < ?1`, int64(1)},
	} {
		began := time.Now()
		if err := c.query(fmt.Sprintf(bareAuditPage, p.where), func([]driver.Value) {}, p.value, time.Now().UnixMicro(), int64(auditPageOf+1)); err != nil {
			return nil, err
		}
		v["led"] = max(v["led"], float64(time.Since(began))/1e6)
	}
	return v, nil
}
