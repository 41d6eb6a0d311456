package holdfast_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// Many lanes that would each hold a lot share the room there is: the last of
// them is served as promptly as the first.
func TestLanesShareTheRoomForClaims(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		routes := map[string]holdfast.Route{}
		var ms []holdfast.Message
		for i := range 40 {
			name := fmt.Sprintf("lane-%02d", i)
			routes[name] = holdfast.Route{Deliverer: &script{}, Limit: 1000}
			ms = append(ms, holdfast.Message{ID: holdfast.ID(name), Destination: name})
		}
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: routes})
		synctest.Wait()
		began := time.Now()
		enqueue(t, db, ms...)
		synctest.Wait()
		for _, m := range ms {
			wantState(t, db, m.ID, holdfast.Delivered)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s of waiting", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A peer that cannot even begin is not hammered, and its messages are neither
// charged nor lost.
func TestAPeerThatDoesNotBeginIsNotHammered(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(&holdfast.Failure{Outcome: holdfast.NotStarted, Code: "not_started"})}
		ids := enqueue(t, db, numbered(10, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(10 * time.Minute)
		if n := to.count(); n > 800 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		to.become(nil)
		time.Sleep(time.Minute)
		for _, id := range ids {
			if r := wantState(t, db, id, holdfast.Delivered); r.Failures != 0 || r.Tries != 1 {
				t.Errorf("%s: %d failures, %d tries; want 0 and 1", id, r.Failures, r.Tries)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Design 6: a lane loses a request at a time for each failure, and gains one for each
// full round of successes, up to its limit. One that comes up again begins as a new
// one does; where each message has its own schedule, the limit is all there is (WH-02).
func TestHowManyRequestsALaneHasAtATime(t *testing.T) {
	t.Parallel()
	type step struct {
		n     int // so many requests end one after the other
		with  error
		limit int // then
	}
	for name, c := range map[string]struct {
		route holdfast.Route
		steps []step
	}{
		"grows":                     {holdfast.Route{Limit: 8}, []step{{4, nil, 5}, {1, nil, 6}, {5, nil, 6}, {1, nil, 7}, {6, nil, 7}, {1, nil, 8}, {20, nil, 8}, {1, errTransient, 7}}},
		"shrinks":                   {holdfast.Route{Limit: 8}, []step{{4, nil, 5}, {1, errTransient, 4}, {3, nil, 4}, {1, nil, 5}}},
		"has one at least":          {holdfast.Route{Limit: 3}, []step{{2, errTransient, 1}, {2, errTransient, 1}, {1, nil, 2}, {1, nil, 2}, {1, nil, 3}, {4, errTransient, 1}}},
		"was down":                  {holdfast.Route{Limit: 8}, []step{{5, errTransient, 1}, {1, nil, 5}, {4, nil, 5}, {1, nil, 6}}},
		"was down, and is small":    {holdfast.Route{Limit: 3}, []step{{5, errTransient, 1}, {1, nil, 3}}},
		"own schedule":              {holdfast.Route{Limit: 8, OwnSchedule: true}, []step{{1, nil, 8}, {4, errTransient, 8}}},
		"own schedule, and is down": {holdfast.Route{Limit: 8, OwnSchedule: true}, []step{{5, errTransient, 8}, {1, nil, 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				enqueue(t, db, numbered(100, "a")...)
				ends := make(chan error)
				c.route.Deliverer = &script{answer: func(context.Context, holdfast.Message) error { return <-ends }}
				c.route.Retry = holdfast.RetryPolicy{First: time.Hour, Jitter: -1}
				d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": c.route}}
				stop := dispatch(t, d)
				for i, s := range c.steps {
					for range s.n {
						ends <- s.with
						synctest.Wait()
					}
					if got := statusOf(t, d, "a"); got.Limit != s.limit || s.with == nil && (got.InFlight != s.limit || got.Failures != 0) || got.Up == (s.with != nil && s.n >= 5) {
						t.Errorf("after step %d, want %d at a time: %+v", i, s.limit, got)
					}
				}
				close(ends)
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A lane tells for how long it has been up or down, and when an attempt last ended.
func TestSinceWhenALaneIsAsItIs(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: holdfast.RetryPolicy{First: 5 * time.Second, Factor: 1, Jitter: -1}}}}
		stop := dispatch(t, d)
		is := func(up bool, since, idle time.Duration) {
			t.Helper()
			if s := statusOf(t, d, "a"); s.Up != up || s.Since != since || s.Idle != idle {
				t.Errorf("up %v for %s, idle for %s; want %v, %s, %s", s.Up, s.Since, s.Idle, up, since, idle)
			}
		}
		time.Sleep(10 * time.Second)
		is(true, 10*time.Second, 10*time.Second)
		enqueue(t, db, holdfast.Message{Destination: "a"})
		time.Sleep(5 * time.Second)
		is(true, 15*time.Second, 5*time.Second)
		to.become(always(errLaneFault))
		enqueue(t, db, holdfast.Message{Destination: "a"})
		time.Sleep(time.Second)
		is(false, time.Second, time.Second)
		to.become(nil)
		time.Sleep(time.Minute)
		if s := statusOf(t, d, "a"); !s.Up || s.Since != s.Idle || s.Since < 50*time.Second || s.Since > time.Minute {
			t.Errorf("it works again: %+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// meagre is a store that gives one message at a time, every other time that it is
// asked, and says that it has more.
type meagre struct {
	holdfast.Store
	asked int // by the one loop
}

func (m *meagre) Claim(ctx context.Context, want map[string]int) (holdfast.Batch, error) {
	less, now := map[string]int{}, map[string]time.Duration{}
	for name := range want {
		less[name], now[name] = 1, 0
	}
	if m.asked++; m.asked%2 == 1 {
		return holdfast.Batch{Next: now}, nil
	}
	b, err := m.Store.Claim(ctx, less)
	if len(b.Claims) > 0 {
		b.Next = now
	}
	return b, err
}

// OI-04: a store may give less than it was asked for: what it says is due now is
// asked for now, and not only at the next poll.
func TestWhatAStoreStillHasIsAskedForAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		enqueue(t, db, numbered(20, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: &meagre{Store: db}, Poll: time.Hour, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		if n := to.count(); n != 20 {
			t.Errorf("%d of 20 are delivered after a second", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// silent is a store whose wake-ups are lost.
type silent struct{ holdfast.Store }

func (silent) Wake() *holdfast.Wake { return new(holdfast.Wakes).Subscribe() }

// OI-04: what becomes due by the outcome of another message, as the next one of an
// ordering key does, is tried at once, also without a wake-up, and not only at the
// next poll.
func TestWhatAnOutcomeMakesDueIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		ms := numbered(20, "a")
		for i := range ms {
			ms[i].OrderingKey = "press-4"
		}
		enqueue(t, db, ms...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: silent{db}, Poll: time.Hour, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		if n := to.count(); n != 20 {
			t.Errorf("%d of 20 are delivered after a second", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// B0: who asks about one lane gets what Status says of
// it, and is told whether nobody delivers there or nobody knows yet.
func TestOneLaneIsAskedForByName(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}, "b": {Deliverer: to}}}
		if s, known := d.Lane("a"); known || s.Destination != "" {
			t.Errorf("before Run: %+v, %v; want that nobody knows", s, known)
		}
		stop := dispatch(t, d)
		synctest.Wait()
		if s, known := d.Lane("c"); !known || s.Destination != "" {
			t.Errorf("without a route: %+v, %v; want that nobody delivers there", s, known)
		}
		if err := d.Pause(t.Context(), "a", "anna"); err != nil {
			t.Fatal(err)
		}
		enqueue(t, db, holdfast.Message{Destination: "a"})
		time.Sleep(5 * time.Minute)
		for _, want := range d.Status() {
			got, known := d.Lane(want.Destination)
			if diff := cmp.Diff(want, got); !known || diff != "" {
				t.Errorf("lane %s, known %v, differs from its status:\n%s", want.Destination, known, diff)
			}
		}
		if s := statusOf(t, d, "a"); s.Standstill == nil {
			t.Errorf("the paused lane does not stand still: %+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// noted is a store that notes of which lanes it was asked for messages.
type noted struct {
	holdfast.Store
	mu    sync.Mutex
	asked map[string]int
}

func (n *noted) Claim(ctx context.Context, want map[string]int) (holdfast.Batch, error) {
	n.mu.Lock()
	for name := range want {
		n.asked[name]++
	}
	n.mu.Unlock()
	return n.Store.Claim(ctx, want)
}

// take returns how often each lane was asked for since the last time.
func (n *noted) take() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := n.asked
	n.asked = map[string]int{}
	return asked
}

// manyRoutes are n routes to one deliverer, named by number.
func manyRoutes(n int, to holdfast.Deliverer) map[string]holdfast.Route {
	routes := map[string]holdfast.Route{}
	for i := range n {
		routes[strconv.Itoa(i)] = holdfast.Route{Deliverer: to, Retry: holdfast.RetryPolicy{First: time.Minute, Factor: 1, Jitter: -1}}
	}
	return routes
}

// B2: lanes that have nothing to do are not asked for when another one has.
func TestALaneAtRestIsLeftAlone(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store, to := &noted{Store: db, asked: map[string]int{}}, &script{}
		stop := dispatch(t, &holdfast.Dispatcher{Store: store, Poll: time.Hour, Routes: manyRoutes(2500, to)})
		synctest.Wait()
		if asked := store.take(); len(asked) != 2500 {
			t.Errorf("asked for %d lanes at the start, want 2500", len(asked))
		}
		enqueue(t, db, numbered(100, "7")...)
		enqueue(t, db, holdfast.Message{Destination: "nobody's"})
		synctest.Wait()
		to.become(always(errTransient)) // and once more by itself, a minute later
		enqueue(t, db, holdfast.Message{ID: "late", Destination: "8"})
		synctest.Wait()
		to.become(nil)
		time.Sleep(2 * time.Minute)
		wantState(t, db, "late", holdfast.Delivered)
		if asked := slices.Sorted(maps.Keys(store.take())); !slices.Equal(asked, []string{"7", "8"}) {
			t.Errorf("asked for %q, want 7 and 8", asked)
		}
		if n := to.count(); n != 102 {
			t.Errorf("%d attempts, want 102", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// OI-04: where wake-ups are lost, polls find what waits: each asks for a thousand
// lanes, the next ones.
func TestPollsGoOverAllLanes(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &noted{Store: silent{db}, asked: map[string]int{}}
		stop := dispatch(t, &holdfast.Dispatcher{Store: store, Routes: manyRoutes(2500, &script{})})
		synctest.Wait()
		store.take()
		time.Sleep(1500 * time.Millisecond)
		if n := len(store.take()); n != 1000 {
			t.Errorf("a poll asked for %d lanes, want 1000", n)
		}
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "1234"})
		time.Sleep(3 * time.Second)
		wantState(t, db, "m", holdfast.Delivered)
		if n := len(store.take()); n != 2500 {
			t.Errorf("three more asked for %d lanes, want 2500", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
