package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storetest"
)

// Case 14: everything at once on one file; nobody gets an error, nothing is
// lost, and nothing is handed out twice.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	const producers, each = 3, 120
	ctx := t.Context()
	var produced, done atomic.Int64
	var inHand sync.Map
	var makers, takers sync.WaitGroup
	for p := range producers {
		makers.Go(func() {
			for i := range each {
				m := holdfast.Message{ID: holdfast.ID(fmt.Sprint(p, "-", i)), Destination: fmt.Sprint("lane", i%3), Endpoint: "E", Payload: []byte("x")}
				switch i % 5 {
				case 0:
					m.OrderingKey = fmt.Sprint("k", i%2)
				case 1:
					m.TTL = time.Hour
				}
				var err error
				if i%7 == 0 {
					err = db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
						_, err := tx.Enqueue(ctx, m)
						return err
					})
				} else {
					_, err = db.Enqueue(ctx, m)
				}
				if err != nil {
					t.Error(err)
					return
				}
				produced.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	for range 4 {
		takers.Go(func() {
			for done.Load() < producers*each {
				select {
				case <-stop:
					return
				default:
				}
				b, err := db.Claim(ctx, map[string]int{"lane0": 5, "lane1": 5, "lane2": 5})
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range b.Claims {
					if _, twice := inHand.LoadOrStore(c.Seq, true); twice {
						t.Errorf("%s is in two hands", c.Message.ID)
					}
				}
				for _, c := range b.Claims {
					inHand.Delete(c.Seq)
					s := settlement(c, holdfast.Delivered)
					switch rand.N(6) {
					case 0:
						s.State, s.RetryIn, s.Charged = holdfast.Pending, time.Millisecond, true
					case 1:
						s.State, s.Outcome = holdfast.Pending, holdfast.NotStarted
					case 2:
						s.State = holdfast.Parked
					}
					won, err := db.Settle(ctx, s)
					if err != nil || !won[0] {
						t.Errorf("settle %s: %v, %v", c.Message.ID, won, err)
						return
					}
					if s.State != holdfast.Pending {
						done.Add(1)
					}
				}
			}
		})
	}
	takers.Go(func() { // the sweeper, and people who look
		for done.Load() < producers*each {
			select {
			case <-stop:
				return
			default:
			}
			_, _, err := db.Expire(ctx)
			_, _, err2 := db.Purge(ctx, holdfast.Retention{Delivered: time.Hour})
			_, err3 := db.List(ctx, holdfast.Query{States: []holdfast.State{holdfast.Claimed, holdfast.Pending}})
			_, err4 := db.Keep(ctx, time.Hour, holdfast.Message{ID: holdfast.NewID(), Source: "s", Endpoint: "E"})
			for _, err := range []error{err, err2, err3, err4} {
				if err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	makers.Wait()
	watch := time.AfterFunc(time.Minute, func() { close(stop) })
	takers.Wait()
	if !watch.Stop() {
		t.Errorf("%d of %d messages became final within a minute", done.Load(), produced.Load())
	}
	storetest.Recount(t, db)
	audit(t, db)
}

// A claim that meets an expired message in memory sends its lane back to the
// table, also while another claim is reading there: nothing is lost from sight.
func TestLaneSentBackDuringAReadIsReadAgain(t *testing.T) {
	t.Parallel()
	p := &tap{}
	db := fresh(t, sqlite.Options{}.With(p.wrap))
	defer shut(t, db)
	enqueue(t, db, message("first"))
	claim(t, db, 1)
	db.ForgetFresh("a")
	var calls sync.WaitGroup
	queue := func(call func()) {
		before := db.Queued()
		calls.Go(call)
		waittest.Until(t, "the call is queued", func() bool { return db.Queued() != before })
	}
	reads := 0
	p.set(nil, func(sql string) error {
		if sql != sqlite.ClaimPage {
			return nil
		}
		switch reads++; reads {
		case 1: // a second claim waits for the table, and a message comes
			queue(func() { claim(t, db, 5) })
			queue(func() { enqueue(t, db, withTTL("short", time.Millisecond), message("long")) })
		case 2: // the second reads; a third meets the message in memory, too late
			time.Sleep(5 * time.Millisecond)
			queue(func() {
				for _, c := range claim(t, db, 5) {
					if c.Message.ID != "long" {
						t.Errorf("claimed %s", c.Message.ID)
					}
				}
			})
		}
		return nil
	})
	claim(t, db, 5)
	calls.Wait()
	p.set(nil, nil)
	if got := db.Counts(); got.Pending != 2 || got.Claimed != 2 || got.Expired != 1 {
		t.Errorf("got %+v, want both that live claimed, and the short one expired", got)
	}
}

// Case 18: a reader that holds a snapshot makes the log grow; when it ends,
// the log shrinks back under its limit without a restart. A gauge shows it
// meanwhile.
//
// Edge case 53.
func TestLogShrinksAfterALongReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	const limit = 1 << 20 // the store's own limits are 64 times that: TestPragmasAreSet
	for _, pragma := range []string{"PRAGMA journal_size_limit = 1048576", "PRAGMA wal_autocheckpoint = 64"} {
		if _, err := db.SQL(t.Context(), pragma); err != nil {
			t.Fatal(err)
		}
	}
	write := func(n int) {
		t.Helper()
		for range n {
			enqueue(t, db, holdfast.Message{Destination: "a", Endpoint: "E", Payload: make([]byte, 100<<10)})
		}
	}
	write(1)
	reader, err := raw(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM hf_message").Scan(&n); err != nil {
		t.Fatal(err)
	}
	write(30)
	if grown := db.WALBytes(); grown < 2*limit {
		t.Errorf("the log has %d bytes beside a reader", grown)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	write(3)
	if shrunk := db.WALBytes(); shrunk > limit {
		t.Errorf("the log has %d bytes after the reader, want at most %d", shrunk, limit)
	}
}

// No reader of ours holds a snapshot after its call, however much is left to
// read: what people page through does not make the log grow.
//
// Edge case 53.
func TestReadersLetGoOfTheirSnapshots(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	ctx := t.Context()
	for i := range 30 {
		enqueue(t, db, message(holdfast.ID(fmt.Sprint("m", i))))
		if _, err := db.Keep(ctx, time.Hour, holdfast.Message{ID: holdfast.ID(fmt.Sprint("k", i)), Source: "s", Endpoint: "E"}); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for name, read := range map[string]func(ctx context.Context) error{
		"get":     func(ctx context.Context) error { _, err := db.Get(ctx, "m1"); return err },
		"list":    func(ctx context.Context) error { _, err := db.List(ctx, holdfast.Query{Limit: 5}); return err },
		"kept":    func(ctx context.Context) error { _, err := db.Kept(ctx, holdfast.KeptQuery{Limit: 5}); return err },
		"sources": func(ctx context.Context) error { _, err := db.Sources(ctx, "k1"); return err },
		"known": func(ctx context.Context) error {
			_, _, err := db.Known(ctx, time.Hour, holdfast.Message{ID: "k1", Source: "s", Endpoint: "E"})
			return err
		},
		"overdue": func(ctx context.Context) error { _, err := db.Overdue(ctx); return err },
		"faults":  func(ctx context.Context) error { _, err := db.LaneFaults(ctx); return err },
		"tokens": func(ctx context.Context) error {
			return nodestore.New(db, nil).Tokens.EachToken(ctx, func(string, string, time.Time, time.Time, time.Time, bool) {})
		},
		"purge": func(ctx context.Context) error {
			_, _, err := db.Purge(ctx, holdfast.Retention{Delivered: 1})
			return err
		},
		"forget": func(ctx context.Context) error { _, _, err := db.SweepInbox(ctx, time.Hour); return err },
	} {
		if err := read(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = read(gone) // nobody waits for the answer any more
		enqueue(t, db, message(holdfast.ID("after-"+name)))
		got, err := db.SQL(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		if err != nil {
			t.Fatal(err)
		}
		if got[0][0] != int64(0) || db.WALBytes() != 0 {
			t.Errorf("%s: the log has %d bytes left after a checkpoint (%v): somebody still reads a snapshot", name, db.WALBytes(), got)
		}
	}
}

// Memory does not grow with the number of destinations that are down.
//
// Edge cases 55, 56.
func TestFreshMessagesOfManyLanesAreBounded(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	const lanes, size = 12, 7 << 20
	for i := range lanes {
		lane := fmt.Sprint("lane", i)
		if _, err := db.Claim(t.Context(), map[string]int{lane: 1}); err != nil { // it is read to its end: new ones go to memory
			t.Fatal(err)
		}
		enqueue(t, db, holdfast.Message{ID: holdfast.ID(lane), Destination: lane, Endpoint: "E", Payload: make([]byte, size)})
	}
	if n := db.FreshBytes(); n > 64<<20+size || n < size {
		t.Errorf("%d bytes in memory", n)
	}
	for i := range lanes {
		lane := fmt.Sprint("lane", i)
		b, err := db.Claim(t.Context(), map[string]int{lane: 1})
		if err != nil || len(b.Claims) != 1 || len(b.Claims[0].Message.Payload) != size {
			t.Errorf("%s: %d claims, %v", lane, len(b.Claims), err)
		}
	}
	if n := db.FreshBytes(); n != 0 {
		t.Errorf("%d bytes in memory after all was claimed", n)
	}
}

// One Claim reads a bounded number of payload bytes, and the rest is not lost.
func TestClaimReadsABoundedNumberOfBytes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	const n = 12
	for i := range n {
		enqueue(t, db, holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Destination: "a", Endpoint: "E", Payload: make([]byte, 1<<20)})
	}
	shut(t, db)
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	first := claim(t, db, 100)
	if len(first) != 8 {
		t.Errorf("%d claims at once, want 8 MiB", len(first))
	}
	if rest := claim(t, db, 100); len(first)+len(rest) != n {
		t.Errorf("%d claims in all, want %d", len(first)+len(rest), n)
	}
}

// What cannot be read back stops neither the lane nor the list.
//
// Outbox cases 5, 66; edge case 21.
func TestUnreadableColumnsStopNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	bad := message("bad")
	bad.Headers, bad.Retry = map[string]string{"a": "b"}, &holdfast.RetryPolicy{Attempts: 3}
	enqueue(t, db, bad, message("good"))
	kept := holdfast.Message{ID: "kept", Source: "s", Endpoint: "E", Headers: map[string]string{"a": "b"}}
	if _, err := db.Keep(t.Context(), time.Hour, kept); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	other := raw(t, path)
	run(t, other, "UPDATE hf_body SET headers = '{', retry = '[' WHERE headers IS NOT NULL")
	run(t, other, "UPDATE hf_inbox_body SET headers = '{'")
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	// What was accepted is not what stands there: it is not sent in part.
	if c := claim(t, db, 10); len(c) != 1 || c[0].Message.ID != "good" {
		t.Errorf("claimed %v, want the good one", c)
	}
	if r, err := db.Get(t.Context(), "bad"); err != nil || r.State != holdfast.Parked || r.Reason != holdfast.ReasonUndecodable || r.LastError == "" {
		t.Errorf("the bad one: %+v, %v", r, err)
	}
	if p, err := db.List(t.Context(), holdfast.Query{}); err != nil || len(p.Records) != 2 {
		t.Errorf("%d records, %v", len(p.Records), err)
	}
	if p, err := db.Kept(t.Context(), holdfast.KeptQuery{}); err != nil || len(p.Messages) != 1 {
		t.Errorf("%d kept, %v", len(p.Messages), err)
	} else if k := p.Messages[0]; !k.Damaged || k.Message.ID != "kept" || k.Message.Headers != nil || k.Message.Payload != nil {
		t.Errorf("the kept one is listed as %+v", k)
	}
}
