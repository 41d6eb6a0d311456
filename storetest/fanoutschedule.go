package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// usualSchedule keeps the schedule of subscriptions without one, for all nodes (WH-04).
func usualSchedule(k *kit) {
	h := k.hub()
	none, err := k.Fanout.Usual(k.ctx())
	if err != nil || none.Version != 0 || h.Book.UsualOr(fanout.DefaultSchedule()) != fanout.DefaultSchedule() {
		k.t.Fatalf("before one is set: %+v, %v", none, err)
	}
	k.subscribes(h, "a", 0, "")
	fast := fanout.DefaultSchedule()
	fast.Factor = time.Second
	next := none.Replaced(fast, fanout.DefaultSchedule(), true)
	first, err := h.kept.PutUsual(k.ctx(), next, "anna")
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := h.kept.PutUsual(k.ctx(), next, "ben"); !errors.Is(err, holdfast.ErrState) {
		k.t.Errorf("who was overtaken: %v", err)
	}
	k.reopen()
	h = k.hub()
	u, err := h.Book.Usual(k.ctx())
	if err != nil || u.Version != first || u.Schedule != fast || u.Actor != "anna" || u.Rounds != 2 || len(u.Former) != 1 || u.Former[0] != fanout.DefaultSchedule() {
		k.t.Errorf("set: %+v, %v", u, err)
	}
	if v, err := k.Fanout.Version(k.ctx()); err != nil || v != first {
		k.t.Errorf("version %d, %v, want %d: other nodes follow it", v, err, first)
	}
	for _, want := range []error{nil, holdfast.ErrState} {
		if err := k.Fanout.MoveUsual(k.ctx(), &u, 1, "a"); !errors.Is(err, want) {
			k.t.Errorf("a record of how far it is: %v, want %v", err, want)
		}
	}
	slow := u.Replaced(fanout.Schedule{Backoff: fanout.Off, Factor: 1, Base: 1, Cap: 1, Retries: 1}, fast, false)
	if _, err := h.kept.PutUsual(k.ctx(), slow, "ben"); err != nil {
		k.t.Fatal(err)
	}
	if err := k.Fanout.MoveUsual(k.ctx(), &u, 1, "b"); !errors.Is(err, holdfast.ErrState) {
		k.t.Errorf("a record about a schedule that was replaced: %v", err)
	}
	if u, err = k.Fanout.Usual(k.ctx()); err != nil || u.Rounds != 0 || u.Moved != "" || diff.Diff(u.Former, []fanout.Schedule{fast, fanout.DefaultSchedule()}) != "" {
		k.t.Errorf("replaced: %+v, %v", u, err)
	}
	gone := u.Replaced(fanout.Schedule{}, u.Schedule, true)
	gone.GivenUp = true
	if _, err := h.kept.PutUsual(k.ctx(), gone, "cleo"); err != nil {
		k.t.Fatal(err)
	}
	configured := fanout.DefaultSchedule()
	configured.Retries = 3
	if got, err := k.hub().Book.Usual(k.ctx()); err != nil || !got.GivenUp || got.Set() || got.Rounds != 2 || len(got.Former) != 3 || got.Or(configured) != configured || got.Actor != "cleo" {
		k.t.Errorf("given up: %+v, %v", got, err)
	}
}

// movedRetries are planned anew, and nothing else is.
func movedRetries(k *kit) {
	m := k.mover(k.Full)
	k.put(holdfast.Message{ID: "sooner"}, holdfast.Message{ID: "later"}, holdfast.Message{ID: "put-off"}, holdfast.Message{ID: "by-a-person"}, holdfast.Message{ID: "of-another", Destination: "b"})
	k.put(holdfast.Message{ID: "brief", TTL: 90 * time.Minute})
	for _, c := range append(k.claim(6), k.claimOf("b", 1)...) {
		s := holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.Transient, Charged: true, Error: "away", RetryIn: time.Hour}
		if c.Message.ID == "put-off" {
			s.RetryIn = 7 * time.Hour
		}
		k.wins(c, s)
	}
	if _, err := k.Reschedule(k.ctx(), "by-a-person", holdfast.Reschedule{In: 30 * time.Minute, Actor: "anna"}); err != nil {
		k.t.Fatal(err)
	}
	k.put(holdfast.Message{ID: "new"}) // due, and never tried
	due := func() map[string]string {
		k.t.Helper()
		all := map[string]string{}
		for _, id := range []holdfast.ID{"sooner", "later", "put-off", "by-a-person", "of-another", "brief", "new"} {
			r, err := k.Get(k.ctx(), id)
			if err != nil {
				k.t.Fatal(err)
			}
			if all[string(id)] = "at once"; r.Tries > 0 {
				all[string(id)] = r.Due.Sub(r.LastAttempt).Round(time.Second).String()
			}
		}
		return all
	}
	before := due()
	plan := func(to time.Duration) func(int, time.Duration) time.Duration {
		return func(tries int, wait time.Duration) time.Duration {
			if tries != 1 {
				k.t.Errorf("a message with %d tries", tries)
			}
			if (wait - time.Hour).Abs() < time.Millisecond {
				return to
			}
			return wait
		}
	}
	for _, want := range []int{3, 0} { // the second time there is nothing left to do
		if n, err := m.MoveRetries(k.ctx(), "a", plan(2*time.Hour)); err != nil || n != want {
			k.t.Errorf("moved %d, %v, want %d", n, err, want)
		}
	}
	k.reopen()
	want := map[string]string{
		"sooner": "2h0m0s", "later": "2h0m0s", "brief": "1h30m0s", "put-off": "7h0m0s", "of-another": "1h0m0s", "new": "at once", "by-a-person": before["by-a-person"],
	}
	if d := diff.Diff(due(), want); d != "" {
		k.t.Errorf("(-got +want):\n%s", d)
	}
	if n, err := k.mover(k.Full).MoveRetries(k.ctx(), "nobody", plan(time.Hour)); err != nil || n != 0 {
		k.t.Errorf("a destination without messages: %d, %v", n, err)
	}
}

// movedByNodes moves many retries. The first node dies on the way, and two go on. Each message is planned by the
// schedule once, also one that was in hand when the schedule changed.
func movedByNodes(k *kit) {
	const n = 300
	h := k.hub()
	k.subscribes(h, "a", 0, "")
	own := subscriptionTo("own", 0, "")
	usual := fanout.DefaultSchedule()
	usual.Factor = time.Hour
	own.Schedule = &usual
	if _, err := h.kept.PutSubscription(k.ctx(), own, "anna"); err != nil {
		k.t.Fatal(err)
	}
	k.put(many(n, "m", holdfast.Message{Destination: fanout.Lane("a")})...)
	k.put(holdfast.Message{ID: "own", Destination: fanout.Lane("own")}, holdfast.Message{ID: "in-hand", Destination: fanout.Lane("b")})
	k.subscribes(h, "b", 0, "")
	away := holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.Transient, Charged: true, Error: "away", RetryIn: time.Hour}
	for left := n + 1; left > 0; {
		for _, c := range append(k.claimOf(fanout.Lane("a"), 100), k.claimOf(fanout.Lane("own"), 1)...) {
			k.wins(c, away)
			left--
		}
	}
	inHand := k.claimOf(fanout.Lane("b"), 1)
	slow := usual
	slow.Factor = 10 * time.Hour
	if _, err := h.kept.PutUsual(k.ctx(), (&fanout.Usual{}).Replaced(slow, usual, true), "anna"); err != nil {
		k.t.Fatal(err)
	}
	movers := []fanout.Mover{k.mover(k.Full), k.mover(k.Full)}
	if _, shared := k.Full.(holdfast.Shared); shared {
		movers[1] = k.mover(k.beside())
	}
	dies, die := context.WithCancel(k.ctx())
	k.ok((&fanout.Planner{Book: k.hub().Book, Mover: &dying{movers[0], die}}).Run(dies))
	if u, err := k.Fanout.Usual(k.ctx()); err != nil || u.Rounds != 2 || u.Moved != "" {
		k.t.Errorf("after a death: %+v, %v", u, err)
	}
	var nodes sync.WaitGroup
	ctx, stop := context.WithCancel(k.ctx())
	for _, m := range movers {
		nodes.Go(func() { k.ok((&fanout.Planner{Book: k.hub().Book, Mover: m}).Run(ctx)) })
	}
	left := func(rounds int) {
		k.t.Helper()
		waittest.Until(k.t, "a round is over", func() bool {
			u, err := k.Fanout.Usual(k.ctx())
			return err == nil && u.Rounds == rounds
		})
	}
	left(1)
	k.wins(inHand[0], away)
	k.pass(4 * time.Minute)
	left(0)
	stop()
	nodes.Wait()
	for i := range n + 2 {
		id, want := holdfast.ID(fmt.Sprint("m-", i)), 10*time.Hour
		switch i {
		case n:
			id, want = "own", time.Hour
		case n + 1:
			id = "in-hand"
		}
		r, err := k.Get(k.ctx(), id)
		if err != nil || (r.Due.Sub(r.LastAttempt)-want).Abs() > time.Second {
			k.t.Fatalf("%s waits for %s, %v, want %s", id, r.Due.Sub(r.LastAttempt), err, want)
		}
	}
}

func (k *kit) mover(s Full) fanout.Mover {
	k.t.Helper()
	m, ok := s.(fanout.Mover)
	if !ok {
		k.t.Fatal("the store moves no retries")
	}
	return m
}

// dying is a Mover whose process dies in its first call.
type dying struct {
	fanout.Mover
	die func()
}

func (d *dying) MoveRetries(ctx context.Context, destination string, plan func(tries int, wait time.Duration) time.Duration) (int, error) {
	n := 0
	_, err := d.Mover.MoveRetries(ctx, destination, func(tries int, wait time.Duration) time.Duration {
		if n++; n > 100 {
			return wait
		}
		return plan(tries, wait)
	})
	d.die()
	return n, cmp.Or(err, context.Canceled)
}
