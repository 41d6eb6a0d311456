package storetest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/track"
)

// Full is a store with everything that the suite needs. What a program cannot see is internal to a
// store, and tested by its package.
type Full interface {
	holdfast.Store
	holdfast.Outbox
	holdfast.Lanes
	holdfast.Sweepable
	holdfast.InboxLog
	holdfast.Doubting
	holdfast.Journal
	notify.Store
	side.Base
	Close() error
}

// features are the side tables of a store.
type features struct {
	*nodestore.Tokens
	sites.Store
	notify.DirectoryStore
	past track.Past

	People    *nodestore.People
	Activity  *nodestore.Activity
	Telemetry *nodestore.Telemetry
	SiteCalls *nodestore.SiteCalls
	Fanout    *nodestore.Fanout
	Bulks     *nodestore.Bulks
	Minutes   *nodestore.Minutes
}

// Source is the name that Maker.Open gives its stores.
const Source = "storetest"

// Maker makes the stores that the suite tests.
type Maker struct {
	// Open opens an empty store whose own name is Source. It logs to log, or not at all if log is
	// nil. The suite closes it.
	Open func(t testing.TB, log *slog.Logger) Full
	// Reopen closes a store and opens its data again.
	Reopen func(t testing.TB, s Full) Full
	// Beside opens a store a second time, as another process does. Nil: only one process at a time
	// may open it.
	Beside func(t testing.TB, s Full) Full
	// Alone is called before each case in which one goroutine makes one call after the other. It
	// may skip the case. Nil: it does nothing.
	Alone func(t testing.TB)
	// Run runs one case in the environment that the store needs. Nil: no special environment.
	Run func(t *testing.T, test func(t *testing.T))
	// Pass lets time pass, as the store sees it.
	Pass func(t testing.TB, s Full, d time.Duration)
	// Step sets the clock that the store reads, without letting time pass. Nil: another Maker of
	// the same store covers these cases.
	Step func(t testing.TB, s Full, d time.Duration)
	// Clock returns the time of that clock. Nil: Now.
	Clock func(t testing.TB, s Full) time.Time
	// Now returns the time of the store's clock. Nil: time.Now.
	Now func(t testing.TB, s Full) time.Time
	// Check runs after each case, and checks what only the store's package can see. Nil: it checks
	// nothing.
	Check func(t testing.TB, s Full)
}

// needsStep skips what another Maker of the store covers.
func (m Maker) needsStep(t *testing.T) {
	t.Helper()
	if m.Step == nil {
		t.Skip("the clock of this store is set where it is opened in another way")
	}
}

// run makes a test of each case with a single goroutine. Each test has its own store.
func (m Maker) run(t *testing.T, cases map[string]func(k *kit)) {
	t.Helper()
	m.each(t, m.Alone, cases)
}

// meet makes a test of each case with concurrent goroutines. Each test has its own store.
func (m Maker) meet(t *testing.T, cases map[string]func(k *kit)) {
	t.Helper()
	m.each(t, nil, cases)
}

func (m Maker) each(t *testing.T, begin func(t testing.TB), cases map[string]func(k *kit)) {
	t.Helper()
	run := m.Run
	if run == nil {
		run = func(t *testing.T, test func(t *testing.T)) { t.Helper(); test(t) }
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if begin != nil {
				begin(t)
			}
			run(t, func(t *testing.T) {
				t.Helper()
				k := &kit{t: t, m: m}
				k.use(m.Open(t, nil))
				defer func() {
					if err := k.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}()
				test(k)
				k.recount()
				k.reopen()
				k.recount()
			})
		})
	}
}

// kit is a store under test, with helpers for the cases.
type kit struct {
	t *testing.T
	m Maker
	Full
	features
}

func (k *kit) use(s Full) {
	n := nodestore.New(s, nil)
	k.Full, k.features = s, features{n.Tokens, n.Sites, n.Directory, n.Operations, n.People, n.Activity, n.Telemetry, n.SiteCalls, n.Fanout, n.Bulks, n.Minutes}
}

func (k *kit) ctx() context.Context { return k.t.Context() }

func (k *kit) pass(d time.Duration) { k.t.Helper(); k.m.Pass(k.t, k.Full, d) }

func (k *kit) now() time.Time {
	k.t.Helper()
	if k.m.Now == nil {
		return time.Now()
	}
	return k.m.Now(k.t, k.Full)
}

func (k *kit) reopen() {
	k.t.Helper()
	k.use(k.m.Reopen(k.t, k.Full))
}

func (k *kit) recount() {
	k.t.Helper()
	Recount(k.t, k.Full)
	if k.m.Check != nil {
		k.m.Check(k.t, k.Full)
	}
}

// fill fills in required fields that do not matter to a case.
func fill(ms []holdfast.Message) []holdfast.Message {
	for i := range ms {
		if ms[i].Destination == "" {
			ms[i].Destination = "a"
		}
		if ms[i].Endpoint == "" {
			ms[i].Endpoint = "E"
		}
		if ms[i].Payload == nil {
			ms[i].Payload = []byte(`{}`)
		}
	}
	return ms
}

func (k *kit) put(ms ...holdfast.Message) []holdfast.ID {
	k.t.Helper()
	receipts, err := k.Enqueue(k.ctx(), fill(ms)...)
	if err != nil {
		k.t.Fatal(err)
	}
	ids := make([]holdfast.ID, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

// many returns n messages with ids prefix-0, prefix-1 and so on.
func many(n int, prefix string, of holdfast.Message) []holdfast.Message {
	ms := make([]holdfast.Message, n)
	for i := range ms {
		ms[i] = of
		ms[i].ID = holdfast.ID(fmt.Sprintf("%s-%d", prefix, i))
	}
	return ms
}

// claim takes up to n messages of lane "a".
func (k *kit) claim(n int) []holdfast.Claim { k.t.Helper(); return k.claimOf("a", n) }

// drain claims and delivers until nothing is left: after an unclean stop a store may return a few
// at a time.
func (k *kit) drain() (all []holdfast.Claim) {
	k.t.Helper()
	for {
		some := k.claim(200)
		if len(some) == 0 {
			return all
		}
		for _, c := range some {
			k.wins(c, delivered())
		}
		all = append(all, some...)
	}
}

func (k *kit) claimOf(lane string, n int) []holdfast.Claim {
	k.t.Helper()
	b, err := k.Claim(k.ctx(), map[string]int{lane: n})
	if err != nil {
		k.t.Fatal(err)
	}
	if len(b.Claims) > n {
		k.t.Fatalf("claimed %d messages, asked for %d", len(b.Claims), n)
	}
	return b.Claims
}

// one claims a message of lane "a" and fails unless it has this id.
func (k *kit) one(id holdfast.ID) holdfast.Claim {
	k.t.Helper()
	got := k.claim(1)
	if len(got) != 1 || got[0].Message.ID != id {
		k.t.Fatalf("claimed %v, want %s", idsOf(got), id)
	}
	return got[0]
}

// nothing fails if lane "a" has a message to give.
func (k *kit) nothing() {
	k.t.Helper()
	if got := k.claim(10); len(got) > 0 {
		k.t.Fatalf("claimed %v, want nothing", idsOf(got))
	}
}

func idsOf(claims []holdfast.Claim) []holdfast.ID {
	ids := make([]holdfast.ID, len(claims))
	for i, c := range claims {
		ids[i] = c.Message.ID
	}
	return ids
}

func (k *kit) settle(c holdfast.Claim, s holdfast.Settlement) bool {
	k.t.Helper()
	s.Seq, s.Token = c.Seq, c.Token
	won, err := k.Settle(k.ctx(), s)
	if err != nil {
		k.t.Fatal(err)
	}
	return won[0]
}

// Settlements for the cases.
func delivered() holdfast.Settlement {
	return holdfast.Settlement{State: holdfast.Delivered, Outcome: holdfast.Succeeded}
}

func failed(retryIn time.Duration) holdfast.Settlement {
	return holdfast.Settlement{State: holdfast.Pending, Charged: true, RetryIn: retryIn, Code: "busy", Error: "it is busy"}
}

func parked() holdfast.Settlement {
	return holdfast.Settlement{
		State: holdfast.Parked, Outcome: holdfast.Permanent, Charged: true,
		Reason: holdfast.ReasonPermanent, Code: "refused", Error: "it was refused",
	}
}

func notStarted() holdfast.Settlement {
	return holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.NotStarted}
}

// wins settles and fails unless the settlement takes effect.
func (k *kit) wins(c holdfast.Claim, s holdfast.Settlement) {
	k.t.Helper()
	if !k.settle(c, s) {
		k.t.Fatalf("settlement of %s as %s did not take effect", c.Message.ID, s.State)
	}
}

// winAll settles all claims in the same way, in one call.
func (k *kit) winAll(claims []holdfast.Claim, s holdfast.Settlement) {
	k.t.Helper()
	list := make([]holdfast.Settlement, len(claims))
	for i, c := range claims {
		list[i] = s
		list[i].Seq, list[i].Token = c.Seq, c.Token
	}
	won, err := k.Settle(k.ctx(), list...)
	if err != nil || slices.Contains(won, false) {
		k.t.Fatalf("settle %d messages: %v, %v", len(list), won, err)
	}
}

// park enqueues a message of lane "a" and parks it.
func (k *kit) park(m holdfast.Message) holdfast.ID {
	k.t.Helper()
	id := k.put(m)[0]
	k.wins(k.one(id), parked())
	return id
}

func (k *kit) get(id holdfast.ID) holdfast.Record {
	k.t.Helper()
	r, err := k.Get(k.ctx(), id)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *kit) is(id holdfast.ID, want holdfast.State) holdfast.Record {
	k.t.Helper()
	r := k.get(id)
	if r.State != want {
		k.t.Fatalf("message %s is %s, want %s", id, r.State, want)
	}
	return r
}

func (k *kit) requeue(id holdfast.ID) holdfast.Record {
	k.t.Helper()
	r, err := k.Requeue(k.ctx(), id, holdfast.Requeue{Actor: "anna"})
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *kit) discard(id holdfast.ID) holdfast.Record {
	k.t.Helper()
	r, err := k.Discard(k.ctx(), id, "anna")
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

// expire sweeps until nothing more has expired.
func (k *kit) expire() (total int) {
	k.t.Helper()
	for {
		n, more, err := k.Expire(k.ctx())
		if err != nil {
			k.t.Fatal(err)
		}
		if total += n; !more {
			return total
		}
	}
}

func (k *kit) purge(r holdfast.Retention) (total int) {
	k.t.Helper()
	for {
		n, more, err := k.Purge(k.ctx(), r)
		if err != nil {
			k.t.Fatal(err)
		}
		if total += n; !more {
			return total
		}
	}
}

// all lists every page of a query.
func (k *kit) all(q holdfast.Query) []holdfast.Record { k.t.Helper(); return all(k.t, k.Full, q) }

func all(t testing.TB, s holdfast.Outbox, q holdfast.Query) (list []holdfast.Record) {
	t.Helper()
	for range 10000 {
		p, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p.Records...)
		if p.Next == "" {
			return list
		}
		q.After = p.Next
	}
	t.Fatal("the list has no end")
	return nil
}

func equal[T any](k *kit, what string, got, want T, opts ...cmp.Option) {
	k.t.Helper()
	if d := cmp.Diff(got, want, opts...); d != "" {
		k.t.Errorf("%s (-got +want):\n%s", what, d)
	}
}

// Recount compares the counters in memory with the lists. The store must not change meanwhile.
func Recount(t testing.TB, s Full) {
	t.Helper()
	want := holdfast.Counts{Lanes: map[string]holdfast.LaneCounts{}}
	for _, r := range all(t, s, holdfast.Query{Limit: 500}) {
		l := want.Lanes[r.Message.Destination]
		switch r.State {
		case holdfast.Pending, holdfast.Claimed:
			l.Pending++
			want.Pending++
			if r.State == holdfast.Claimed {
				want.Claimed++
			}
		case holdfast.Parked:
			l.Parked++
			want.Parked++
		case holdfast.Expired:
			l.Expired++
			want.Expired++
		case holdfast.Delivered, holdfast.Discarded:
		}
		want.Lanes[r.Message.Destination] = l
	}
	for q := (holdfast.KeptQuery{Limit: 500}); ; {
		p, err := s.Kept(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		want.Kept += int64(len(p.Messages))
		if q.After = p.Next; q.After == 0 {
			break
		}
	}
	got := s.Counts()
	got.Inbox, got.Received, got.Duplicates = 0, 0, 0
	none := func(_ string, c holdfast.LaneCounts) bool { return c == holdfast.LaneCounts{} }
	maps.DeleteFunc(got.Lanes, none)
	maps.DeleteFunc(want.Lanes, none)
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("counters differ from a recount (-counters +recount):\n%s", d)
	}
}

func sorted(ids []holdfast.ID) []holdfast.ID { return slices.Sorted(slices.Values(ids)) }
