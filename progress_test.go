package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// logged is a log that many write and one reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func statusOf(t *testing.T, d *holdfast.Dispatcher, destination string) holdfast.LaneStatus {
	t.Helper()
	for _, s := range d.Status() {
		if s.Destination == destination {
			return s
		}
	}
	t.Fatalf("no status of %s in %+v", destination, d.Status())
	return holdfast.LaneStatus{}
}

// F1-33, F1-34: due work without progress shows, whatever the count and
// whatever the lane thinks of its destination, and no more once it moves.
func TestDueWorkWithoutProgressShows(t *testing.T) {
	t.Parallel()
	putOff := &holdfast.Failure{Outcome: holdfast.Unreachable, Served: true, Code: "greylisted", Err: errors.New("later")}
	for name, c := range map[string]struct {
		n      int
		answer error
		cause  holdfast.Cause
	}{
		"one message":          {1, errUnreachable, holdfast.CauseFailing},
		"one that is put off":  {1, putOff, holdfast.CauseFailing},
		"many":                 {500, errUnreachable, holdfast.CauseDown},
		"one, bad credentials": {1, errLaneFault, holdfast.CauseHeld},
		"one, cannot begin":    {1, &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "busy", Err: errors.New("busy")}, holdfast.CauseBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				to := &script{answer: always(c.answer)}
				enqueue(t, db, numbered(c.n, "a")...)
				route := holdfast.Route{Deliverer: to, Retry: holdfast.RetryPolicy{First: time.Second, Factor: 1, Jitter: -1}}
				d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": route}}
				stop := dispatch(t, d)
				time.Sleep(45 * time.Second)
				if s := statusOf(t, d, "a"); s.Standstill != nil {
					t.Errorf("after 45 s already: %+v", s.Standstill)
				}
				time.Sleep(13 * time.Minute)
				s := statusOf(t, d, "a")
				if s.Standstill == nil || s.Standstill.Cause != c.cause || s.Standstill.For < 13*time.Minute || s.Standstill.For > 14*time.Minute {
					t.Errorf("after 13 minutes: %+v, want %s", s.Standstill, c.cause)
				}
				to.become(nil)
				time.Sleep(6 * time.Minute)
				if s := statusOf(t, d, "a"); s.Standstill != nil || s.Failing != 0 {
					t.Errorf("delivered, and still: %+v", s)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A restart does not make the age of what fails small again.
func TestTheAgeOfWhatFailsOutlivesARestart(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errTransient)}
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		run := func() *holdfast.Dispatcher {
			d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: holdfast.RetryPolicy{Attempts: holdfast.Unlimited}}}}
			stop := dispatch(t, d)
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
			return d
		}
		run()
		if s := statusOf(t, run(), "a"); s.Failing < 19*time.Minute {
			t.Errorf("failing for %s, want nearly 20 m", s.Failing)
		}
	})
}

// A backlog that moves is none that stands, however old its oldest message is,
// nor is a long request, nor what waits for its time.
func TestWhatMovesDoesNotStand(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		slow := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(5 * time.Second); return nil }}
		long := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(20 * time.Minute); return nil }}
		enqueue(t, db, numbered(1000, "slow")...)
		enqueue(t, db, holdfast.Message{Destination: "long"}, holdfast.Message{Destination: "later", Delay: time.Hour})
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
			"slow": {Deliverer: slow, Limit: 1}, "long": {Deliverer: long, Timeout: time.Hour}, "later": {Deliverer: slow},
		}}
		stop := dispatch(t, d)
		time.Sleep(15 * time.Minute)
		for _, s := range d.Status() {
			if s.Standstill != nil {
				t.Errorf("%s: %+v", s.Destination, s.Standstill)
			}
		}
		time.Sleep(6 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// F1-42, SF-11: a bare dispatcher without a route for a message says so, once a
// minute and in its status.
func TestADestinationWithoutARouteShows(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		log := &logged{}
		enqueue(t, db, holdfast.Message{ID: "lost", Destination: "nowhere"})
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{}}, "z": {Deliverer: &script{}}}, Logger: slog.New(slog.NewTextHandler(log, nil))}
		stop := dispatch(t, d)
		time.Sleep(5*time.Minute + 5*time.Second)
		const line = `level=WARN msg="due messages make no progress" cause=no_route destinations=nowhere count=1`
		if n := log.count(line); n < 5 || n > 6 {
			t.Errorf("%d warnings in five minutes", n)
		}
		s := statusOf(t, d, "nowhere")
		if s.Standstill == nil || s.Standstill.Cause != holdfast.CauseNoRoute || s.Standstill.For < 4*time.Minute || len(d.Status()) != 3 {
			t.Errorf("status %+v of %d", s, len(d.Status()))
		}
		wantState(t, db, "lost", holdfast.Pending)
		if err := stop(); err != nil {
			t.Error(err)
		}
		d = &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"nowhere": {Deliverer: &script{}}}}
		stop = dispatch(t, d)
		time.Sleep(time.Minute)
		if s := statusOf(t, d, "nowhere"); s.Standstill != nil || len(d.Status()) != 1 {
			t.Errorf("with a route: %+v", d.Status())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// table answers what is overdue and how the lanes fare.
type table map[string]time.Duration

func (o table) Overdue(context.Context) (map[string]time.Duration, error) { return maps.Clone(o), nil }

func (o table) Counts() holdfast.Counts {
	return holdfast.Counts{Lanes: map[string]holdfast.LaneCounts{"a": {Pending: 1}}}
}

// Design 17: a lane stands, which turns health red, when due messages make no
// progress and nothing tells why, and only then.
func TestWhatStands(t *testing.T) {
	t.Parallel()
	up := holdfast.LaneStatus{Destination: "a", Up: true, Limit: 1, Timeout: 10 * time.Minute, Idle: 5 * time.Minute}
	with := func(f func(s *holdfast.LaneStatus)) holdfast.LaneStatus {
		s := up
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		lane holdfast.LaneStatus
		late time.Duration
		want holdfast.Cause
	}{
		"nothing ends":                       {up, 2 * time.Minute, holdfast.CauseStuck},
		"not for long":                       {up, 59 * time.Second, ""},
		"something ended a moment ago":       {with(func(s *holdfast.LaneStatus) { s.Idle = time.Second }), time.Hour, ""},
		"a long request within its time-out": {with(func(s *holdfast.LaneStatus) { s.InFlight, s.Oldest = 1, 5*time.Minute }), time.Hour, ""},
		"a request past its time-out":        {with(func(s *holdfast.LaneStatus) { s.InFlight, s.Oldest = 1, 11*time.Minute }), time.Hour, holdfast.CauseStuck},
		"only requests that hang":            {with(func(s *holdfast.LaneStatus) { s.InFlight, s.Hanging = 2, 2 }), time.Hour, holdfast.CauseStuck},
		"down":                               {with(func(s *holdfast.LaneStatus) { s.Up = false }), time.Hour, holdfast.CauseDown},
		"asked to pause":                     {with(func(s *holdfast.LaneStatus) { s.Busy = time.Hour }), time.Hour, holdfast.CauseBusy},
		"fails, nothing is due":              {with(func(s *holdfast.LaneStatus) { s.Failing = time.Hour }), 0, holdfast.CauseFailing},
		"others have it":                     {with(func(s *holdfast.LaneStatus) { s.Limit = 0 }), time.Hour, ""},
		"another process owns the store":     {with(func(s *holdfast.LaneStatus) { s.Owner = "process 7" }), time.Hour, holdfast.CauseNotOwner},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				p := &holdfast.Progress{
					Store: table{"a": c.late}, Lanes: func() []holdfast.LaneStatus { return []holdfast.LaneStatus{c.lane} },
					Elsewhere: func(string) bool { return true },
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					if err := p.Run(ctx); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				cancel()
				got := holdfast.Cause("")
				list, _ := p.Standstills()
				if len(list) > 0 {
					got = list[0].Cause
				}
				if got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// Where several dispatchers share a store, one watch knows them all.
func TestOneWatchForSeveralDispatchers(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		enqueue(t, db, holdfast.Message{Destination: "a"}, holdfast.Message{Destination: "b"}, holdfast.Message{Destination: "known"}, holdfast.Message{Destination: "Lost"})
		p := &holdfast.Progress{Store: db, Known: func(name string) bool { return name == "known" }}
		failing := holdfast.Route{Deliverer: &script{answer: always(errUnreachable)}}
		one := &holdfast.Dispatcher{Store: db, Progress: p, Routes: map[string]holdfast.Route{"a": failing}}
		two := &holdfast.Dispatcher{Store: db, Progress: p, Routes: map[string]holdfast.Route{"b": failing}}
		p.Lanes = func() []holdfast.LaneStatus { return append(one.Status(), two.Status()...) }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		stop, stop2 := dispatch(t, one), dispatch(t, two)
		time.Sleep(2 * time.Minute)
		list, err := p.Standstills()
		if len(list) != 3 || err != nil || list[0].Destination != "Lost" || list[1].Destination != "a" || list[2].Cause != holdfast.CauseFailing {
			t.Errorf("got %+v, %v", list, err)
		}
		if s := one.Status(); len(s) != 1 || s[0].Standstill == nil {
			t.Errorf("status %+v", s)
		}
		if old := p.Oldest(); len(old) != 4 || old["known"] < time.Minute || old["a"] < time.Minute {
			t.Errorf("oldest %v", old)
		}
		cancel()
		if err := errors.Join(stop(), stop2(), <-ended); err != nil {
			t.Error(err)
		}
	})
}
