package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// handedOver is how long a dispatcher waits at most for a file whose owner has
// none: until it is seen that it wants it, that it may have it, and that it can.
const handedOver = 2500 * time.Millisecond

// courier is a dispatcher of one of the processes, which notes what it delivers.
type courier struct {
	*holdfast.Dispatcher
	log  bytes.Buffer // read once it has stopped
	stop func()

	mu    sync.Mutex
	tried []holdfast.ID
}

// deliver runs a dispatcher for the destinations on a store.
func (a *app) deliver(t testing.TB, destinations ...string) *courier {
	t.Helper()
	c := &courier{}
	route := holdfast.Route{Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		time.Sleep(20 * time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tried = append(c.tried, m.ID)
		return holdfast.Receipt{ID: m.ID}, nil
	})}
	c.Dispatcher = &holdfast.Dispatcher{Store: a.DB, Lanes: a.DB, Routes: map[string]holdfast.Route{}, Logger: slog.New(slog.NewTextHandler(&c.log, nil))}
	for _, name := range destinations {
		c.Routes[name] = route
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	c.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	return c
}

func (c *courier) delivered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tried)
}

// logged fails unless each of the texts stands in so many lines of the log.
func (c *courier) logged(t testing.TB, want map[string]int) {
	t.Helper()
	for text, n := range want {
		if got := strings.Count(c.log.String(), text); got != n {
			t.Errorf("%q stands %d times in the log, want %d:\n%s", text, got, n, c.log.String())
		}
	}
}

const (
	warnsOfOwner = `level=WARN msg="another process owns the store`
	tellsOfOwner = `level=INFO msg="this process owns the store now`
)

// owners fails unless the first store has the file and the others know it.
func owners(t testing.TB, owner *app, others ...*app) {
	t.Helper()
	if got := owner.Owner(); got != "" {
		t.Errorf("the owner takes %q for it", got)
	}
	for _, a := range others {
		if got := a.Owner(); !strings.HasPrefix(got, fmt.Sprintf("process %d on ", os.Getpid())) {
			t.Errorf("another takes %q for the owner", got)
		}
	}
}

// F1-32: ownership belongs to who dispatches. A process that runs no dispatcher
// lets the file go to one that does, whoever was there first.
func TestAProcessWithoutADispatcherLetsTheFileGo(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		enqueue(t, owner.DB, message("1"))
		enqueue(t, other.DB, message("2"))
		time.Sleep(time.Minute)
		owners(t, owner, other)
		c := other.deliver(t, "a")
		time.Sleep(handedOver)
		if n := c.delivered(); n != 2 {
			t.Errorf("%d messages were delivered, want 2", n)
		}
		time.Sleep(time.Minute)
		owners(t, other, owner)
		enqueue(t, owner.DB, message("3"))
		time.Sleep(time.Second)
		if n := c.delivered(); n != 3 {
			t.Errorf("%d messages were delivered, want 3", n)
		}
		if n := other.Careful(); n != 0 {
			t.Errorf("the new owner is careful for %d settlements, and nothing was in hand", n)
		}
		c.stop()
		c.logged(t, map[string]int{warnsOfOwner: 1, tellsOfOwner: 1})
		time.Sleep(time.Minute)
		owners(t, other, owner)
		audit(t, owner.DB)
		audit(t, other.DB)
	})
}

// F1-32: of two dispatchers the first keeps the file. The second says that it
// delivers nothing and who does, and takes over when the first one ends, though its
// process lives on.
func TestTheSecondDispatcherSaysWhoHasTheFile(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		first, second := owner.deliver(t, "a"), other.deliver(t, "a", "b")
		enqueue(t, other.DB, message("1"), holdfast.Message{ID: "2", Destination: "b", Endpoint: "E"})
		time.Sleep(2 * time.Minute)
		owners(t, owner, other)
		if a, b := first.delivered(), second.delivered(); a != 1 || b != 0 {
			t.Errorf("the first has delivered %d messages and the second %d, want 1 and 0", a, b)
		}
		for _, s := range first.Status() {
			if s.Owner != "" {
				t.Errorf("the status of %s with the owner names %q", s.Destination, s.Owner)
			}
		}
		causes := map[string]holdfast.Cause{}
		for _, s := range second.Status() {
			if s.Owner != other.Owner() {
				t.Errorf("the status of %s names %q, want %q", s.Destination, s.Owner, other.Owner())
			}
			if s.Standstill != nil {
				causes[s.Destination] = s.Standstill.Cause
			}
		}
		if len(causes) != 1 || causes["b"] != holdfast.CauseNotOwner {
			t.Errorf("stand still: %v, want b, whose messages the owner does not deliver", causes)
		}
		first.stop()
		time.Sleep(handedOver)
		owners(t, other, owner)
		if n := second.delivered(); n != 1 {
			t.Errorf("the second has delivered %d messages, want the one that the first did not", n)
		}
		if s := second.Status(); s[0].Owner != "" || s[1].Owner != "" {
			t.Errorf("the status of the new owner names %q", s[0].Owner)
		}
		first = owner.deliver(t, "a")
		time.Sleep(time.Minute)
		owners(t, other, owner)
		first.stop()
		second.stop()
		first.logged(t, map[string]int{warnsOfOwner: 1, tellsOfOwner: 0})
		second.logged(t, map[string]int{warnsOfOwner: 1, tellsOfOwner: 1})
		audit(t, other.DB)
	})
}

// F1-32: where nobody dispatches the file stays whose it is, and its owner expires
// what is over.
func TestWhereNobodyDispatchesTheFileStays(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		m := message("m")
		m.TTL = time.Second
		enqueue(t, other.DB, m)
		time.Sleep(time.Minute)
		owners(t, owner, other)
		if n, _, err := other.Expire(t.Context()); n != 0 || err != nil {
			t.Errorf("a store beside the owner expired %d messages (%v)", n, err)
		}
		if n, _, err := owner.Expire(t.Context()); n != 1 || err != nil {
			t.Errorf("the owner expired %d messages (%v), want 1", n, err)
		}
		if _, err := os.Stat(owner.path + ".lock.wanted"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("somebody wanted the file: %v", err)
		}
	})
}

// F1-32: a file that was let go belongs to nobody until who wanted it takes it;
// if it wants it no more, the process that let it go has it again.
func TestAFileThatIsWantedWaitsForADispatcher(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		end, err := sqlite.Want(owner.path)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(handedOver)
		for range 100 {
			if owner.Owner() == "" || other.Owner() == "" {
				t.Fatal("a process that does not dispatch has a file that another wants")
			}
			time.Sleep(lookTwice)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		time.Sleep(handedOver)
		if (owner.Owner() == "") == (other.Owner() == "") {
			t.Errorf("the file is of %q and of %q", owner.Owner(), other.Owner())
		}
	})
}

// F1-32: what is in hand is settled by whoever has it before the file goes.
func TestTheFileStaysWhileAMessageIsInHand(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		enqueue(t, owner.DB, message("1"), message("2"))
		held := claims(t, owner, 1)
		c := other.deliver(t, "a")
		time.Sleep(time.Minute)
		owners(t, owner, other)
		if n := c.delivered(); n != 0 {
			t.Errorf("%d messages were delivered beside the owner", n)
		}
		if won, err := owner.Settle(t.Context(), settlement(held[0], holdfast.Delivered)); err != nil || !won[0] {
			t.Errorf("settle: %v, %v", won, err)
		}
		time.Sleep(handedOver)
		owners(t, other, owner)
		c.stop()
		if len(c.tried) != 1 || c.tried[0] == held[0].Message.ID {
			t.Errorf("delivered %v, want the one that was not in hand", c.tried)
		}
		audit(t, other.DB)
	})
}

// F1-32: a process that tries nothing has the file between two that do. What was
// in hand at a death is as suspect afterwards as before, and is charged once.
func TestSuspectsGoWithTheFile(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		racetest.Bubble(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shop.db")
			a := h.attach(t, path, virtual())
			enqueue(t, a.DB, message("1"), message("2"), message("3"))
			for range 2 { // the first death leaves nothing written down, the second two suspects
				claims(t, a, 2)
				path = copyOf(t, path)
				a.shut(t)
				a = h.attach(t, path, virtual())
			}
			b := h.attach(t, path, virtual())
			defer a.shut(t)
			defer b.shut(t)
			defer b.Wake().Stop()
			time.Sleep(handedOver)
			owners(t, b, a)
			if n := b.Careful(); n != 1000 {
				t.Errorf("the new owner is careful for %d settlements, want 1000", n)
			}
			for _, want := range []int{1, 1, 1} { // one of the last few suspects at a time, then the rest
				c := claims(t, b, 10)
				if len(c) != want || c[0].Failures != 0 || c[0].Tries > 1 {
					t.Fatalf("claimed %v, want %d: %+v", idsOf(c), want, c)
				}
				if _, err := b.Settle(t.Context(), settlement(c[0], holdfast.Delivered)); err != nil {
					t.Error(err)
				}
			}
			audit(t, b.DB)
		})
	})
}

// F1-32: dispatchers of three processes come and go, and each message is delivered
// once.
func TestTheFileFollowsTheDispatchers(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		racetest.Bubble(t, func(t *testing.T) {
			first, second := pair(t, h)
			all := []*app{first, second, h.attach(t, first.path, virtual())}
			tried := map[holdfast.ID]int{}
			var mu sync.Mutex
			var running sync.WaitGroup
			ending := time.Now().Add(2 * time.Minute)
			for _, a := range all {
				running.Go(func() {
					for time.Now().Before(ending) {
						time.Sleep(rand.N(4 * time.Second))
						c := a.deliver(t, "a")
						time.Sleep(rand.N(8 * time.Second))
						c.stop()
						mu.Lock()
						for _, id := range c.tried {
							tried[id]++
						}
						mu.Unlock()
					}
				})
			}
			const most = 200
			for i := range most {
				enqueue(t, all[i%3].DB, message(holdfast.ID(fmt.Sprint("m", i))))
				time.Sleep(rand.N(time.Second))
			}
			running.Wait()
			c := first.deliver(t, "a")
			time.Sleep(handedOver + 10*time.Second)
			c.stop()
			for _, id := range c.tried {
				tried[id]++
			}
			for i := range most {
				if id := holdfast.ID(fmt.Sprint("m", i)); tried[id] != 1 || stateOf(t, second.DB, id) != "delivered" {
					t.Errorf("%s was tried %d times and is %s", id, tried[id], stateOf(t, second.DB, id))
				}
			}
			for _, a := range all {
				audit(t, a.DB)
				a.shut(t)
			}
		})
	})
}
