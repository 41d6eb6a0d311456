package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// attempt is one request in flight: one message, or a batch.
type attempt struct {
	claims    []Claim
	again     bool // a message of it was tried before
	route     *laneRoute
	began     time.Time
	abandoned bool                    // guarded by the lane
	cut       context.CancelCauseFunc // cuts off this attempt alone; nil: cannot, or not running yet; guarded by the lane
	left      bool                    // it was cut off but hangs, and has lost its slot; guarded by the lane
	held      bool                    // it keeps its slot until the loop has learned from it; guarded by the lane
}

// finished is a claim whose attempt has ended.
type finished struct {
	lane    *laneRun
	claim   Claim
	receipt Receipt
	failure *Failure // nil: delivered
	took    time.Duration
	attempt *attempt // that called the deliverer; nil: the deliverer was not called
	detail  []byte   // what the journal is to have of the answer
	delay   *delayed // set if the message waits only for its destination; nil: it waits by its own schedule
}

// reports carries results from the workers to the loop.
type reports struct {
	mu   sync.Mutex
	list []finished
	ring chan struct{}
}

func (r *reports) add(list ...finished) {
	r.mu.Lock()
	r.list = append(r.list, list...)
	r.mu.Unlock()
	select {
	case r.ring <- struct{}{}:
	default:
	}
}

func (r *reports) take(into []finished) []finished {
	r.mu.Lock()
	defer r.mu.Unlock()
	into = append(into, r.list...)
	clear(r.list)
	r.list = r.list[:0]
	return into
}

// peek returns the results that take has not taken yet.
func (r *reports) peek() []finished {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// start moves the claimed messages into the ready queue and starts workers for the free slots.
func (r *dispatch) start(l *laneRun) {
	if l.closed {
		return
	}
	perRequest := r.batchSize(l, l.route)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.withholds() && len(l.incoming) > 1 {
		r.giveBack(l.pickProbe())
	}
	for _, c := range l.incoming {
		l.ready.add(c)
	}
	clear(l.incoming)
	l.incoming = l.incoming[:0]
	if l.ready.len() > 0 {
		r.agenda.busy[l] = struct{}{}
	}
	want := (l.ready.begins(l.retries()*perRequest) + perRequest - 1) / perRequest
	for want = min(want, l.slots()); want > 0; want-- {
		l.active++
		go r.worker(l)
	}
}

// pickProbe keeps one of the messages with the fewest tries and returns the others:
// a message that failed before says less about the destination. It keeps the newest
// and the oldest in turn: messages that always fail tend to come together, and a good
// message must not wait behind all of them.
func (l *laneRun) pickProbe() []Claim {
	best, oldest := 0, l.probes%2 == 1
	for i := range l.incoming {
		c, b := &l.incoming[i], &l.incoming[best]
		if c.Tries < b.Tries || c.Tries == b.Tries && (c.Seq < b.Seq) == oldest {
			best = i
		}
	}
	l.incoming[0], l.incoming[best] = l.incoming[best], l.incoming[0]
	rest := slices.Clone(l.incoming[1:])
	l.incoming = l.incoming[:1]
	return rest
}

// batchSize returns the most messages that one request of a route carries now.
func (r *dispatch) batchSize(l *laneRun, route *laneRoute) (n int) {
	if route.batch == nil {
		return 1
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(r.work, "deliverer panicked", slog.String("destination", l.name), slog.Any("panic", p))
			n = 1
		}
	}()
	return max(route.batch.BatchSize(), 1)
}

// worker makes attempts one after the other while the lane has claims, slots and
// success. After a failure, the loop first decides how much the lane bears.
func (r *dispatch) worker(l *laneRun) {
	for {
		route := l.present()
		if route == nil {
			return
		}
		a := l.next(route, r.batchSize(l, route))
		route.hand.put()
		if a == nil || l.ended(a, r.deliver(l, a), &r.reports) {
			return
		}
	}
}

// present takes the current route in hand. Nil ends the worker.
func (l *laneRun) present() *laneRoute {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.active--
		return nil
	}
	l.route.hand.take()
	return l.route
}

// next takes the next request out of the ready queue. The request has at most size
// messages; size belongs to route. Nil ends the worker.
func (l *laneRun) next(route *laneRoute, size int) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if route != l.route { // the route has just changed, and its size is not known: take one message
		size = 1
	}
	l.active-- // it counts again if there is something to do
	if l.ready.len() == 0 || l.slots() <= 0 {
		return nil
	}
	claims := l.ready.take(size, l.retries() > 0)
	if len(claims) == 0 {
		return nil
	}
	l.active++
	again := func(c Claim) bool { return c.Tries > 0 }
	a := &attempt{claims: claims, again: slices.ContainsFunc(claims, again), route: l.route, began: time.Now()}
	a.route.hand.take()
	if l.inFlight == nil {
		l.inFlight = map[*attempt]struct{}{}
	}
	l.inFlight[a] = struct{}{}
	return a
}

// ended takes the attempt out of flight and reports it, in one step: whoever sees
// nothing in flight has the report. If the loop has given the attempt up meanwhile,
// the late outcome is dropped. held says whether the attempt keeps its slot until the
// loop has learned from it, so that failures at once never exceed the limit.
func (l *laneRun) ended(a *attempt, list []finished, to *reports) (held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inFlight, a)
	a.route.hand.put()
	l.lastEnd = time.Now()
	if a.abandoned || a.left {
		l.hanging--
	}
	if a.abandoned {
		return false
	}
	a.held = !a.left && list[len(list)-1].attempt != nil && !worked(list) // results that were never sent come first in the list
	to.add(list...)
	return a.held
}

// worked reports whether the destination did its work for any message of the request.
func worked(request []finished) bool {
	return slices.ContainsFunc(request, func(f finished) bool { return f.attempt != nil && f.failure.served() })
}

// release frees the slot of an attempt that the loop has learned from.
func (l *laneRun) release(a *attempt) (held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, a.held = a.held, false; held {
		l.active--
	}
	return held
}

// deliver makes one attempt. It does not send messages whose TTL is over, or whose
// budget was spent by attempts that killed the process.
func (r *dispatch) deliver(l *laneRun, a *attempt) []finished {
	list := make([]finished, 0, len(a.claims))
	send := a.claims[:0:0]
	for _, c := range a.claims {
		switch {
		case r.shared != nil && !r.shared.Holds(c):
			list = append(list, finished{lane: l, claim: c, failure: &Failure{Outcome: NotStarted}})
		case c.Expires >= 0 && c.Expires <= time.Since(c.taken):
			list = append(list, finished{lane: l, claim: c, failure: &Failure{Outcome: NotStarted}})
		case c.Failures > 0 && a.route.policy(&c).Spent(c.Failures):
			list = append(list, finished{lane: l, claim: c, failure: &Failure{Outcome: Permanent, Code: "budget_spent", Reason: ReasonExhausted, Err: errBudget}})
		default:
			c.Message.Attempt.RetryFor = a.route.retryFor(&c)
			send = append(send, c)
		}
	}
	if len(send) == 0 {
		return list
	}
	own, cut := l.severable(r.work, a)
	ctx, cancel := context.WithTimeout(own, a.route.Timeout)
	results := r.call(ctx, a.route, send)
	why := context.Cause(ctx)
	cancel()
	cut(nil)
	took := time.Since(a.began)
	for i, c := range send {
		f := finished{lane: l, claim: c, receipt: results[i].Receipt, took: took, attempt: a}
		if err := results[i].Err; err != nil {
			f.failure = classify(err, why)
		}
		r.summarize(&f)
		list = append(list, f)
	}
	return list
}

var errBudget = errors.New("the retry budget is spent")

// call runs the deliverer. A panic is a failed attempt.
func (r *dispatch) call(ctx context.Context, route *laneRoute, send []Claim) (results []Result) {
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(ctx, "deliverer panicked", slog.String("destination", send[0].Message.Destination),
				slog.String("message_id", string(send[0].Message.ID)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			results = make([]Result, len(send))
			for i := range results {
				results[i].Err = &Failure{Code: "panic", MaybeDelivered: true, Err: fmt.Errorf("deliverer panicked: %v", p)}
			}
		}
	}()
	if len(send) == 1 {
		receipt, err := route.Deliverer.Deliver(ctx, send[0].Message)
		return []Result{{receipt, err}}
	}
	ms := make([]Message, len(send))
	for i := range send {
		ms[i] = send[i].Message
	}
	results = route.batch.DeliverBatch(ctx, ms)
	for len(results) < len(send) {
		results = append(results, Result{Err: &Failure{Code: "no_result", MaybeDelivered: true, Err: errNoResult}})
	}
	return results
}

var errNoResult = errors.New("the batch had no result for this message")

// classify reads a deliverer's error. An attempt that we cut off ourselves has no
// outcome (NO-09): it is made again, uncharged. why is the cause of its context.
func classify(err, why error) *Failure {
	f := AsFailure(err)
	// An HTTP client returns the cause of the cancellation, others the plain error.
	cut := errors.Is(f, errShutdown) || errors.Is(f, context.Canceled)
	if f.Outcome != NotStarted && cut && errors.Is(why, errShutdown) {
		return &Failure{Code: codeShutdown, MaybeDelivered: true, Err: errShutdown}
	}
	if f.Outcome > NotStarted { // an error is never a success
		c := *f
		c.Outcome = Transient
		f = &c
	}
	if f.Code == "" && errors.Is(f, context.DeadlineExceeded) {
		c := *f
		c.Code, c.MaybeDelivered = "timeout", true
		return &c
	}
	return f
}

const codeShutdown = "shutdown"

// policy returns the message's own policy, completed by the route's.
func (route *laneRoute) policy(c *Claim) RetryPolicy {
	if c.Message.Retry == nil {
		return route.Retry
	}
	return c.Message.Retry.Over(route.Retry)
}

// retryFor returns how much longer this node will try the message by itself. The
// receiver needs to know it (OI-10). Only a TTL sets an end: attempts that reach nobody
// may be uncharged, a lane may be held, and a node may stand still.
func (route *laneRoute) retryFor(c *Claim) time.Duration {
	if c.Expires < 0 {
		return -1
	}
	return max(c.Expires-time.Since(c.taken), 0) + route.Timeout
}
