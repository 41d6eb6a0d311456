package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

// count asks the server itself.
func count(t testing.TB, dsn, query string, args ...any) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if err := c.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

var faults = map[string]int32{"the answer is lost": noAnswer, "it is cut off before": notSent, "it is lost and the server does not notice": halfOpen}

// Case 42: a COMMIT whose answer is lost. What a call says is the truth: here
// each succeeds, once, because it is found out or done again.
func TestCommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			p, through := newProxy(t, dsn)
			db := opened(t, through, postgres.Options{Timeout: 5 * time.Second, Connections: 1})
			enqueue := func() {
				t.Helper()
				r, err := db.Enqueue(t.Context(), holdfast.Message{Destination: "a", Endpoint: "e", Kind: holdfast.Command, Payload: []byte("x")})
				if err != nil || r[0].Duplicate {
					t.Fatalf("Enqueue = %+v, %v; want a new message", r, err)
				}
			}
			enqueue() // names are known, statements prepared
			p.fault.Store(fault)
			enqueue()
			if n := count(t, dsn, `SELECT count(*) FROM hf_message`); n != 2 || p.lost.Load() != 1 {
				t.Fatalf("%d messages after 2 calls and %d faults", n, p.lost.Load())
			}
			b, err := db.Claim(t.Context(), map[string]int{"a": 10})
			if err != nil || len(b.Claims) != 2 {
				t.Fatalf("Claim = %d claims, %v", len(b.Claims), err)
			}
			for i, c := range b.Claims {
				p.fault.Store(fault * int32(i)) // the second
				won, err := db.Settle(t.Context(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded})
				if err != nil || !won[0] {
					t.Errorf("Settle = %v, %v; want it to have taken effect", won, err)
				}
			}
			if n := count(t, dsn, `SELECT count(*) FROM hf_final WHERE state = 2`); n != 2 || p.lost.Load() != 2 {
				t.Errorf("%d delivered after %d faults", n, p.lost.Load())
			}
			if c := db.Counts(); c.Pending != 0 || c.Claimed != 0 {
				t.Errorf("counts = %+v, want none pending or claimed", c)
			}
			audit(t, db)
		})
	}
}

// Case 42 for any transaction of the store, under load: of each few commits one
// is lost in one of the ways, and what was acknowledged is what there is.
func TestCommitsWithoutAnAnswerUnderLoad(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	if err := sql(t.Context(), dsn, `CREATE TABLE effect (n bigint)`); err != nil {
		t.Fatal(err)
	}
	p, through := newProxy(t, dsn)
	db := opened(t, through, postgres.Options{Timeout: 10 * time.Second})
	p.every.Store(7)
	var told atomic.Int64
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for i := range 40 {
				p.fault.Store(int32(1 + (g+i)%2)) // halfOpen costs a second each time
				switch err := db.Own(t.Context(), `INSERT INTO effect VALUES ($1)`, g*1000+i); {
				case err == nil:
					told.Add(1)
				case !errors.Is(err, holdfast.ErrUnavailable):
					t.Errorf("own: %v", err)
				}
			}
		})
	}
	all.Wait()
	p.every.Store(0)
	p.fault.Store(noFault)
	if n := count(t, dsn, `SELECT count(*) FROM effect`); int64(n) != told.Load() || p.lost.Load() < 20 {
		t.Errorf("%d effects of %d that were acknowledged, %d commits lost", n, told.Load(), p.lost.Load())
	}
	if n := count(t, dsn, `SELECT count(*) - count(DISTINCT n) FROM effect`); n != 0 {
		t.Errorf("%d effects happened twice", n)
	}
}

// Case 42 for callers' own transactions, which nobody runs a second time: what
// Do and Process say is what there is.
func TestCallersCommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			if err := sql(t.Context(), dsn, `CREATE TABLE effect (n bigint)`); err != nil {
				t.Fatal(err)
			}
			p, through := newProxy(t, dsn)
			db := opened(t, through, postgres.Options{Timeout: 5 * time.Second, Connections: 2})
			write := func(ctx context.Context, tx *postgres.Tx) error {
				_, err := tx.Exec(ctx, `INSERT INTO effect VALUES (1)`)
				return err
			}
			m := holdfast.Message{ID: "m", Source: "s", Destination: "a", Endpoint: "e", Kind: holdfast.Command}
			p.fault.Store(fault)
			err := db.Do(t.Context(), write)
			want := 1
			if fault != noAnswer {
				want = 0
			}
			if n := count(t, dsn, `SELECT count(*) FROM effect`); n != want || (err == nil) != (n == 1) || err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("Do: %v, and %d effects", err, n)
			}
			p.fault.Store(noFault)
			if _, err := db.Process(t.Context(), m, time.Hour, func(context.Context, *postgres.Tx, holdfast.Message) ([]byte, error) { return nil, nil }); err != nil {
				t.Fatal(err) // names are known
			}
			m.ID = "n"
			p.fault.Store(fault)
			r, err := db.Process(t.Context(), m, time.Hour, func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
				return nil, write(ctx, tx)
			})
			if n := count(t, dsn, `SELECT count(*) FROM effect`); n != 2*want || (err == nil) != (want == 1) || r.Duplicate || p.lost.Load() != 2 {
				t.Errorf("Process: %+v, %v, and %d effects after %d faults", r, err, n, p.lost.Load())
			}
		})
	}
}

func audit(t testing.TB, db *postgres.DB) {
	t.Helper()
	faults, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// What a transaction's number says when the server is asked later.
func TestJudge(t *testing.T) {
	t.Parallel()
	const yes, no, wait, unknown = "committed", "undone", "wait", "unknown"
	for _, c := range []struct{ was, now, status, want string }{
		{"s h", "s h", "committed", yes},
		{"s h", "s h", "aborted", no},
		{"s h", "s h", "future", no},
		{"s h", "s h", "in progress", wait},
		{"s h", "s h", "", unknown},
		{"s h", "s i", "committed", unknown}, // the number may be another's now
		{"s h", "s i", "aborted", no},
		{"s h", "s i", "future", no},
		{"s h", "s i", "in progress", wait},
		{"s h", "r h", "committed", unknown},
		{"s h", "r h", "aborted", unknown},
		{" ", " ", "committed", unknown}, // it may not say
		{" ", " ", "aborted", unknown},
	} {
		committed, err := postgres.Judge(c.was, c.now, c.status)
		got := wait
		switch {
		case errors.Is(err, postgres.ErrUnknown):
			got = unknown
		case errors.Is(err, holdfast.ErrUnavailable):
			got = no
		case err != nil:
			got = err.Error()
		case committed:
			got = yes
		}
		if got != c.want {
			t.Errorf("judge(%q, %q, %q) = %s, want %s", c.was, c.now, c.status, got, c.want)
		}
	}
	if fmt.Sprint(postgres.ErrUnknown) == "" || errors.Is(postgres.ErrUnknown, holdfast.ErrUnavailable) {
		t.Error("an unknown outcome is not one of which nothing was accepted")
	}
}
