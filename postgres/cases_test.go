package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// Outbox case 52: the database's clock decides. A node whose own clock is
// minutes off delivers neither early nor late, and keeps its lease.
func TestCase52AClockThatIsOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			pass(t, dsn, off)
			db, other := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
			put(t, db, holdfast.Message{ID: "now"}, holdfast.Message{ID: "late", Delay: time.Minute})
			held := until(t, db, 1)
			if got := take(t, db, 10); len(got) > 0 {
				t.Errorf("claimed %s early", got[0].Message.ID)
			}
			time.Sleep(1500 * time.Millisecond) // longer than the lease
			if got := take(t, other, 10); len(got) > 0 || !db.Holds(held[0]) {
				t.Error("the lease of a live node was lost")
			}
			if n := settleAll(t, db, held, done()); n != 1 {
				t.Error("the settlement did not take effect")
			}
			pass(t, dsn, time.Minute)
			until(t, db, 1)
		})
	}
}

// Outbox case 61: many commits are told of by few notifications, none of which
// is part of a transaction that writes.
func TestCase61FewNotifications(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, quick("a"))
	opened(t, dsn, quick("b")) // somebody to be told
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if _, err := c.Exec(t.Context(), "LISTEN hf_wake"); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	began := time.Now()
	for i := range n {
		put(t, db, holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i))})
	}
	took := time.Since(began)
	heard := 0
	for {
		bounded, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := c.WaitForNotification(bounded)
		cancel()
		if err != nil {
			break
		}
		heard++
	}
	if most := int(took/(2*time.Millisecond)) + 10; heard == 0 || heard > most {
		t.Errorf("%d notifications of %d commits in %s, want 1 to %d", heard, n, took, most)
	}
}

// Outbox case 62: rows that were settled while an old transaction is open stay
// in the table as dead ones. A claim does not meet them.
func TestCase62AnOldTransaction(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	old, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close(context.WithoutCancel(t.Context()))
	for _, s := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM hf_queue", "SELECT pg_current_xact_id()"} {
		if _, err := old.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		put(t, db, numbered(500, holdfast.Message{ID: holdfast.ID(fmt.Sprint("r", i, "-"))})...)
		for {
			claims := take(t, db, 500)
			if len(claims) == 0 {
				break
			}
			settleAll(t, db, claims, done())
		}
	}
	if dead := number(t, dsn, "SELECT count(*) FROM hf_final"); dead != 20000 {
		t.Fatalf("%d messages were settled", dead)
	}
	put(t, db, holdfast.Message{ID: "last"})
	pages, err := db.ClaimPages(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if pages > 1000 {
		t.Errorf("a claim of one message beside 20,000 dead rows looks at %d pages", pages)
	}
	until(t, db, 1)
}

// Outbox case 65: a change whose transaction commits late, but began early, is
// not passed over by whoever follows the journal.
func TestCase65CommitsInTheOtherOrder(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Source: "s"})
	var mu sync.Mutex
	var seen []holdfast.ID
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- db.Project(ctx, holdfast.Follower{Name: "f"}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
			mu.Lock()
			defer mu.Unlock()
			for i := range page {
				seen = append(seen, page[i].ID)
			}
			return nil, nil
		})
	}()
	waitFor(t, dsn, "SELECT count(*) FROM hf_follower", 1)
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	early, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := holdfast.Message{ID: "early", Destination: "a", Endpoint: "E"}
	if _, err := db.In(early).Enqueue(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	put(t, db, holdfast.Message{ID: "late"})
	time.Sleep(300 * time.Millisecond)
	mu.Lock()
	before := slices.Clone(seen)
	mu.Unlock()
	if len(before) > 0 {
		t.Errorf("%v were shown while a transaction of before is open", before)
	}
	if err := early.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "both are shown", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) >= 2
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(seen); got != "[early late]" {
		t.Errorf("shown %s, want both once, in the order in which they began", got)
	}
}

// Two operators decide about one message at once: one decision stands.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	for i := range 10 {
		id := holdfast.ID(fmt.Sprint("m", i))
		put(t, a, holdfast.Message{ID: id})
		settleAll(t, a, until(t, a, 1), holdfast.Settlement{State: holdfast.Parked, Outcome: holdfast.Permanent, Reason: holdfast.ReasonPermanent})
		var requeued, discarded error
		var both sync.WaitGroup
		both.Go(func() { _, requeued = a.Requeue(t.Context(), id, holdfast.Requeue{}) })
		both.Go(func() { _, discarded = b.Discard(t.Context(), id, "anna") })
		both.Wait()
		r, err := a.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		// One after the other they both are possible, and the later one holds.
		if requeued != nil || discarded != nil || r.State != holdfast.Pending && r.State != holdfast.Discarded {
			t.Errorf("requeue: %v; discard: %v; the message is %s", requeued, discarded, r.State)
		}
		if r.State == holdfast.Pending {
			settleAll(t, a, until(t, a, 1), done())
		}
	}
}

// What one node counts, the other knows soon.
func TestNodesCountTheSame(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := open(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	put(t, a, numbered(7, holdfast.Message{ID: "a"})...)
	put(t, b, numbered(3, holdfast.Message{ID: "b"})...)
	agree := func(want int64, nodes ...*postgres.DB) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("each node counts %d", want), func() bool {
			return !slices.ContainsFunc(nodes, func(db *postgres.DB) bool { return db.Counts().Pending != want })
		})
	}
	agree(10, a, b)
	a.Die()
	agree(10, b)
	settleAll(t, b, until(t, b, 10), done())
	agree(0, b, opened(t, dsn, quick("c")))
}
