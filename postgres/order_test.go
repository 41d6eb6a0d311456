package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// Two nodes make a lane strict and loose at once. When it is loose in the end,
// no key is left stopped.
func TestTwoNodesConfigureALane(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	strict := func(db *postgres.DB, on bool) {
		if err := db.ConfigureLane(t.Context(), "a", holdfast.LaneSettings{Strict: on}); err != nil {
			t.Error(err)
		}
	}
	strict(a, true)
	const keys = 150 // more than one page
	for i := range keys {
		key := fmt.Sprint("k", i)
		put(t, a, holdfast.Message{ID: holdfast.ID("1" + key), OrderingKey: key}, holdfast.Message{ID: holdfast.ID("2" + key), OrderingKey: key})
	}
	settleAll(t, a, until(t, a, keys), parkIt())
	if got := take(t, b, 10); len(got) > 0 {
		t.Fatalf("%s was handed out behind a parked message", got[0].Message.ID)
	}
	var both sync.WaitGroup
	for i, db := range []*postgres.DB{a, b} {
		both.Go(func() {
			for n := range 6 {
				strict(db, n%2 == i)
			}
		})
	}
	both.Wait()
	strict(b, false)
	audit(t, a)
	got := until(t, a, keys)
	for _, c := range got {
		if c.Message.ID[0] != '2' {
			t.Errorf("%s was handed out", c.Message.ID)
		}
	}
	if n := settleAll(t, a, got, done()); n != keys {
		t.Errorf("%d of %d settlements took effect", n, keys)
	}
	audit(t, a)
}

// What one node asks to be told of is told of what ends on the other, once.
func TestNoticesOverTwoNodes(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	if _, err := a.NotifyEnded(t.Context(), true, true); err != nil {
		t.Fatal(err)
	}
	put(t, b, numbered(5, holdfast.Message{ID: "p"})...)
	settleAll(t, b, until(t, b, 5), parkIt())
	put(t, b, numbered(5, holdfast.Message{ID: "e", TTL: time.Minute})...)
	pass(t, dsn, time.Hour)
	var both sync.WaitGroup
	for _, db := range []*postgres.DB{a, b} {
		both.Go(func() {
			for range 4 {
				if _, _, err := db.Expire(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	told := map[string]int{}
	waittest.Until(t, "ten are told", func() bool {
		for _, db := range []*postgres.DB{a, b} {
			batch, err := db.Claim(t.Context(), map[string]int{holdfast.EndedDestination: 4})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range batch.Claims {
				told[c.Message.Endpoint+" "+string(c.Message.Payload)]++
			}
			settleAll(t, db, batch.Claims, done())
		}
		return len(told) >= 10
	})
	for what, n := range told {
		if n != 1 {
			t.Errorf("told %d times: %s", n, what)
		}
	}
	if n := number(t, dsn, "SELECT count(*) FROM hf_message AS m JOIN hf_lane AS l USING (lane) WHERE l.destination = '"+holdfast.EndedDestination+"'"); len(told) != 10 || n != 10 {
		t.Errorf("%d notices were told of %d, want 10", len(told), n)
	}
	audit(t, a)
}

// ordered watches the messages of each key.
type ordered struct {
	mu     sync.Mutex
	hand   map[string]holdfast.ID
	last   map[string]holdfast.ID
	ended  int
	faults []string
}

func (o *ordered) begin(c *holdfast.Claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := c.Message.OrderingKey
	if other, busy := o.hand[key]; busy {
		o.faults = append(o.faults, fmt.Sprintf("%s was handed out while %s is in hand", c.Message.ID, other))
	}
	if c.Message.ID <= o.last[key] {
		o.faults = append(o.faults, fmt.Sprintf("%s was handed out after %s was delivered", c.Message.ID, o.last[key]))
	}
	o.hand[key] = c.Message.ID
}

// end is called before the settlement: afterwards the next may be in hand.
func (o *ordered) end(c *holdfast.Claim, delivered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.hand, c.Message.OrderingKey)
	if delivered {
		o.last[c.Message.OrderingKey] = c.Message.ID
		o.ended++
	}
}

func (o *ordered) finished(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended >= n || len(o.faults) > 0
}

// Three nodes deliver a strict lane's messages of some keys, of which some
// fail, some park and are requeued, and some expire: of each key one is in hand
// at a time, in order (outbox case 22).
func TestKeysOverThreeNodes(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	var nodes []*postgres.DB
	for i := range 3 {
		nodes = append(nodes, opened(t, dsn, postgres.Options{Source: "s", Node: fmt.Sprint("n", i), Lease: 5 * time.Second}))
	}
	if err := nodes[0].ConfigureLane(t.Context(), "a", holdfast.LaneSettings{Strict: true}); err != nil {
		t.Fatal(err)
	}
	const keys, each = 12, 15
	lasting := 0
	for n := range each {
		for k := range keys {
			m := holdfast.Message{ID: holdfast.ID(fmt.Sprintf("k%02d-%03d", k, n)), OrderingKey: fmt.Sprint("k", k)}
			if (n+k)%5 == 4 {
				m.TTL = time.Minute
			} else {
				lasting++
			}
			put(t, nodes[(n+k)%3], m)
		}
	}
	pass(t, dsn, time.Hour) // a fifth of them, in between, is over
	o := &ordered{hand: map[string]holdfast.ID{}, last: map[string]holdfast.ID{}}
	var all sync.WaitGroup
	end := time.Now().Add(20 * time.Second)
	for i, db := range nodes {
		for range 2 {
			all.Go(func() {
				for !o.finished(lasting) && time.Now().Before(end) {
					if err := o.work(t, db, nodes[(i+1)%3]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Go(func() {
			for !o.finished(lasting) && time.Now().Before(end) {
				if _, _, err := db.Expire(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	all.Wait()
	for _, f := range o.faults {
		t.Error(f)
	}
	if o.ended != lasting {
		t.Errorf("%d were delivered, want %d", o.ended, lasting)
	}
	for more := true; more; {
		var err error
		if _, more, err = nodes[0].Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := texts(t, dsn, "SELECT state || ' ' || count(*) FROM hf_final GROUP BY state"); !got[fmt.Sprint("2 ", lasting)] || !got[fmt.Sprint("4 ", keys*each-lasting)] || len(got) != 2 {
		t.Errorf("by state: %v, want %d delivered and %d expired", got, lasting, keys*each-lasting)
	}
	audit(t, nodes[0])
}

// work is what a node does with a few messages. What it parks, another node
// requeues.
func (o *ordered) work(t *testing.T, db, other *postgres.DB) error {
	t.Helper()
	b, err := db.Claim(t.Context(), map[string]int{"a": 4})
	if err != nil {
		return err
	}
	for i := range b.Claims {
		o.begin(&b.Claims[i])
	}
	if len(b.Claims) == 0 {
		time.Sleep(2 * time.Millisecond)
	}
	for i := range b.Claims {
		c := &b.Claims[i]
		s := done()
		switch rand.N(6) {
		case 0:
			s = holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.Unreachable}
		case 1:
			s = parkIt()
		}
		s.Seq, s.Token = c.Seq, c.Token
		o.end(c, s.State == holdfast.Delivered)
		wins, err := db.Settle(t.Context(), s)
		if err != nil || !wins[0] {
			return fmt.Errorf("settle %s: %v, %w", c.Message.ID, wins, err)
		}
		if s.State == holdfast.Parked {
			if _, err := other.Requeue(t.Context(), c.Message.ID, holdfast.Requeue{}); err != nil {
				return err
			}
		}
	}
	return nil
}
