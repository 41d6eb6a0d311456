package storecopy_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
	"github.com/holdfast-mq/holdfast/storetest"
)

// childEnv makes the test binary a process that copies and is there to be killed.
const childEnv = "HOLDFAST_TEST_COPY"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := copyStore(context.Background(), os.Args[1], os.Args[2], nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Main(m, pgtest.Options{}))
}

type full = storetest.Full

func isDSN(at string) bool { return strings.Contains(at, "://") }

func open(t testing.TB, at string) full {
	t.Helper()
	db, err := tryOpen(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func tryOpen(ctx context.Context, at string) (full, error) {
	if isDSN(at) {
		return postgres.Open(ctx, at, postgres.Options{Source: "shop"})
	}
	return sqlite.Open(ctx, at, sqlite.Options{Source: "shop", Reserve: -1})
}

func shut(t testing.TB, db interface{ Close() error }) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func newFile(t testing.TB) string { t.Helper(); return filepath.Join(t.TempDir(), "holdfast.db") }

func copyStore(ctx context.Context, from, to string, watch func(storecopy.Status)) (err error) {
	source, err := tryOpenSource(ctx, from)
	if err != nil {
		return err
	}
	defer source.Close()
	var target interface {
		storecopy.Importer
		Close() error
	}
	if isDSN(to) {
		o, err := source.Origin(ctx)
		if err != nil {
			return err
		}
		target, err = postgres.OpenTarget(ctx, to, o)
		if err != nil {
			return err
		}
	} else if target, err = sqlite.OpenTarget(ctx, to, sqlite.Options{Reserve: -1}); err != nil {
		return err
	}
	_, err = storecopy.Copy(ctx, source, target, storecopy.Options{From: from, To: to, Watch: watch})
	return errors.Join(err, target.Close())
}

func copied(t testing.TB, from, to string) {
	t.Helper()
	if err := copyStore(t.Context(), from, to, nil); err != nil {
		t.Fatalf("copy %s to %s: %v", from, to, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, db full, ms ...holdfast.Message) {
	t.Helper()
	for i := range ms {
		ms[i].Endpoint = cmp.Or(ms[i].Endpoint, "E")
		ms[i].Destination = cmp.Or(ms[i].Destination, "a")
	}
	_, err := db.Enqueue(t.Context(), ms...)
	must(t, err)
}

// ends settles the messages of a lane that are due, each in its way.
func ends(t testing.TB, db full, lane string, how map[holdfast.ID]holdfast.Settlement) {
	t.Helper()
	b, err := db.Claim(t.Context(), map[string]int{lane: 100})
	must(t, err)
	for _, c := range b.Claims {
		s := how[c.Message.ID]
		s.Seq, s.Token = c.Seq, c.Token
		_, err := db.Settle(t.Context(), s)
		must(t, err)
		delete(how, c.Message.ID)
	}
	if len(how) > 0 {
		t.Fatalf("not claimed: %v", how)
	}
}

func arrival(id holdfast.ID) holdfast.Message {
	return holdfast.Message{
		ID: id, Source: "plant-7", Endpoint: "In", Kind: holdfast.Command, Payload: []byte("in " + id), CorrelationID: "c", Headers: map[string]string{"h": "1"},
		Attempt: holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: time.Hour},
	}
}

// filled makes a store with everything that there can be.
func filled(t testing.TB, at string) {
	t.Helper()
	ctx, db := t.Context(), open(t, at)
	must(t, db.ConfigureLane(ctx, "strict", holdfast.LaneSettings{Strict: true}))
	must(t, db.SetLaneFault(ctx, "b", "certificate not trusted"))
	_, err := db.NotifyEnded(ctx, true, false)
	must(t, err)
	must(t, nodestore.New(db, nil).Tokens.CreateToken(ctx, "ops", "operator", 0, [32]byte{1, 2, 3}, ""))
	must(t, nodestore.New(db, nil).Sites.AddSite(ctx, "plant-7", [32]byte{7}, ""))
	if _, err := nodestore.New(db, nil).Sites.EnrollSite(ctx, [32]byte{7}, [32]byte{8}); err != nil {
		t.Fatal(err)
	}
	must(t, nodestore.New(db, nil).Sites.AddSite(ctx, "plant-8", [32]byte{9}, ""))

	policy := &holdfast.RetryPolicy{Attempts: 3}
	put(t, db,
		holdfast.Message{ID: "delivered", Payload: []byte("x"), CorrelationID: "corr", Headers: map[string]string{"k": "v"}},
		holdfast.Message{ID: "failed", Retry: policy, TTL: 5 * time.Hour, Payload: []byte{0, 1, 255}},
		holdfast.Message{ID: "parked", Kind: holdfast.Command, TTL: 3 * time.Hour},
		holdfast.Message{ID: "again", TTL: time.Hour}, holdfast.Message{ID: "discarded"}, holdfast.Message{ID: "waits"},
		holdfast.Message{ID: "late", Destination: "b", Delay: 2 * time.Hour, TTL: time.Hour},
		holdfast.Message{ID: "0198b1c2-0000-7000-8000-000000000001", Destination: "b", Payload: make([]byte, 300_000)},
		holdfast.Message{ID: "gone", Destination: "c", TTL: time.Millisecond})
	for i := range 4 {
		put(t, db, holdfast.Message{ID: holdfast.ID(fmt.Sprintf("key-%d", i)), Destination: "keys", OrderingKey: "k", Delay: time.Duration(i/3) * time.Hour},
			holdfast.Message{ID: holdfast.ID(fmt.Sprintf("strict-%d", i)), Destination: "strict", OrderingKey: "k"})
	}
	failure := holdfast.Settlement{State: holdfast.Pending, RetryIn: 30 * time.Minute, Outcome: holdfast.Unreachable, Charged: true, Error: "no route to host", Took: time.Second, Maybe: true}
	parked := holdfast.Settlement{State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Outcome: holdfast.Permanent, Code: "422", Error: "no such order", Charged: true}
	ends(t, db, "a", map[holdfast.ID]holdfast.Settlement{
		"delivered": {State: holdfast.Delivered, Outcome: holdfast.Succeeded}, "failed": failure, "parked": parked, "again": parked, "discarded": parked,
		"waits": {Outcome: holdfast.NotStarted},
	})
	ends(t, db, "keys", map[holdfast.ID]holdfast.Settlement{"key-0": failure})
	ends(t, db, "strict", map[holdfast.ID]holdfast.Settlement{"strict-0": parked})
	_, err = db.Requeue(ctx, "again", holdfast.Requeue{Force: true, Actor: "mo", TTL: 9 * time.Hour})
	must(t, err)
	_, err = db.Discard(ctx, "discarded", "mo")
	must(t, err)
	waittest.Until(t, "one has expired", func() bool {
		n, _, err := db.Expire(ctx)
		must(t, err)
		return n > 0
	})

	_, err = db.Keep(ctx, time.Hour, arrival("kept"), arrival("done"))
	must(t, err)
	must(t, db.Done(ctx, "plant-7", "done", []byte("thanks")))
	_, err = db.Record(ctx, time.Hour, holdfast.Processed{Message: arrival("processed"), Response: []byte("ok")})
	must(t, err)
	shut(t, db)
}

// all is everything that can be read of a store.
type all struct {
	Records []holdfast.Record
	Kept    []holdfast.KeptMessage
	Known   []holdfast.Result
	Counts  holdfast.Counts
	Faults  []holdfast.LaneFaultInfo
	Tokens  []string
	Sites   []sites.Info
	Now     time.Time
}

func read(t testing.TB, at string) (a all) {
	t.Helper()
	ctx, db := t.Context(), open(t, at)
	defer shut(t, db)
	p, err := db.List(ctx, holdfast.Query{Limit: 500})
	must(t, err)
	for _, r := range p.Records {
		if r, err = db.Get(ctx, r.Message.ID); err != nil {
			t.Fatal(err)
		}
		a.Records = append(a.Records, r)
	}
	k, err := db.Kept(ctx, holdfast.KeptQuery{})
	must(t, err)
	a.Kept = k.Messages
	known, results, err := db.Known(ctx, time.Hour, arrival("done"), arrival("processed"), arrival("unknown"))
	must(t, err)
	if !slices.Equal(known, []bool{true, true, false}) {
		t.Errorf("known: %v", known)
	}
	a.Known, a.Faults = results[:2], nil
	if a.Faults, err = db.LaneFaults(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, nodestore.New(db, nil).Tokens.EachToken(ctx, func(name, role string, _, _, _ time.Time, _ bool) { a.Tokens = append(a.Tokens, name+" "+role) }))
	if a.Sites, err = nodestore.New(db, nil).Sites.Sites(ctx); err != nil || len(a.Sites) != 2 {
		t.Errorf("sites: %v, %v", a.Sites, err)
	}
	if name, err := nodestore.New(db, nil).Sites.FindSite(ctx, [32]byte{8}); err != nil || name != "plant-7" {
		t.Errorf("site of the credential: %q, %v", name, err)
	}
	waittest.Until(t, "the inbox is counted, which may be in the background", func() bool {
		a.Counts = db.Counts()
		return a.Counts.Inbox == 3
	})
	a.Counts.Received, a.Counts.Duplicates = 0, 0
	for name, l := range a.Counts.Lanes {
		if l == (holdfast.LaneCounts{}) {
			delete(a.Counts.Lanes, name)
		}
	}
	return a
}

// about compares times: the stores' clocks are read one after the other.
func about() gocmp.Option {
	// A version is of its store alone.
	return gocmp.Options{
		// At once: byte by byte takes as long as the rest of the test.
		gocmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, gocmp.Comparer(bytes.Equal)),
		cmpopts.EquateApproxTime(2 * time.Second), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(notify.Channel{}, "Version"), cmpopts.IgnoreFields(notify.List{}, "Version"),
	}
}

// Everything is there after a move to PostgreSQL and back.
func TestEverythingIsMoved(t *testing.T) {
	t.Parallel()
	first, second, third := newFile(t), pgtest.Shared(t).Database(t), newFile(t)
	filled(t, first)
	want := read(t, first)
	if len(want.Records) < 17 {
		t.Fatalf("the source has %d messages", len(want.Records))
	}
	if _, _, err := postgres.Migrate(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	unused(t, second)
	copied(t, first, second)
	if diff := gocmp.Diff(want, read(t, second), about()); diff != "" {
		t.Errorf("in PostgreSQL (-want +got):\n%s", diff)
	}
	unused(t, second)
	copied(t, second, third)
	if diff := gocmp.Diff(want, read(t, third), about()); diff != "" {
		t.Errorf("back in SQLite (-want +got):\n%s", diff)
	}
	for _, at := range []string{first, second} {
		if _, err := tryOpen(t.Context(), at); !errors.Is(err, storecopy.ErrMoved) || !strings.Contains(err.Error(), "--undo") {
			t.Errorf("open a store that was moved: %v", err)
		}
	}

	// What goes on goes on.
	db := open(t, third)
	defer shut(t, db)
	b, err := db.Claim(t.Context(), map[string]int{"keys": 10, "strict": 10})
	must(t, err)
	if len(b.Claims) != 0 {
		t.Errorf("claimed %v: one key waits for a retry, the other is stopped by a parked message", b.Claims)
	}
	_, err = db.Discard(t.Context(), "strict-0", "mo")
	must(t, err)
	for i := 1; i < 4; i++ {
		ends(t, db, "strict", map[holdfast.ID]holdfast.Settlement{holdfast.ID(fmt.Sprintf("strict-%d", i)): {State: holdfast.Delivered, Outcome: holdfast.Succeeded}})
	}
}

// The clocks of the two differ: what is left of times stays.
func TestTimesAreKeptAsDurations(t *testing.T) {
	t.Parallel()
	const ahead = 1000 * time.Hour
	from, to := newFile(t), pgtest.Shared(t).Database(t)
	if _, _, err := postgres.Migrate(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	run(t, to, fmt.Sprintf("UPDATE hf_clock SET at = at + %[1]d, raw = raw + %[1]d", ahead.Microseconds()))
	run(t, to, fmt.Sprintf(`CREATE OR REPLACE FUNCTION hf_raw() RETURNS bigint LANGUAGE sql VOLATILE AS
		'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + %d'`, ahead.Microseconds()))
	filled(t, from)
	want := read(t, from)
	copied(t, from, to)
	db := open(t, to)
	defer shut(t, db)
	for _, w := range want.Records {
		got, err := db.Get(t.Context(), w.Message.ID)
		must(t, err)
		for name, pair := range map[string][2]time.Time{"created": {w.Created, got.Created}, "due": {w.Due, got.Due}, "expires": {w.Expires, got.Expires}, "settled": {w.Settled, got.Settled}} {
			if shift := pair[1].Sub(pair[0]); !pair[0].IsZero() && (shift-ahead).Abs() > 2*time.Second || pair[0].IsZero() != pair[1].IsZero() {
				t.Errorf("%s: %s is %s after what it was", w.Message.ID, name, shift)
			}
		}
	}
	ends(t, db, "keys", nil) // the head is due in half an hour
	for i := range 3 {
		id := holdfast.ID(fmt.Sprintf("key-%d", i))
		b, err := db.Claim(t.Context(), map[string]int{"keys": 10})
		must(t, err)
		if i == 0 {
			run(t, to, "UPDATE hf_queue SET due = hf_now() - 1 WHERE lane = (SELECT lane FROM hf_lane WHERE destination = 'keys') AND blocked = 0")
			b, err = db.Claim(t.Context(), map[string]int{"keys": 10})
			must(t, err)
		}
		if len(b.Claims) != 1 || b.Claims[0].Message.ID != id {
			t.Fatalf("claimed %v, want %s", b.Claims, id)
		}
		_, err = db.Settle(t.Context(), holdfast.Settlement{Seq: b.Claims[0].Seq, Token: b.Claims[0].Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded})
		must(t, err)
	}
	if b, err := db.Claim(t.Context(), map[string]int{"keys": 10}); err != nil || len(b.Claims) != 0 {
		t.Errorf("claimed %v, %v: the last one is delayed", b.Claims, err)
	}
}

func run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	must(t, pgtest.Shared(t).Exec(databaseOf(dsn), statements...))
}

// unused makes a database one that no node has used for a minute.
func unused(t testing.TB, dsn string) {
	t.Helper()
	const ago = time.Minute
	run(t, dsn, fmt.Sprintf("UPDATE hf_clock SET at = at - %[1]d, raw = raw - %[1]d, high = high - %[1]d", ago.Microseconds()))
}

func databaseOf(dsn string) string {
	_, path, _ := strings.Cut(dsn, "://")
	_, name, _ := strings.Cut(path, "/")
	name, _, _ = strings.Cut(name, "?")
	return name
}

// Killed at any moment and begun again, a copy loses nothing and doubles nothing.
func TestACopyIsKilledAndGoesOn(t *testing.T) {
	t.Parallel()
	const many = 12_000
	first, second, third := newFile(t), pgtest.Shared(t).Database(t), newFile(t)
	db := open(t, first)
	for i := 0; i < many; i += 1000 {
		ms := make([]holdfast.Message, 1000)
		for j := range ms {
			ms[j] = holdfast.Message{ID: holdfast.ID(fmt.Sprintf("m-%d", i+j)), OrderingKey: []string{"", "k", "l"}[j%3], Payload: []byte(fmt.Sprint(i + j))}
		}
		put(t, db, ms...)
	}
	shut(t, db)
	for _, step := range [][2]string{{first, second}, {second, third}} {
		kills := 0
		for done := false; !done; {
			c := exec.Command(os.Args[0], step[0], step[1])
			c.Env = append(os.Environ(), childEnv+"=1")
			var said strings.Builder
			c.Stderr = &said
			must(t, c.Start())
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			patience := time.Duration(30+rand.IntN(400)) * time.Millisecond
			if kills > 8 {
				patience = time.Minute
			}
			select {
			case err := <-ended:
				done = err == nil
			case <-time.After(patience):
				must(t, c.Process.Kill())
				if err := <-ended; err == nil {
					t.Log("it had just ended")
				}
				kills++
			}
			switch {
			case done, strings.Contains(said.String(), "another copy goes on"): // its connection is not closed yet
			case said.Len() > 0:
				t.Fatal(said.String())
			}
			if !done {
				if db, err := tryOpen(t.Context(), step[1]); err == nil { // nothing was noted in it yet, or all
					n := db.Counts().Pending
					shut(t, db)
					if n == 0 {
						continue
					}
					if src, err := tryOpen(t.Context(), step[0]); err == nil {
						shut(t, src)
						t.Fatal("both stores can be opened")
					}
				}
			}
		}
		t.Logf("killed %d times", kills)
	}
	db = open(t, third)
	defer shut(t, db)
	if n := db.Counts().Pending; n != many {
		t.Errorf("%d messages are pending", n)
	}
	last := map[string]int64{}
	for range 50 {
		b, err := db.Claim(t.Context(), map[string]int{"a": 100})
		must(t, err)
		var done []holdfast.Settlement
		for _, c := range b.Claims {
			key := c.Message.OrderingKey
			if key != "" && c.Seq <= last[key] {
				t.Fatalf("seq %d of key %s comes after %d", c.Seq, key, last[key])
			}
			last[key] = c.Seq
			done = append(done, holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded})
		}
		_, err = db.Settle(t.Context(), done...)
		must(t, err)
	}
	if last["k"] == 0 || last["l"] == 0 {
		t.Errorf("claimed of the keys up to %v", last)
	}
}

func refused(t testing.TB, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %v with %q", err, want, text)
	}
}
