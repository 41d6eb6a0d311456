package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Route says how to reach a destination. The zero value of every field except Deliverer works.
type Route struct {
	Deliverer Deliverer
	Retry     RetryPolicy   // its zero fields: DefaultRetry
	Timeout   time.Duration // of one attempt; zero: 30 s
	Limit     int           // the most requests in flight; zero: 20
	ChargeAll bool          // an attempt that reached nobody counts against the budget too (SF-07)
	Poll      time.Duration // the longest time between two looks for due messages; zero: Dispatcher.Poll
	Last      time.Duration // how long an attempt that a stop cuts off may take to return; zero: 2 s

	// OwnSchedule makes each message keep exactly its own schedule, as webhooks promise
	// (WH-02, WH-03). While the destination is down, its messages are neither withheld nor
	// tried sooner, and up to Limit requests at a time may fail. A quarter of Limit, rounded up,
	// is for first attempts alone if Limit is at least 2, so that retries that hang leave a new
	// message room.
	OwnSchedule bool
	// CutOff makes a change or removal of this route act on its attempts in hand as a stop
	// does: after Grace the dispatcher cuts them off, uncharged. An attempt that has not
	// returned after Last loses its slot. Its message is not sent again before it returns.
	// Without CutOff, attempts in hand end as they began.
	CutOff bool
}

// Dispatcher claims due messages, delivers them in lanes, and settles their outcomes.
// A destination that is slow or gone costs the others nothing: each lane has its own
// slots and backs off as a whole. While it is down, one message at a time probes it.
type Dispatcher struct {
	Store  Store
	Routes map[string]Route // by destination, at the start; SetRoute and RemoveRoute change them; messages of other destinations wait for a route
	Lanes  Lanes            // keeps lane faults over restarts; nil: they are lost

	// OnParked and OnExpired are told of each message that parked or expired, durably and at
	// least once (OI-05, OI-06). The store writes the notice, itself a message, together with
	// the change. An error of the callback retries the notice by DefaultRetry without end; a
	// Permanent Failure parks it. The callbacks may use the store: no transaction is open.
	// Nil: nobody is told, and the notices that wait are dropped, unless another dispatcher of
	// the process runs on the store with callbacks; then it keeps them. Two dispatchers of one
	// process cannot have different callbacks: Run of the second returns ErrState. Dispatchers
	// of several processes must set the same.
	OnParked, OnExpired func(ctx context.Context, e Ended) error
	// Beside says that another dispatcher, running or not yet, has the callbacks of the
	// store: this one leaves notices alone.
	Beside bool

	Poll     time.Duration // backstop for missed wake-ups and timers; zero: 1 s (OI-04)
	Grace    time.Duration // for work in hand at a stop; zero: 10 s (SF-10)
	Observer Observer
	// Summary makes of what a destination answered the text that the journal keeps of the attempt for its followers, as
	// {"answer": text} in Entry.Detail. ended says that the message ends there, undelivered. It may be called
	// concurrently. Nil: nothing is kept.
	Summary  func(answer []byte, ended bool) string
	Waiters  *Waiters     // told of first attempts; nil: nobody waits
	Progress *Progress    // shared by all dispatchers of the store, run by its maker; nil: the dispatcher has its own
	Logger   *slog.Logger // nil: none

	running atomic.Pointer[dispatch]
	watch   atomic.Pointer[Progress]
	busy    atomic.Bool

	observer atomic.Int64 // panics of the Observer

	mu      sync.Mutex            // guards the fields below
	set     map[string]*laneRoute // stands instead of Routes; nil: nothing was set
	given   map[string]*laneRoute // the routes of Routes that the last run got
	live    *dispatch             // the run that is told of changes
	changes []reroute             // not yet taken over by live
}

// Bounds of what a dispatcher holds. Claims carry payloads, so the lanes
// bound bytes as well.
const (
	heldClaims  = 20000   // ready in all lanes together; a lane that claims gets up to an equal part, at least startLimit
	laneClaims  = 2048    // ready in one lane at most
	laneBytes   = 4 << 20 // of payloads, ready in one lane
	batchBytes  = 1 << 20 // of payloads, in one request
	lastWords   = 2 * time.Second
	hungAfter   = 5 * time.Second // after its time-out; then an attempt is given up
	settleRetry = 5 * time.Second // the longest wait before a settlement is tried again
)

// dispatch is one run of a dispatcher. Its loop's goroutine owns every field that is not
// marked otherwise.
type dispatch struct {
	d       *Dispatcher
	log     *slog.Logger
	poll    time.Duration
	wake    *Wake
	mu      sync.RWMutex // guards lanes: only the loop changes it, others read
	lanes   map[string]*laneRun
	agenda  agenda
	slots   map[string]int // the results of wants, reused
	firsts  map[string]int
	shared  Shared          // the store, if several processes use it at once
	owned   Owned           // the store, if one process at a time owns it
	idles   bool            // another process owns the store
	work    context.Context // of attempts: ends when the grace is over
	halt    context.CancelCauseFunc
	reports reports // shared with the workers

	outbox   []finished // wait to be settled
	sent     []finished // are being settled
	settling bool
	lingers  bool // the run has ended, but attempts in hand go on
	settled  chan settleAnswer
	told     atomic.Pointer[time.Time] // when the run was told to stop, even if it waited for something then
	trouble  time.Duration             // wait before the next settlement, while settlements fail; 0: they work
	looked   time.Time                 // when the loop last looked for attempts that hang
	polled   time.Time                 // when the store was last asked without a reason
	faults   faultKeeper
	faulty   map[string]string // why a destination was held at the start, until its route is removed
	hasty    sync.WaitGroup    // calls of Hasten

	decisions decisions
}

// errShutdown is the cause of attempts that are cut off at the end of the grace.
var errShutdown = errors.New("shutting down")

// Run dispatches until ctx ends. Then it takes nothing more, lets attempts in hand end
// during the grace, cuts the rest off, and records every outcome. It returns nil after
// such a stop. It returns an error if the store has stopped, if an attempt did not return
// after all, or if an outcome was not recorded. Such a message stays claimed until its
// attempt returns, and the outcome is recorded then, as long as the store is open; if the
// process ends first, the next owner tries the message again. Run waits for a store that
// is away (ErrUnavailable). A Dispatcher runs once at a time.
func (d *Dispatcher) Run(ctx context.Context) error {
	if !d.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("dispatch: %w: it is running already", ErrState)
	}
	defer d.busy.Store(false)
	wake := d.Store.Wake()
	defer wake.Stop()
	r, err := d.begin(ctx, wake)
	defer d.leave()
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	if r == nil {
		return nil // it was told to stop before the store could be asked
	}
	defer r.halt(nil)
	d.running.Store(r)
	stopBeside := r.beside()
	err = r.loop(ctx)
	stopBeside()
	d.Waiters.shutAll(func(destination string) bool { return r.lanes[destination] != nil }) // attempts that linger keep nobody waiting
	r.faults.wait()
	r.halt(nil)
	r.hasty.Wait()
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	return nil
}

// beside runs what looks at the store beside the loop, until the returned function is
// called: the reader of people's decisions, and the watch unless Progress is given.
func (r *dispatch) beside() (stop func()) {
	ctx, cancel := context.WithCancel(r.work)
	var both sync.WaitGroup
	d := r.d
	if p := d.Progress; p != nil {
		d.watch.Store(p)
	} else {
		p = &Progress{Store: d.Store, Lanes: r.statuses, Logger: d.Logger}
		d.watch.Store(p)
		both.Go(func() { _ = p.Run(ctx) }) // it has no error
	}
	if d.Lanes != nil {
		both.Go(func() { r.decisions.follow(ctx) })
	}
	return func() {
		cancel()
		both.Wait()
	}
}

// check reports what is wrong with a route, with its zero fields filled.
func (route *Route) check(name string) error {
	switch {
	case route.Deliverer == nil:
		return &FieldError{"route", name, "has no deliverer"}
	case route.Timeout < 0:
		return &FieldError{"route." + name + ".timeout", route.Timeout.String(), "must not be negative"}
	case route.Limit < 0:
		return &FieldError{"route." + name + ".limit", strconv.Itoa(route.Limit), "must not be negative"}
	case route.Poll < 0:
		return &FieldError{"route." + name + ".poll", route.Poll.String(), "must not be negative"}
	case route.Last < 0:
		return &FieldError{"route." + name + ".last", route.Last.String(), "must not be negative"}
	}
	route.Retry = route.Retry.Over(DefaultRetry())
	if route.Timeout == 0 {
		route.Timeout = 30 * time.Second
	}
	if route.Limit == 0 {
		route.Limit = 20
	}
	if route.Last == 0 {
		route.Last = lastWords
	}
	return route.Retry.Validate()
}

// begin asks the store for what a run begins with. It repeats this while the store is
// away: an outage at the start ends a dispatcher as little as a later one. It returns
// nil if ctx ends meanwhile.
func (d *Dispatcher) begin(ctx context.Context, wake *Wake) (*dispatch, error) {
	for told := false; ; told = true {
		r, err := d.newRun(ctx, wake)
		if !errors.Is(err, ErrUnavailable) {
			return r, err
		}
		if !told && d.Logger != nil {
			d.Logger.ErrorContext(ctx, "the store is away, the dispatcher begins when it is back", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(time.Second):
		}
	}
}

func (d *Dispatcher) newRun(ctx context.Context, wake *Wake) (*dispatch, error) {
	r := &dispatch{
		d: d, wake: wake, log: d.Logger, poll: d.Poll, lanes: map[string]*laneRun{}, slots: map[string]int{}, firsts: map[string]int{},
		agenda:  agenda{busy: map[*laneRun]struct{}{}, away: map[*laneRun]struct{}{}},
		reports: reports{ring: make(chan struct{}, 1)}, settled: make(chan settleAnswer, 1),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.poll <= 0 {
		r.poll = time.Second
	}
	r.work, r.halt = context.WithCancelCause(context.WithoutCancel(ctx))
	r.faults.lanes, r.faults.log = d.Lanes, r.log
	r.shared, _ = d.Store.(Shared)
	r.owned, _ = d.Store.(Owned)
	if d.Lanes != nil {
		r.decisions.lanes, r.decisions.log, r.decisions.ring = d.Lanes, r.log, r.reports.ring
		if err := r.recall(context.WithoutCancel(ctx)); err != nil { // as in routes: an early stop is not a failure
			return nil, err
		}
	}
	routes, err := d.routes(ctx, r)
	if err != nil {
		return nil, err
	}
	for name, route := range routes {
		r.add(name, route)
	}
	return r, nil
}

// recall reads what is kept about destinations: people's decisions, and lane faults.
func (r *dispatch) recall(ctx context.Context) error {
	if err := r.decisions.read(ctx); err != nil {
		return err
	}
	r.decisions.done = r.decisions.last.Load()
	faults, err := r.d.Lanes.LaneFaults(ctx)
	if err != nil {
		return err
	}
	r.faulty = make(map[string]string, len(faults))
	for _, f := range faults {
		r.faulty[f.Destination] = f.Problem
	}
	return nil
}

// loop is the one goroutine that makes decisions.
func (r *dispatch) loop(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		now := time.Now()
		r.told.Store(&now)
	})()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.stop()
		case <-r.wake.C:
			r.woken()
		case <-r.reports.ring:
			r.collect()
		case a := <-r.settled:
			if err := r.answered(a); err != nil {
				return errors.Join(err, r.abort())
			}
		case <-timer.C:
		}
		now := time.Now()
		r.agenda.ring(now)
		// Check this on each turn, not only when the timer fires: events keep putting the
		// timer off.
		if now.Sub(r.looked) >= time.Second {
			r.looked = now
			r.giveUpHung(now)
			r.notice()
		}
		if now.Sub(r.polled) >= r.poll {
			r.polled = now
			r.agenda.poll()
			r.allotAway()
		}
		r.reroute()
		r.heed()
		r.obey()
		r.allot()
		r.settle()
		err := r.refill(ctx)
		if errors.Is(err, ErrClosed) {
			return errors.Join(err, r.abort())
		}
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "claim failed", slog.Any("error", err))
		}
		timer.Reset(max(time.Until(r.agenda.nextAlarm(r.polled.Add(r.poll))), 0))
	}
}

// woken asks the store for the lanes that a wake-up names.
func (r *dispatch) woken() {
	g := &r.agenda
	var all bool
	if g.names, all = r.wake.Take(g.names[:0]); all {
		g.askAll()
		return
	}
	for _, name := range g.names {
		if l := r.lanes[name]; l != nil {
			g.ask(l)
		}
	}
}

// notice tells lanes that are down about new messages. The counts are in memory. It
// asks for none while every lane is up.
func (r *dispatch) notice() {
	var lanes map[string]LaneCounts
	for l := range r.agenda.busy {
		if !l.down {
			continue
		}
		if lanes == nil {
			lanes = r.d.Store.Counts().Lanes
		}
		if l.notice(lanes[l.name].Pending) {
			r.agenda.mark(l)
		}
	}
}
