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
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// liveEvery is the interval of new messages at the site while its backlog drains.
const liveEvery = 20 * time.Millisecond

// siteMeasure: a site's backlog goes to central over TLS; both are in this process and durable.
// With a trip, the bytes of each direction are delayed by half of it.
func siteMeasure(z sizes, trip time.Duration) measure {
	m := measure{name: "site drain", columns: []column{
		{key: "rate", unit: "msg/s"},
		{key: "live99", title: "live p99", unit: "ms", lower: true},
	}}
	if trip > 0 {
		m.name = fmt.Sprintf("site drain/%v", trip)
	}
	prepare := func(_ context.Context, dir string) error { return fillNotices(dir, z.backlog) }
	add := func(name string, r role, settings string, drain func(context.Context, drainCell) (values, error)) {
		m.contenders = append(m.contenders, contender{
			name: name, role: r, settings: settings, prepare: prepare, files: "site",
			run: func(_ context.Context, c cell) (values, error) {
				in := drainCell{site: filepath.Join(c.dir, "site"), central: filepath.Join(c.dir, "central"), trip: trip, z: z}
				if err := errors.Join(copyDir(c.prepared, in.site), os.Mkdir(in.central, 0o755)); err != nil {
					return nil, err
				}
				syncDisks()
				return drain(context.Background(), in)
			},
		})
	}
	add("holdfast", roleOurs, "", drainSite)
	add(bareSiteName, roleBare, bareSiteSettings, bareSiteDrain)
	return m
}

// drainCell says where a site's backlog is, and where it goes.
type drainCell struct {
	site, central string
	trip          time.Duration
	z             sizes
}

// way returns an address that forwards to another, and a function that closes it.
func (d drainCell) way(to string) (address string, end func() error, err error) {
	if d.trip == 0 {
		return to, func() error { return nil }, nil
	}
	f, err := openFar(to, d.trip/2)
	if err != nil {
		return "", nil, err
	}
	return f.address(), f.Close, nil
}

func drainSite(ctx context.Context, d drainCell) (v values, err error) {
	live := &liveNotices{sent: map[hf.ID]time.Time{}}
	o, err := openOffice(ctx, d.central, live.stored)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	address, end, err := d.way(o.address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	db, err := openStore(ctx, d.site)
	if err != nil {
		return nil, err
	}
	s, err := o.plant(ctx, d.site, siteName(0), address, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	began := time.Now()
	if err := db.ConfigureLane(ctx, link.Lane, hf.LaneSettings{LiveFirst: true}); err != nil {
		return nil, err
	}
	q := dispatchOurs(ctx, db, map[string]hf.Route{link.Lane: {Deliverer: s, Limit: link.AtOnce}}, s.Close)
	defer func() { err = errors.Join(err, q.Close()) }()
	left, err := live.beside(ctx, db, began.Add(d.z.cutoff), d.z.backlog/100)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	return values{"rate": float64(d.z.backlog+live.count-left) / took.Seconds(), "live99": percentile(live.delays(), 99)}, nil
}

// liveNotices are enqueued while the backlog drains.
type liveNotices struct {
	count int

	mu    sync.Mutex
	sent  map[hf.ID]time.Time // not stored at central yet
	waits []float64           // milliseconds from before the enqueue until it is stored at central
}

func (l *liveNotices) stored(id hf.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.sent[id]; ok {
		delete(l.sent, id)
		l.waits = append(l.waits, float64(time.Since(at))/1e6)
	}
}

// beside enqueues one message after the other while the site's backlog drains. It returns when all
// messages are gone, or at the cutoff, and reports how many are left. The last few of the backlog
// go alone: with a long trip, one live message is always on its way.
func (l *liveNotices) beside(ctx context.Context, db *sqlite.DB, cutoff time.Time, few int) (left int, err error) {
	for next := time.Now(); ; next = next.Add(liveEvery) {
		for time.Now().Before(next) {
			if left = int(db.Counts().Pending); left == 0 {
				return 0, nil
			}
			time.Sleep(time.Millisecond)
		}
		if left = int(db.Counts().Pending); left == 0 || time.Now().After(cutoff) {
			return left, nil
		}
		if left <= few {
			continue
		}
		m, err := notice(hf.NewID(), siteName(0))
		if err != nil {
			return left, err
		}
		l.mu.Lock()
		l.sent[m.ID] = time.Now()
		l.mu.Unlock()
		if _, err := db.Enqueue(ctx, m); err != nil {
			return left, err
		}
		l.count++
	}
}

// delays counts messages that have not arrived until now.
func (l *liveNotices) delays() []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waits
	for _, at := range l.sent {
		all = append(all, float64(time.Since(at))/1e6)
	}
	return all
}
