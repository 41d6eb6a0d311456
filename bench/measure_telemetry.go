package main

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/nodestore"
)

const (
	bareLeavesAfter = `SELECT seq, leaf FROM hf_audit WHERE log = 1 AND seq > ?1 ORDER BY seq LIMIT 500`
	// seq, id, at, corr, leaf, hash; the other columns are the same in all rows.
	bareRecord = `INSERT INTO hf_audit (log, seq, id, at, stored, channel, kind, status, failed, site, node, instance, actor, target, corr, leaf, hash)
VALUES (1, ?1, ?2, ?3, ?3, 'Message', 'MessageSend', 'Success', 0, 'plant-0', 'node-0', 'instance-0', 'actor-0', 'target-0', ?4, ?5, ?6)`
)

// telemetryMeasure: a site's audit log goes to central over TLS; both are in this process and durable.
func telemetryMeasure(z sizes) measure {
	m := measure{name: "telemetry drain", columns: []column{{key: "rate", unit: "rec/s"}}}
	prepare := func(ctx context.Context, dir string) error { return fillAudit(ctx, dir, siteName(0), z.shipped) }
	add := func(name string, r role, settings string, drain func(context.Context, drainCell) (values, error)) {
		m.contenders = append(m.contenders, contender{
			name: name, role: r, settings: settings, prepare: prepare, files: "telemetry",
			run: func(_ context.Context, c cell) (values, error) {
				in := drainCell{site: filepath.Join(c.dir, "site"), central: filepath.Join(c.dir, "central"), z: z}
				if err := errors.Join(copyDir(c.prepared, in.site), os.Mkdir(in.central, 0o755)); err != nil {
					return nil, err
				}
				syncDisks()
				return drain(context.Background(), in)
			},
		})
	}
	add("holdfast", roleOurs, "", drainTelemetry)
	add("bare telemetry", roleBare, "pages of 500 leaves by number, 4 at a time, plain POSTs over TLS; one commit a page of the rows that central has; no checks, no hashes, no JSON", bareTelemetry)
	return m
}

func drainTelemetry(ctx context.Context, d drainCell) (v values, err error) {
	o, err := openOffice(ctx, d.central, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	db, err := openStore(ctx, d.site)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := o.plant(ctx, d.site, siteName(0), o.address, db)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	logs, err := nodestore.New(db, nil).Telemetry.Logs(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- s.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, <-ended) }()
	for {
		there, err := o.copies.Copied(ctx, siteName(0), []string{logs[0].Origin})
		switch {
		case err != nil:
			return nil, err
		case there[0].Size == logs[0].Size && len(there[0].Gaps) == 0:
			return values{"rate": float64(logs[0].Size) / time.Since(began).Seconds()}, nil
		case time.Since(began) > d.z.cutoff+20*time.Second:
			return nil, fmt.Errorf("central has %+v of %d records", there[0], logs[0].Size)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// bareCopies keeps what arrives: one commit for each request.
type bareCopies struct {
	mu   sync.Mutex
	conn *bareConn
}

func (b *bareCopies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ms, err := readFrames(r.Body)
	if err == nil {
		err = b.keep(ms)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (b *bareCopies) keep(ms []bareMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, hash := time.Now().UnixMicro(), make([]byte, 32)
	return b.conn.tx(func() error {
		for i := range ms {
			seq := int64(binary.BigEndian.Uint64(ms[i].id[8:]))
			if err := b.conn.exec(bareRecord, seq, ms[i].id[:], now+seq, fmt.Sprint("corr-", seq/8), ms[i].payload, hash); err != nil {
				return err
			}
		}
		return nil
	})
}

func bareTelemetry(ctx context.Context, d drainCell) (v values, err error) {
	conn, err := openBare(d.central)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	files, err := makeCert(d.central)
	if err != nil {
		return nil, err
	}
	server, address, err := serveTLS(files, &bareCopies{conn: conn})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	client, err := trusting(files.cert, link.AtOnce)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	from, err := openBareFile(filepath.Join(d.site, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	pages, errs := make(chan []bareMessage), make([]error, link.AtOnce)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for ms := range pages {
				errs[i] = errors.Join(errs[i], send(ctx, client, "https://"+address, ms))
			}
		})
	}
	last, err := int64(0), error(nil)
	for more := true; more && err == nil; {
		var ms []bareMessage
		err = from.query(bareLeavesAfter, func(row []driver.Value) {
			last = row[0].(int64)
			m := bareMessage{payload: row[1].([]byte)}
			binary.BigEndian.PutUint64(m.id[8:], uint64(last))
			ms = append(ms, m)
		}, last)
		if more = len(ms) > 0; more {
			pages <- ms
		}
	}
	close(pages)
	all.Wait()
	return values{"rate": float64(last) / time.Since(began).Seconds()}, errors.Join(append(errs, err, from.Close())...)
}
