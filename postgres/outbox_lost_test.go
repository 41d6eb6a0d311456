package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/storecopy"
)

func simple(id holdfast.ID) holdfast.Message {
	return holdfast.Message{ID: id, Source: "s", Destination: "a", Endpoint: "e", Kind: holdfast.Command, Payload: []byte("x")}
}

// given is a message that a claim has to read from the table.
func given(t *testing.T, db *postgres.DB, m holdfast.Message) {
	t.Helper()
	put(t, db, m)
	settleAll(t, db, until(t, db, 1), holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.NotStarted})
}

// orphans are rows that are claimed by nobody that there is.
func orphans(t *testing.T, dsn string) int {
	t.Helper()
	return count(t, dsn, `SELECT count(*) FROM hf_queue WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM hf_node)`)
}

// A claim that is under way while the store closes leaves its messages to others.
func TestCloseDuringAClaim(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n"})
	given(t, db, simple("m"))
	lock, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(context.Background())
	for _, text := range []string{"BEGIN", "SELECT FROM hf_node WHERE name = 'n' FOR UPDATE"} {
		if _, err := lock.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = db.Claim(context.Background(), map[string]int{"a": 1}) })
	waitFor(t, dsn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", 1)
	both.Go(func() { _ = db.Close() })
	time.Sleep(100 * time.Millisecond) // it is at the door, too, or will be
	if _, err := lock.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	if n := orphans(t, dsn); n != 0 {
		t.Errorf("%d messages belong to nobody", n)
	}
	if got := until(t, opened(t, dsn, quick("o")), 1); len(got) != 1 {
		t.Errorf("another node claims %d", len(got))
	}
}

// waitFor waits until a query gives a number.
func waitFor(t *testing.T, dsn, query string, want int) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%s is %d", query, want), func() bool { return count(t, dsn, query) >= want })
}

// A claim whose answer is lost, and of which nobody can be asked for a while,
// is given back as soon as it shows; a node that ends before that leaves
// nothing behind.
func TestClaimInDoubt(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprintf("ends=%t", ends), func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			p, through := newProxy(t, dsn)
			o := postgres.Options{Source: "s", Node: "n", Timeout: time.Second}
			if !ends {
				o.Lease = 3 * time.Second // a slow machine keeps it while beats stand
			}
			db := opened(t, through, o)
			given(t, db, simple("m"))
			open := func(yes bool) {
				cfg, err := pgx.ParseConfig(dsn)
				if err != nil {
					t.Fatal(err)
				}
				name := cfg.Database
				cfg.Database = "postgres"
				c, err := pgx.ConnectConfig(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close(context.Background())
				if _, err := c.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", pgx.Identifier{name}.Sanitize(), yes)); err != nil {
					t.Fatal(err)
				}
			}
			lost := func() (holdfast.Batch, error) {
				open(false)
				defer open(true)
				goOn := db.StopBeats() // the commit of a beat would take the fault
				p.fault.Store(noAnswer)
				var beats sync.WaitGroup
				beats.Go(func() {
					for p.fault.Load() == noAnswer {
						<-time.After(time.Millisecond)
					}
					goOn()
				})
				b, err := db.Claim(t.Context(), map[string]int{"a": 1})
				p.fault.Store(noFault) // where no commit has met it
				beats.Wait()
				return b, err
			}
			b, err := lost()
			for n := 0; n < 20 && !errors.Is(err, postgres.ErrUnknown); n++ { // a commit that follows a beat has taken the fault
				if len(b.Claims) > 0 {
					settleAll(t, db, b.Claims, holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.NotStarted})
				}
				settled(t, db) // the fault took a connection with it
				b, err = lost()
			}
			if err == nil || !errors.Is(err, postgres.ErrUnknown) {
				t.Fatalf("Claim = %d, %v; want an outcome that nobody knows", len(b.Claims), err)
			}
			if ends {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
				db = opened(t, dsn, quick("o"))
			}
			got := foundAtOnce(t, db, ends)
			if len(got) == 0 {
				got = until(t, db, 1)
			}
			if len(got) != 1 {
				t.Errorf("then %d are claimed", len(got))
			}
			if n := orphans(t, dsn); n != 0 {
				t.Errorf("%d messages belong to nobody", n)
			}
		})
	}
}

// foundAtOnce has the node look for what it lost, right after a claim that found nothing. The next
// one finds it, though it lies before the place where that claim ended.
func foundAtOnce(t *testing.T, db *postgres.DB, ended bool) []holdfast.Claim {
	t.Helper()
	if ended {
		return nil
	}
	goOn := db.StopBeats()
	defer goOn()
	claim := func() (list []holdfast.Claim) {
		b, err := db.Claim(t.Context(), map[string]int{"a": 1})
		if err != nil && !errors.Is(err, holdfast.ErrUnavailable) { // a slow machine loses the lease
			t.Fatal(err)
		}
		return b.Claims
	}
	if got := claim(); len(got) > 0 {
		return got
	}
	if err := db.FindLost(t.Context()); err != nil {
		return nil
	}
	began, got := time.Now(), claim()
	if len(got) == 0 && time.Since(began) < time.Second && db.Trusts() {
		t.Error("what was given back is not found by the next claim")
	}
	return got
}

// A lease that is lost while a claim's answer is on its way: what the claim has
// taken is another node's, and this one does not hold it.
func TestClaimOfALostLease(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	given(t, a, simple("first"))
	settleAll(t, a, until(t, a, 1), holdfast.Settlement{State: holdfast.Delivered}) // from then on it need not wait for its share
	given(t, a, simple("m"))
	take(t, b, 0)
	var theirs []holdfast.Claim
	mine, err := a.ClaimWith(t.Context(), map[string]int{"a": 1}, func() {
		goOn := a.StopBeats()
		theirs = until(t, b, 1)
		if err := a.BeatNow(t.Context()); err != nil {
			t.Error(err)
		}
		goOn()
	})
	if len(theirs) != 1 || !b.Holds(theirs[0]) {
		t.Fatalf("the other node holds %v", theirs)
	}
	if err == nil || len(mine) != 0 || a.Holds(holdfast.Claim{Seq: theirs[0].Seq, Token: theirs[0].Token}) {
		t.Errorf("Claim = %v, %v; want none, and that the lease is over", mine, err)
	}
}

// A node that was paused wakes up in a store that was moved meanwhile: it takes
// nothing in, hands nothing out, and stops.
func TestPausedNodeInAMovedStore(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"its caller is first": false, "its beat is under way": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pausedInAMovedStore(t, late)
		})
	}
}

func pausedInAMovedStore(t *testing.T, late bool) {
	t.Helper()
	dsn := database(t)
	a := opened(t, dsn, quick("a"))
	given(t, a, simple("m"))
	held := until(t, a, 1)
	goOn := a.StopBeats()
	t.Cleanup(goOn) // where it ends before
	waittest.Until(t, "its lease is over", func() bool {
		if err := a.TickClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		return count(t, dsn, "SELECT count(*) FROM hf_node WHERE until < hf_now()") == 1
	})
	s, err := postgres.OpenSource(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Mark(t.Context(), storecopy.Moved{To: "x", Store: "y", At: "z"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if late {
		time.AfterFunc(100*time.Millisecond, goOn) // until then a call waits for the beat
	} else {
		goOn()
	}
	if _, err := a.Enqueue(t.Context(), simple("late")); !errors.Is(err, storecopy.ErrMoved) {
		t.Errorf("Enqueue = %v, want that the store was moved", err)
	}
	if b, err := a.Claim(t.Context(), map[string]int{"a": 1}); err == nil || len(b.Claims) != 0 || a.Holds(held[0]) {
		t.Errorf("Claim = %d, %v; holds %t", len(b.Claims), err, a.Holds(held[0]))
	}
	select {
	case <-a.Failed():
	case <-time.After(10 * time.Second):
		t.Error("the store goes on")
	}
	if err := a.Err(); !errors.Is(err, storecopy.ErrMoved) || !strings.Contains(err.Error(), "to x") {
		t.Errorf("it says %v", err)
	}
	if n := count(t, dsn, "SELECT count(*) FROM hf_message"); n != 1 {
		t.Errorf("%d messages, want one", n)
	}
	if n := orphans(t, dsn); n != 0 {
		t.Errorf("%d messages belong to nobody", n)
	}
}

// A caller's transaction may bring any number of messages of one key: they are
// looked at some at a time, and claims go on.
func TestManyMessagesOfOneKeyFromACaller(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Timeout: 5 * time.Second})
	put(t, db, simple("m"))
	const n = 100_000
	if err := sql(t.Context(), dsn, fmt.Sprintf(`INSERT INTO hf_queue (seq, lane, due, start, expires, blocked, okey)
		SELECT nextval('hf_seq'), 1, 9223372036854775807, 0, 9223372036854775807, 2, 'k' FROM generate_series(1, %d)`, n)); err != nil {
		t.Fatal(err)
	}
	left := n
	for range 3 {
		began := time.Now()
		b, err := db.Claim(t.Context(), map[string]int{"a": 1})
		if err != nil {
			t.Fatal(err)
		}
		now := count(t, dsn, "SELECT count(*) FROM hf_queue WHERE blocked = 2")
		if wait, told := b.Next["a"]; now > 0 && (!told || wait != 0) {
			t.Errorf("%d are left, and the next claim is to wait for %s, %t", now, wait, told)
		}
		if now >= left || time.Since(began) > 4*time.Second {
			t.Errorf("after %s %d are left of %d", time.Since(began), now, left)
		}
		left = now
	}
	if first := count(t, dsn, "SELECT count(*) FROM hf_queue WHERE okey = 'k' AND blocked = 0"); first != 1 {
		t.Errorf("%d of the key are on the way, want one", first)
	}
}

// A caller's open transaction holds up those who send its very ids, and nobody
// else (outbox: a caller's transaction never blocks the store).
func TestOpenTransactionOfACallerHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Timeout: 10 * time.Second})
	put(t, db, simple(""))
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const held = 8
	for i := range held {
		if _, err := db.In(tx).Enqueue(t.Context(), simple(holdfast.ID(fmt.Sprint("x", i)))); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i := range held {
		all.Go(func() {
			began := time.Now()
			_, _ = db.Enqueue(context.Background(), simple(holdfast.ID(fmt.Sprint("x", i))))
			if took := time.Since(began); took > 14*time.Second { // it may be the last to have its turn, and then waits
				t.Errorf("a held id took %s", took)
			}
		})
	}
	waitFor(t, dsn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", 1)
	for i := range 5 {
		id := holdfast.ID("")
		if i%2 == 1 {
			id = holdfast.ID(fmt.Sprint("mine", i))
		}
		began := time.Now()
		if _, err := db.Enqueue(t.Context(), simple(id)); err != nil || time.Since(began) > 3*time.Second {
			t.Errorf("an innocent message %q took %s, %v", id, time.Since(began), err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if n := count(t, dsn, "SELECT count(*) FROM hf_message WHERE id LIKE '\\002x%'"); n != held {
		t.Errorf("%d of the held ids are there, want %d", n, held)
	}
}

// What callers' transactions add to the counters is summed up, so that they
// stay cheap to read.
func TestCountersOfCallersAreSummedUp(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, quick("n"))
	put(t, db, simple(""))
	if err := sql(t.Context(), dsn, "INSERT INTO hf_tally (owner, lane, pending) SELECT 0, 1, 1 FROM generate_series(1, 30000)"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "there are few rows, and 30001 pending", func() bool {
		return count(t, dsn, "SELECT count(*) FROM hf_tally WHERE owner = 0") < 500 && db.Counts().Pending == 30001
	})
}

// F1-124: the row of a name is gone, by a hand or by half a restore, while a node
// knows its number. Nothing is kept under a number that nobody has, by one statement
// or by several, in a transaction of the caller's neither; and a message of a lost
// name holds up nobody.
func TestNamesThatAreGone(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	other := simple("")
	other.Endpoint = "new"
	send := func() error {
		_, err := a.Enqueue(t.Context(), other)
		return err
	}
	inDo := func() error {
		return a.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			_, err := tx.Enqueue(ctx, other)
			return err
		})
	}
	lose := func() {
		t.Helper()
		if err := sql(t.Context(), dsn, `DELETE FROM hf_route WHERE endpoint = 'new'`); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	lose() // that message has lost its name
	if err := send(); err != nil {
		t.Errorf("by one statement: %v", err)
	}
	lose()
	n := notification("bundled", "plant-1")
	n.Messages[0].Source, n.Messages[0].Endpoint, n.Messages[0].Destination, n.Messages[0].Kind = other.Source, other.Endpoint, other.Destination, other.Kind
	if results, err := a.Bundle(t.Context(), n); err != nil || results[0].Err != nil {
		t.Errorf("in a bundle: %+v, %v", results, err)
	}
	if err := sql(t.Context(), dsn, `DELETE FROM hf_queue WHERE seq = (SELECT first FROM hf_bundle)`, `DELETE FROM hf_message WHERE bundle IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	if err := sql(t.Context(), dsn, `UPDATE hf_message SET route = (SELECT route FROM hf_route WHERE endpoint = 'new')`); err != nil {
		t.Fatal(err)
	}
	lose() // and so have both
	other.ID = "named"
	if err := send(); err != nil {
		t.Errorf("by several: %v", err)
	}
	if err := sql(t.Context(), dsn, `UPDATE hf_message SET route = (SELECT route FROM hf_route WHERE endpoint = 'new')`); err != nil {
		t.Fatal(err)
	}
	lose()
	other.ID = "in-do"
	if err := inDo(); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("in a caller's transaction: %v", err)
	}
	if err := inDo(); err != nil {
		t.Errorf("in the next one: %v", err)
	}
	const nameless = `SELECT count(*) FROM hf_message WHERE route NOT IN (SELECT route FROM hf_route)`
	if n := number(t, dsn, nameless); n != 3 {
		t.Errorf("%d messages have no name, want the three that have lost it", n)
	}
	if got := until(t, b, 1); len(got) != 1 || got[0].Message.ID != "in-do" || got[0].Message.Endpoint != "new" {
		t.Errorf("claimed %v, want the one that has a name", got)
	}
}

// Of messages with ids of ours that share a transaction, one that the database
// refuses fails alone; and a table that somebody has locked fails them in time.
func TestOneOfManyMintedIsAtFault(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Timeout: 5 * time.Second})
	put(t, db, simple(""))
	if err := sql(t.Context(), dsn, "ALTER TABLE hf_message ADD CONSTRAINT odd CHECK (payload <> 'odd')"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			m := simple("")
			if i%10 == 0 {
				m.Payload = []byte("odd")
			}
			if _, err := db.Enqueue(context.Background(), m); (err != nil) != (i%10 == 0) {
				t.Errorf("message %d: %v", i, err)
			}
		})
	}
	all.Wait()
	lock, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(context.Background())
	for _, text := range []string{"BEGIN", "LOCK TABLE hf_message IN ACCESS EXCLUSIVE MODE"} {
		if _, err := lock.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		all.Go(func() {
			if _, err := db.Enqueue(context.Background(), simple("")); err == nil {
				t.Error("written into a table that is locked")
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
