package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

const goqiteJob = "work"

// goqiteSchema reads the library's schema_sqlite.sql, which its users are asked to copy. Sources of
// peers stay out of this repository, so it is read from the module's folder.
func goqiteSchema() (string, error) {
	f := runtime.FuncForPC(reflect.ValueOf(goqite.New).Pointer())
	source, _ := f.FileLine(f.Entry())
	b, err := os.ReadFile(filepath.Join(filepath.Dir(source), "schema_sqlite.sql"))
	if err != nil {
		return "", fmt.Errorf("read goqite's schema (build without -trimpath, on this machine): %w", err)
	}
	return string(b), nil
}

// goqiteOptions are the ways to use the library that vary.
type goqiteOptions struct {
	runner bool          // use the jobs package; otherwise Receive and Delete by hand
	limit  int           // 0: its default
	poll   time.Duration // 0: its default
}

func goqiteRaw() source {
	return source{
		name: "goqite", role: rolePeer, open: goqiteOpener(goqiteOptions{}),
		settings: "v0.4.0, 1 connection as its README has it; Send, Receive and Delete called by 64 goroutines",
	}
}

func goqiteJobs() source {
	return source{
		name: "goqite jobs", role: rolePeer, open: goqiteOpener(goqiteOptions{runner: true}), files: "goqite jobs",
		settings: "v0.4.0, 1 connection as its README has it; runner's defaults: GOMAXPROCS jobs at once, poll every 100 ms",
	}
}

func goqiteJobsTuned() source {
	return source{
		name: "goqite jobs tuned", role: rolePeer, files: "goqite jobs",
		open:     goqiteOpener(goqiteOptions{runner: true, limit: 1000, poll: time.Millisecond}),
		settings: "as goqite jobs, but 1000 jobs at once, poll every 1 ms",
	}
}

type goqiteQueue struct {
	db     *sql.DB
	q      *goqite.Queue
	runner bool
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

func goqiteOpener(o goqiteOptions) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		db, err := openPeer(s.Dir, 1)
		if err != nil {
			return nil, err
		}
		db.SetMaxIdleConns(1)
		if ok, err := has(ctx, db, "goqite"); err != nil {
			return nil, err
		} else if !ok {
			ddl, err := goqiteSchema()
			if err != nil {
				return nil, err
			}
			if _, err := db.ExecContext(ctx, ddl); err != nil {
				return nil, fmt.Errorf("make goqite's schema: %w", err)
			}
		}
		work, stop := context.WithCancel(context.WithoutCancel(ctx))
		g := &goqiteQueue{db: db, q: goqite.New(goqite.NewOpts{DB: db, Name: "bench"}), runner: o.runner, stop: stop}
		switch {
		case s.Deliver == nil:
		case o.runner:
			r := jobs.NewRunner(jobs.NewRunnerOpts{Limit: o.limit, PollInterval: o.poll, Queue: g.q})
			r.Register(goqiteJob, func(ctx context.Context, m []byte) error { return s.Deliver(ctx, 0, m) })
			g.wg.Go(func() { r.Start(work) })
		default:
			for range 64 {
				g.wg.Go(func() { g.receive(work, s.Deliver) })
			}
		}
		return g, nil
	}
}

// receive is the loop that a user of the plain queue writes.
func (g *goqiteQueue) receive(ctx context.Context, deliver Deliver) {
	for ctx.Err() == nil {
		m, err := g.q.ReceiveAndWait(ctx, 100*time.Millisecond)
		if err != nil {
			return
		}
		if deliver(ctx, 0, m.Body) == nil {
			_ = g.q.Delete(context.WithoutCancel(ctx), m.ID) // otherwise it comes again
		}
	}
}

func (g *goqiteQueue) Enqueue(ctx context.Context, _ int, b []byte) error {
	if g.runner {
		_, err := jobs.Create(ctx, g.q, goqiteJob, goqite.Message{Body: b})
		return err
	}
	return g.q.Send(ctx, goqite.Message{Body: b})
}

func (g *goqiteQueue) Handle() *sql.DB { return g.db }

func (g *goqiteQueue) EnqueueTx(ctx context.Context, tx *sql.Tx, b []byte) error {
	return g.q.SendTx(ctx, tx, goqite.Message{Body: b})
}

func (g *goqiteQueue) Fill(ctx context.Context, _, count int, payload func(int) []byte) error {
	return inChunks(count, func(from, to int) error {
		return inTx(ctx, g.db, func(tx *sql.Tx) error {
			for i := from; i < to; i++ {
				m := goqite.Message{Body: payload(i)}
				var err error
				if g.runner {
					_, err = jobs.CreateTx(ctx, tx, g.q, goqiteJob, m)
				} else {
					err = g.q.SendTx(ctx, tx, m)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (g *goqiteQueue) Unsettled(ctx context.Context) (n int, err error) {
	err = g.db.QueryRowContext(ctx, "SELECT count(*) FROM goqite").Scan(&n)
	return n, err
}

func (g *goqiteQueue) Close() error {
	g.stop()
	g.wg.Wait()
	return g.db.Close()
}

// goqiteCycle is the queue without its own loops: the sender also receives and deletes.
type goqiteCycle struct{ *goqiteQueue }

func goqiteCycles() source {
	s := goqiteRaw()
	plain := s.open
	s.open = func(ctx context.Context, s Setup) (Queue, error) {
		s.Deliver = nil
		q, err := plain(ctx, s)
		if err != nil {
			return nil, err
		}
		return goqiteCycle{q.(*goqiteQueue)}, nil
	}
	return s
}

func (g goqiteCycle) Cycle(ctx context.Context, b []byte) error {
	if err := g.q.Send(ctx, goqite.Message{Body: b}); err != nil {
		return err
	}
	m, err := g.q.Receive(ctx)
	if err != nil || m == nil {
		return err
	}
	return g.q.Delete(ctx, m.ID)
}
