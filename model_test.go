package holdfast_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storetest"
)

// modelBudget is how many charged failures the model's dispatcher allows.
const modelBudget = 3

// expected is a message as the model knows it.
type expected struct {
	ID       holdfast.ID
	State    holdfast.State
	Failures int
	Tries    int
	Cycle    int
	Reason   holdfast.Reason

	lane, key, payload string
	blocked, durable   bool
	start              time.Time // of a blocked one: not before
	due, expires       time.Time // zero expires: never
	givenUp, moved     bool      // discarded, or rescheduled, while it was in hand
	ttl                time.Duration
}

// model says what a store must do, in the simplest way: it looks at everything
// each time. Messages are in the order of their arrival. Lane "strict" is.
type model struct {
	messages []*expected
	careful  bool        // the last stop was not clean: claims are written to disk
	most     int         // may be in hand after a death during attempts; 0: any number
	suspects []*expected // in hand at that death, and not tried since
	claims   []holdfast.Claim
	ended    []holdfast.Claim // claims that must not take effect any more
}

func (m *model) find(id holdfast.ID) *expected {
	for _, e := range m.messages {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// waits says whether a message of a key must wait for another.
func (m *model) waits(e *expected) bool {
	before := true
	for _, o := range m.messages {
		switch {
		case o == e:
			before = false
		case o.lane != e.lane || o.key != e.key || e.key == "":
		case (o.State == holdfast.Pending || o.State == holdfast.Claimed) && !o.blocked,
			o.State == holdfast.Parked && before && e.lane == "strict":
			return true
		}
	}
	return false
}

// place lets the first message of a key that waits go, if it may: also in the
// place of one that came later and is in nobody's hands.
func (m *model) place(lane, key string) {
	if key == "" {
		return
	}
	var next, head *expected
	for _, e := range m.messages {
		switch {
		case e.lane != lane || e.key != key:
		case e.State == holdfast.Pending && e.blocked && next == nil:
			next = e
		case (e.State == holdfast.Pending || e.State == holdfast.Claimed) && !e.blocked:
			head = e
		}
	}
	if next == nil || lane == "strict" && m.parkedBefore(next) {
		return
	}
	if head != nil {
		if head.State == holdfast.Claimed || m.before(head, next) {
			return
		}
		head.blocked, head.start = true, head.due
	}
	next.blocked, next.due = false, later(time.Now(), next.start)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (m *model) before(a, b *expected) bool {
	return slices.Index(m.messages, a) < slices.Index(m.messages, b)
}

func (m *model) parkedBefore(e *expected) bool {
	return slices.ContainsFunc(m.messages, func(o *expected) bool {
		return o.lane == e.lane && o.key == e.key && o.State == holdfast.Parked && m.before(o, e)
	})
}

func (m *model) end(e *expected, s holdfast.State, r holdfast.Reason) {
	e.State, e.Reason, e.givenUp = s, r, false
	m.place(e.lane, e.key)
}

// expire ends whatever is over, until nothing more is.
func (m *model) expire() {
	for again := true; again; {
		again = false
		for _, e := range m.messages {
			if (e.State == holdfast.Pending || e.State == holdfast.Parked) && !e.expires.IsZero() && !e.expires.After(time.Now()) {
				m.end(e, holdfast.Expired, e.Reason)
				again = true
			}
		}
	}
}

func (m *model) claimable(lane string) (ids []holdfast.ID) {
	for _, e := range m.messages {
		if e.lane == lane && e.State == holdfast.Pending && !e.blocked && !e.due.After(time.Now()) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// restart gives back what the owner had in hand. A death with one message in
// hand, as far as it was written down, counts against that message.
func (m *model) restart(clean bool) {
	var inHand []*expected
	defer func() {
		for _, e := range m.messages {
			if e.givenUp {
				m.end(e, holdfast.Discarded, holdfast.ReasonOperator)
			}
		}
	}()
	for _, e := range m.messages {
		if e.State == holdfast.Claimed {
			clean, e.State, e.moved = false, holdfast.Pending, false
			if e.durable {
				e.Tries, e.durable = e.Tries+1, false
				inHand = append(inHand, e)
			}
		}
	}
	m.careful, m.most = !clean, 0
	if len(inHand) > 0 {
		m.most = max(len(inHand)/10, 1)
	}
	if len(inHand) == 1 {
		inHand[0].Failures++
	}
	m.suspects = inHand
	m.ended, m.claims = append(m.ended, m.claims...), nil
}

// may returns which messages a claim of a lane may give, and how many:
// suspects before all others, and the last few of them by themselves.
func (m *model) may(lane string, n int) (ids []holdfast.ID, most int) {
	if m.most > 0 {
		n = min(n, max(m.most-len(m.claims), 0))
	}
	ids = m.claimable(lane)
	var first []holdfast.ID
	tried, few := false, len(m.suspects) <= 10
	m.suspects = slices.DeleteFunc(m.suspects, func(e *expected) bool {
		switch {
		case e.State == holdfast.Claimed:
			tried = true
		case e.lane == lane && len(first) < n && slices.Contains(ids, e.ID):
			first = append(first, e.ID)
		case e.lane == lane && len(first) < n:
			return true // looked up, and not pending any more
		}
		return false
	})
	switch {
	case few && len(first) > 0:
		ids = first
	case few && tried:
		ids = nil
	}
	return ids, min(n, len(ids))
}

// A store does what the model says, whatever happens in whatever order:
// none is lost, none settled twice, each key has one in flight, a message
// is parked with a reason, and the counters equal a recount.
func TestStoreFollowsTheModel(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine at a time, for thousands of steps")
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "holdfast-model") //nolint:usetesting // removed after each run: there may be thousands
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		var stopped any
		racetest.Bubble(t, func(t *testing.T) {
			r := &modelRun{rt: rt, t: &rapidTB{t, rt}, path: filepath.Join(dir, "0.db"), dir: dir}
			r.open()
			defer func() { _ = r.db.Close() }()
			defer func() { stopped = recover() }() // rapid wants its panics on its own goroutine
			r.run()
		})
		// rapid tells panics apart by the lines they come from.
		switch fmt.Sprintf("%T", stopped) {
		case "<nil>":
		case "rapid.invalidData":
			panic(stopped)
		default:
			panic(stopped)
		}
	})
}

// rapidTB makes failures of helpers failures that rapid can shrink.
type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (t *rapidTB) Helper()                      {}
func (t *rapidTB) Error(args ...any)            { t.rt.Fatal(args...) }
func (t *rapidTB) Errorf(f string, args ...any) { t.rt.Fatalf(f, args...) }
func (t *rapidTB) Fatal(args ...any)            { t.rt.Fatal(args...) }
func (t *rapidTB) Fatalf(f string, args ...any) { t.rt.Fatalf(f, args...) }

type modelRun struct {
	rt        *rapid.T
	t         testing.TB
	db        *sqlite.DB
	dir, path string
	crashes   int
	m         model
}

func (r *modelRun) run() {
	if err := r.db.ConfigureLane(r.t.Context(), "strict", holdfast.LaneSettings{Strict: true}); err != nil {
		r.t.Fatal(err)
	}
	do := func(action func()) func(*rapid.T) { return func(*rapid.T) { action() } }
	r.rt.Repeat(map[string]func(*rapid.T){
		"enqueue": do(r.enqueue), "enqueue more": do(r.enqueue), "claim": do(r.claim), "claim more": do(r.claim),
		"settle": do(r.settle), "settle more": do(r.settle), "late": do(r.late), "requeue": do(r.requeue), "discard": do(r.discard),
		"reschedule": do(r.reschedule),
		"pass":       do(r.pass), "reopen": do(r.reopen), "crash": do(r.crash), "": do(r.check),
	})
	storetest.Recount(r.t, r.db)
}

// check compares every message, once what is over has expired on both sides.
func (r *modelRun) check() {
	for more := true; more; {
		var err error
		if _, more, err = r.db.Expire(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
	r.m.expire()
	p, err := r.db.List(r.t.Context(), holdfast.Query{Limit: 500})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Reverse(p.Records)
	var got, want []string
	for _, e := range p.Records {
		got = append(got, fmt.Sprint(e.Message.ID, " ", e.State, " failures ", e.Failures, " tries ", e.Tries, " cycle ", e.Cycle, " ", e.Reason))
		if e.State == holdfast.Parked && e.Reason == "" {
			r.t.Fatalf("%s is parked without a reason", e.Message.ID)
		}
	}
	for _, e := range r.m.messages {
		want = append(want, fmt.Sprint(e.ID, " ", e.State, " failures ", e.Failures, " tries ", e.Tries, " cycle ", e.Cycle, " ", e.Reason))
	}
	if d := cmp.Diff(got, want); d != "" {
		r.t.Fatalf("messages (-store +model):\n%s", d)
	}
}

func (r *modelRun) enqueue() {
	var ms []holdfast.Message
	for range rapid.IntRange(1, 3).Draw(r.rt, "messages") {
		ms = append(ms, holdfast.Message{
			ID:          holdfast.ID(fmt.Sprint("m", rapid.IntRange(0, 12).Draw(r.rt, "id"))),
			Destination: rapid.SampledFrom([]string{"loose", "strict"}).Draw(r.rt, "lane"),
			OrderingKey: rapid.SampledFrom([]string{"", "k", "l"}).Draw(r.rt, "key"),
			Payload:     []byte(rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(r.rt, "payload")),
			Delay:       r.seconds("delay", 0, 0, 3), TTL: r.seconds("ttl", 0, 5, 20), Endpoint: "E",
		})
	}
	conflict := false
	var fresh []*expected
	for _, m := range ms {
		e := r.m.find(m.ID)
		for _, f := range fresh {
			if f.ID == m.ID {
				e = f
			}
		}
		if e != nil {
			conflict = conflict || e.lane != m.Destination || e.payload != string(m.Payload)
			continue
		}
		fresh = append(fresh, &expected{ID: m.ID, Cycle: 1, lane: m.Destination, key: m.OrderingKey, payload: string(m.Payload), due: time.Now().Add(m.Delay), ttl: m.TTL})
	}
	receipts, err := r.db.Enqueue(r.t.Context(), ms...)
	if conflict {
		if !errors.Is(err, holdfast.ErrConflict) {
			r.t.Fatalf("enqueue: got %v, want a conflict", err)
		}
		return
	}
	if err != nil || len(receipts) != len(ms) {
		r.t.Fatalf("enqueue: %d receipts, %v", len(receipts), err)
	}
	for _, e := range fresh {
		if e.ttl > 0 {
			e.expires = e.due.Add(e.ttl)
		}
		r.m.messages = append(r.m.messages, e)
		e.blocked, e.start = r.m.waits(e), e.due
	}
}

func (r *modelRun) claim() {
	lane := rapid.SampledFrom([]string{"loose", "strict"}).Draw(r.rt, "lane")
	n := rapid.IntRange(1, 4).Draw(r.rt, "slots")
	want, most := r.m.may(lane, n)
	b, err := r.db.Claim(r.t.Context(), map[string]int{lane: n})
	if err != nil || len(b.Claims) != most {
		r.t.Fatalf("claim %d of %s: %d claims, want %d of %v, %v", n, lane, len(b.Claims), most, want, err)
	}
	for _, c := range b.Claims {
		e := r.m.find(c.Message.ID)
		if !slices.Contains(want, c.Message.ID) || e.State != holdfast.Pending {
			r.t.Fatalf("claimed %s, want some of %v", c.Message.ID, want)
		}
		if c.Failures != e.Failures || c.Tries != e.Tries || c.Message.Attempt.Cycle != e.Cycle || string(c.Message.Payload) != e.payload {
			r.t.Fatalf("claimed %+v, want %+v", c, e)
		}
		e.State, e.durable = holdfast.Claimed, r.m.careful
		r.m.claims = append(r.m.claims, c)
	}
}

func (r *modelRun) settle() {
	if len(r.m.claims) == 0 {
		return
	}
	i := rapid.IntRange(0, len(r.m.claims)-1).Draw(r.rt, "claim")
	c := r.m.claims[i]
	r.m.claims = slices.Delete(r.m.claims, i, i+1)
	r.m.ended = append(r.m.ended, c)
	e := r.m.find(c.Message.ID)
	s := holdfast.Settlement{Seq: c.Seq, Token: c.Token}
	due, moved := e.due, e.moved
	e.durable, e.moved = false, false
	outcome := rapid.SampledFrom([]string{"delivered", "failed", "failed", "unreachable", "parked", "not started"}).Draw(r.rt, "outcome")
	if c.Failures >= modelBudget {
		outcome = "spent" // by attempts that killed the process: no other is made
	}
	switch outcome {
	case "delivered":
		s.State, s.Outcome = holdfast.Delivered, holdfast.Succeeded
		e.Tries++
	case "failed", "unreachable":
		s.RetryIn, s.Charged, s.Code = r.seconds("retry", 1, 2, 30), outcome == "failed", outcome
		e.Tries++
		e.State, e.due = holdfast.Pending, time.Now().Add(s.RetryIn)
		if s.Charged {
			if e.Failures++; e.Failures >= modelBudget {
				s.State, s.Reason = holdfast.Parked, holdfast.ReasonExhausted
			}
		}
	case "parked":
		s.State, s.Outcome, s.Charged, s.Reason = holdfast.Parked, holdfast.Permanent, true, holdfast.ReasonPermanent
		e.Tries++
		e.Failures++
	case "spent":
		s.State, s.Outcome, s.Reason = holdfast.Parked, holdfast.Permanent, holdfast.ReasonExhausted
		e.Tries++
	case "not started":
		s.Outcome, e.State = holdfast.NotStarted, holdfast.Pending
	}
	won, err := r.db.Settle(r.t.Context(), s)
	if err != nil || !won[0] {
		r.t.Fatalf("settle %s: %v, %v", c.Message.ID, won, err)
	}
	if e.State == holdfast.Claimed {
		e.State = holdfast.Pending
	}
	if moved {
		e.due = due // a person has said so meanwhile
	}
	switch {
	case e.givenUp && s.State != holdfast.Delivered:
		r.m.end(e, holdfast.Discarded, holdfast.ReasonOperator)
	case s.State != holdfast.Pending:
		r.m.end(e, s.State, s.Reason)
	default:
		r.m.place(e.lane, e.key)
	}
	if outcome != "not started" {
		r.m.suspects = slices.DeleteFunc(r.m.suspects, func(s *expected) bool { return s == e })
		if r.m.most > 0 {
			r.m.most++
		}
	}
}

func (r *modelRun) late() {
	if len(r.m.ended) == 0 {
		return
	}
	c := rapid.SampledFrom(r.m.ended).Draw(r.rt, "ended claim")
	won, err := r.db.Settle(r.t.Context(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered})
	if err != nil || won[0] {
		r.t.Fatalf("a late settlement of %s: %v, %v", c.Message.ID, won, err)
	}
}

// decide picks a message and says whether a person may do this to it.
func (r *modelRun) decide(verb holdfast.Verb) (e *expected, may bool) {
	if len(r.m.messages) == 0 {
		return nil, false
	}
	e = rapid.SampledFrom(r.m.messages).Draw(r.rt, "message")
	return e, verb.From(e.State) && !e.givenUp
}

// did fails unless the store has decided as the model would.
func (r *modelRun) did(verb holdfast.Verb, e *expected, may bool, err error) bool {
	if may != (err == nil) || !may && !errors.Is(err, holdfast.ErrState) {
		r.t.Fatalf("%s %s, which is %s: %v", verb, e.ID, e.State, err)
	}
	return may
}

func (r *modelRun) requeue() {
	e, may := r.decide(holdfast.VerbRequeue)
	if e == nil {
		return
	}
	_, err := r.db.Requeue(r.t.Context(), e.ID, holdfast.Requeue{})
	if !r.did(holdfast.VerbRequeue, e, may, err) {
		return
	}
	e.State, e.Reason, e.Failures, e.Tries, e.Cycle, e.due, e.start, e.moved = holdfast.Pending, "", 0, 0, e.Cycle+1, time.Now(), time.Time{}, false
	e.expires = time.Time{}
	if e.ttl > 0 {
		e.expires = time.Now().Add(e.ttl)
	}
	e.blocked = e.key != ""
	r.m.place(e.lane, e.key)
}

func (r *modelRun) discard() {
	e, may := r.decide(holdfast.VerbDiscard)
	if e == nil {
		return
	}
	_, err := r.db.Discard(r.t.Context(), e.ID, "anna")
	switch {
	case !r.did(holdfast.VerbDiscard, e, may, err):
	case e.State == holdfast.Claimed:
		e.givenUp = true
	default:
		r.m.end(e, holdfast.Discarded, holdfast.ReasonOperator)
	}
}

func (r *modelRun) reschedule() {
	e, may := r.decide(holdfast.VerbReschedule)
	if e == nil {
		return
	}
	in := r.seconds("in", 0, 0, 1, 8)
	_, err := r.db.Reschedule(r.t.Context(), e.ID, holdfast.Reschedule{In: in})
	due := time.Now().Add(in)
	if may && !e.expires.IsZero() && !due.Before(e.expires) {
		if !errors.Is(err, holdfast.ErrInvalid) {
			r.t.Fatalf("reschedule %s past its TTL: %v", e.ID, err)
		}
		return
	}
	if !r.did(holdfast.VerbReschedule, e, may, err) {
		return
	}
	if e.blocked {
		e.start = due
	} else {
		e.due, e.moved = due, e.State == holdfast.Claimed
	}
}

// pass never lets an instant meet another one exactly: the store's are some
// microseconds later than the model's.
func (r *modelRun) pass() {
	time.Sleep(r.seconds("pass", 1, 2, 4, 30) + 20*time.Millisecond)
}

func (r *modelRun) seconds(name string, of ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(of).Draw(r.rt, name)) * time.Second
}

func (r *modelRun) reopen() {
	if err := r.db.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.m.restart(true)
	r.open()
}

// open lets a millisecond pass: the store's time may be some microseconds
// ahead of ours, and the next owner's is not. What a start doubts is believed
// after another one: the model knows one time (storetest.Run has the rest).
func (r *modelRun) open() {
	time.Sleep(time.Millisecond)
	r.db = openStoreWith(r.t, r.path, sqlite.Options{ClockHold: time.Microsecond})
	time.Sleep(time.Millisecond)
}

// crash goes on with a copy of the files: what a process that is killed
// between two transactions leaves behind.
func (r *modelRun) crash() {
	r.crashes++
	to := filepath.Join(r.dir, fmt.Sprint(r.crashes, ".db"))
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(r.path + suffix)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.db.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.m.restart(false)
	r.path = to
	r.open()
}
