package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// quick is a node with a short lease.
func quick(name string) postgres.Options {
	return postgres.Options{Source: "s", Node: name, Lease: time.Second}
}

func put(t testing.TB, db *postgres.DB, ms ...holdfast.Message) {
	t.Helper()
	for i := range ms {
		if ms[i].Destination == "" {
			ms[i].Destination = "a"
		}
		ms[i].Endpoint = "E"
	}
	if _, err := db.Enqueue(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
}

func numbered(n int, of holdfast.Message) []holdfast.Message {
	ms := make([]holdfast.Message, n)
	for i := range ms {
		ms[i] = of
		ms[i].ID = holdfast.ID(fmt.Sprintf("%s%04d", of.ID, i))
	}
	return ms
}

func take(t testing.TB, db *postgres.DB, n int) []holdfast.Claim {
	t.Helper()
	b, err := db.Claim(t.Context(), map[string]int{"a": n})
	if err != nil {
		t.Fatal(err)
	}
	return b.Claims
}

// until claims until there are n.
func until(t testing.TB, db *postgres.DB, n int) (all []holdfast.Claim) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%d messages are claimed", n), func() bool {
		b, err := db.Claim(t.Context(), map[string]int{"a": n - len(all)})
		if err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Fatal(err)
		}
		all = append(all, b.Claims...)
		return len(all) >= n
	})
	return all
}

func settleAll(t testing.TB, db *postgres.DB, claims []holdfast.Claim, s holdfast.Settlement) (won int) {
	t.Helper()
	list := make([]holdfast.Settlement, len(claims))
	for i, c := range claims {
		list[i] = s
		list[i].Seq, list[i].Token = c.Seq, c.Token
	}
	wins, err := db.Settle(t.Context(), list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wins {
		if w {
			won++
		}
	}
	return won
}

func done() holdfast.Settlement {
	return holdfast.Settlement{State: holdfast.Delivered, Outcome: holdfast.Succeeded}
}

// Outbox cases 24 and 33.
func TestNodesShareTheMessages(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	var nodes []*postgres.DB
	for i := range 3 {
		nodes = append(nodes, opened(t, dsn, postgres.Options{Source: "s", Node: fmt.Sprint("n", i), Lease: 5 * time.Second}))
	}
	const n = 3000
	put(t, nodes[0], numbered(n, holdfast.Message{})...)
	var mu sync.Mutex
	seen := map[holdfast.ID]int{}
	var all sync.WaitGroup
	for _, db := range nodes {
		for range 3 {
			all.Go(func() {
				for seenBy(&mu, seen, nil) < n && t.Context().Err() == nil {
					claims := take(t, db, 50)
					seenBy(&mu, seen, claims)
					if won := settleAll(t, db, claims, done()); won != len(claims) {
						t.Errorf("%d of %d settlements took effect", won, len(claims))
						return
					}
				}
			})
		}
	}
	all.Wait()
	for id, times := range seen {
		if times != 1 {
			t.Errorf("message %s was handed out %d times", id, times)
		}
	}
}

func seenBy(mu *sync.Mutex, seen map[holdfast.ID]int, claims []holdfast.Claim) int {
	mu.Lock()
	defer mu.Unlock()
	for _, c := range claims {
		seen[c.Message.ID]++
	}
	return len(seen)
}

// Outbox cases 4, 53 and 57: what a node had in hand that died without a word
// is another's when its lease ends, and no sooner.
func TestADeadNodeIsTakenOver(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	dead := open(t, dsn, quick("dead"))
	other := opened(t, dsn, quick("other"))
	put(t, dead, numbered(20, holdfast.Message{})...)
	held := until(t, dead, 20)
	time.Sleep(1500 * time.Millisecond) // longer than the lease: it is renewed
	if got := take(t, other, 20); len(got) != 0 {
		t.Fatalf("%d messages of a live node were handed out", len(got))
	}
	dead.Die()
	died := time.Now()
	for left := len(held); left > 0; { // one of them may be what it died of: a few at a time
		got := until(t, other, min(left, 10))
		if took := time.Since(died); took > 4*time.Second {
			t.Errorf("taken over after %s", took)
		}
		for _, c := range got {
			if c.Tries != 1 || c.Failures != 0 || c.Message.Attempt.Number != 2 {
				t.Errorf("message %s: %d tries, %d failures, attempt %d", c.Message.ID, c.Tries, c.Failures, c.Message.Attempt.Number)
			}
		}
		if n := settleAll(t, other, got, done()); n != len(got) {
			t.Errorf("%d of %d settlements took effect", n, len(got))
		}
		left -= len(got)
	}
}

// Outbox cases 25, 41 and 56: a node that was away for longer than its lease
// finds its claims gone, trusts none of them, settles none, and goes on.
func TestANodeThatWasAwayLosesItsClaims(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	away, other := opened(t, dsn, quick("away")), opened(t, dsn, quick("other"))
	put(t, away, numbered(10, holdfast.Message{})...)
	held := until(t, away, 10)
	if !away.Holds(held[0]) {
		t.Error("a claim that was just made does not hold")
	}
	wakeUp := away.StopBeats()
	got := until(t, other, 10)
	if away.Holds(held[0]) {
		t.Error("a claim holds after the lease")
	}
	if _, err := away.Claim(t.Context(), map[string]int{"a": 1}); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Claim without a lease: %v", err)
	}
	wakeUp()
	if n := settleAll(t, away, held, done()); n != 0 {
		t.Errorf("%d late settlements took effect", n)
	}
	if n := settleAll(t, other, got, done()); n != 10 {
		t.Errorf("%d settlements of the new owner took effect, want 10", n)
	}
	put(t, other, holdfast.Message{ID: "more"})
	until(t, away, 1)
}

// Outbox case 58.
func TestANameStartedAgainTakesWhatItHad(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	first := open(t, dsn, quick("same"))
	put(t, first, numbered(5, holdfast.Message{})...)
	until(t, first, 5)
	first.Die()
	second := opened(t, dsn, quick("same"))
	if n := len(until(t, second, 5)); n != 5 {
		t.Errorf("%d messages", n)
	}
}

// Bad input: two nodes of one name.
func TestTwoNodesOfOneName(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, quick("same"))
	put(t, db, holdfast.Message{ID: "m"})
	held := until(t, db, 1)
	const given = `SELECT last_value FROM hf_owner`
	was := number(t, dsn, given)
	if _, err := postgres.Open(t.Context(), dsn, quick("same").Relaxed()); !errors.Is(err, postgres.ErrNodeTaken) {
		t.Fatalf("a second node of the name: %v", err)
	}
	if is := number(t, dsn, given); is != was {
		t.Errorf("by looks of the refused one owner numbers went from %d to %d", was, is) // F1-129
	}
	if n := settleAll(t, db, held, done()); n != 1 {
		t.Error("the refused node took something away")
	}
}

// One that ends cleanly leaves nothing for others to wait for.
func TestACleanEndGivesBack(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	first := open(t, dsn, postgres.Options{Source: "s", Node: "same", Lease: time.Hour})
	put(t, first, numbered(5, holdfast.Message{})...)
	if n := len(take(t, first, 5)); n != 5 {
		t.Fatal(n)
	}
	shut(t, first)
	second := opened(t, dsn, postgres.Options{Source: "s", Node: "same", Lease: time.Hour})
	got := take(t, second, 5)
	if len(got) != 5 {
		t.Fatalf("%d messages, want 5", len(got))
	}
	if got[0].Tries != 0 {
		t.Errorf("%d tries, want none", got[0].Tries)
	}
}

// Outbox case 30: a message that kills whoever tries it runs out of attempts,
// and those that were in hand with it pay nothing.
func TestAMessageThatKillsIsTriedAlone(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	watch := opened(t, dsn, quick("watch"))
	put(t, watch, numbered(30, holdfast.Message{})...)
	const killer = "0007"
	charged := -1
	for life := range 12 {
		db := open(t, dsn, quick(fmt.Sprint("victim", life)))
		var hand []holdfast.Claim
		waittest.Until(t, "the message is handed out", func() bool {
			b, err := db.Claim(t.Context(), map[string]int{"a": 100})
			if err != nil {
				t.Fatal(err)
			}
			hand = append(hand[:0], b.Claims...)
			at := slices.IndexFunc(hand, func(c holdfast.Claim) bool { return c.Message.ID == killer })
			if at < 0 {
				for i := range hand {
					if hand[i].Failures > 0 {
						t.Errorf("message %s was charged for another's deaths", hand[i].Message.ID)
					}
				}
				settleAll(t, db, hand, done())
				return false
			}
			charged = hand[at].Failures
			return true
		})
		db.Die()
		if charged >= 2 {
			return
		}
	}
	t.Errorf("after twelve deaths the message was charged %d times", charged)
}

// A destination's limit holds over all nodes.
func TestTheSharesAddUp(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	var nodes []*postgres.DB
	for i := range 3 {
		nodes = append(nodes, opened(t, dsn, quick(fmt.Sprint("n", i))))
	}
	put(t, nodes[0], holdfast.Message{ID: "m"}, holdfast.Message{ID: "n", Destination: "b"})
	for _, db := range nodes { // each says what it delivers for
		if _, err := db.Claim(t.Context(), map[string]int{"a": 1, "b": 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, 3, 4, 20, 32} {
		for _, lane := range []string{"a", "b"} {
			sum := 0
			settled := func() bool {
				sum = 0
				for _, db := range nodes {
					sum += db.Share(lane, limit)
				}
				return sum == limit
			}
			waittest.Until(t, fmt.Sprintf("the shares of %s add up to %d", lane, limit), func() bool {
				all := settled()
				if sum > limit {
					t.Fatalf("limit %d of %s: the shares add up to %d", limit, lane, sum)
				}
				return all
			})
		}
	}
	nodes[1].Leave("a")
	waittest.Until(t, "others take the share of a node that has left a lane", func() bool {
		return nodes[0].Share("a", 20)+nodes[2].Share("a", 20) == 20
	})
	if _, err := nodes[1].Claim(t.Context(), map[string]int{"a": 1}); err != nil { // it comes back
		t.Fatal(err)
	}
	waittest.Until(t, "it has its share again", func() bool { return nodes[1].Share("a", 3) == 1 })
	shut(t, nodes[2])
	nodes = nodes[:2]
	waittest.Until(t, "others take the share of a node that has gone", func() bool {
		return nodes[0].Share("a", 20)+nodes[1].Share("a", 20) == 20
	})
}

// Outbox case 60: after the connection that listens is cut, a node hears of
// others' commits again.
func TestListeningIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	// Nobody's lease ends by being late: a node that believes itself alone tells nobody.
	slow := func(name string) postgres.Options {
		return postgres.Options{Source: "s", Node: name, Lease: time.Minute}
	}
	a, b := opened(t, dsn, slow("a")), opened(t, dsn, slow("b"))
	put(t, a, holdfast.Message{ID: "first"})
	until(t, b, 1)
	wake := b.Wake()
	defer wake.Stop()
	woken := func(id holdfast.ID) time.Duration {
		t.Helper()
		for len(wake.C) > 0 {
			<-wake.C
		}
		began := time.Now()
		put(t, a, holdfast.Message{ID: id})
		select {
		case <-wake.C:
		case <-time.After(5 * time.Second):
			t.Fatalf("nobody woke for %s", id)
		}
		return time.Since(began)
	}
	woken("second")
	if err := sql(t.Context(), dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`); err != nil {
		t.Fatal(err)
	}
	woken("third") // by itself, when it listens again
	woken("fourth")
}

// A node that ends tells the others what it gives back: they need not wait for their next poll.
func TestAGoodbyeIsTold(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	b, a := opened(t, dsn, quick("b")), open(t, dsn, quick("a"))
	put(t, b, holdfast.Message{ID: "m"})
	until(t, a, 1)
	c := session(t, dsn, "LISTEN hf_wake")
	own := fmt.Sprint(number(t, dsn, `SELECT owner FROM hf_node WHERE name = 'a'`), ":")
	shut(t, a)
	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		n, err := c.WaitForNotification(bounded)
		if err != nil {
			t.Fatalf("nobody was told: %v", err)
		}
		if strings.HasPrefix(n.Payload, own) {
			return
		}
	}
}

// SF-15: a node whose lease others have taken over counts nothing twice, neither before it has noticed nor after.
func TestCountersOfALostLease(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	o := quick("a")
	o.Lease = 10 * time.Second
	a := opened(t, dsn, o)
	put(t, a, numbered(7, holdfast.Message{})...)
	opened(t, dsn, quick("b"))
	waittest.Until(t, "b has not heard of a for a while", func() bool {
		pass(t, dsn, time.Minute)
		return number(t, dsn, "SELECT count(*) FROM hf_node WHERE name = 'a'") == 0
	})
	waittest.Until(t, "a has its name again", func() bool {
		if c := a.Counts(); c.Pending != 7 {
			t.Fatalf("%d messages are pending, want 7", c.Pending)
		}
		return number(t, dsn, "SELECT count(*) FROM hf_node WHERE name = 'a'") == 1
	})
}
