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
	route     *laneRoute
	began     time.Time
	abandoned bool                    // guarded by the lane
	cut       context.CancelCauseFunc // nil: it cannot be cut off alone, or runs not yet; guarded by the lane
	left      bool                    // it was cut off and hangs, and its slot is another's; guarded by the lane
	held      bool                    // its slot, until the loop has learned from it; guarded by the lane
}

// finished is a claim whose attempt has ended.
type finished struct {
	lane    *laneRun
	claim   Claim
	receipt Receipt
	failure *Failure // nil: delivered
	took    time.Duration
	attempt *attempt // that the deliverer was called with; nil: it was not
	delay   *delayed // how it waits only for its destination; nil: by its own schedule
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

// peek returns what take has not taken.
func (r *reports) peek() []finished {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// start moves what was claimed into the ready queue and starts workers for
// the slots that are free.
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
	l.line()
	want := (len(l.ready) + perRequest - 1) / perRequest
	if want > 0 {
		r.agenda.busy[l] = struct{}{}
	}
	for want = min(want, l.slots()); want > 0; want-- {
		l.active++
		go r.worker(l)
	}
}

// pickProbe keeps one of the messages that were tried the fewest times, and
// returns the others: those that failed before say less about the destination.
// It is the newest and the oldest in turn, as messages that always fail tend to
// come together: one that does not is not behind all of them.
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

// line moves what was claimed into the ready queue, one that was never tried
// and one that was in turn: a few bad messages do not stand in the way of all
// that come after them.
func (l *laneRun) line() {
	var again []Claim
	next := func() {
		l.ready, again = append(l.ready, again[0]), again[1:]
	}
	for _, c := range l.incoming {
		l.readyBytes += len(c.Message.Payload)
		if c.Tries > 0 {
			again = append(again, c)
		}
	}
	for _, c := range l.incoming {
		if c.Tries > 0 {
			continue
		}
		l.ready = append(l.ready, c)
		if len(again) > 0 {
			next()
		}
	}
	for len(again) > 0 {
		next()
	}
	clear(l.incoming)
	l.incoming = l.incoming[:0]
}

// batchSize is how many messages one request of a route carries at most now.
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

// worker makes attempts one after the other while the lane has claims, slots
// and success. After a failure the loop decides first what the lane bears.
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

// present takes the route as it is now in hand; nil ends the worker.
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

// next takes the next request out of the ready queue, of at most size messages,
// which is the route's; nil ends the worker.
func (l *laneRun) next(route *laneRoute, size int) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if route != l.route { // it has changed this moment, and may take one only
		size = 1
	}
	l.active-- // it counts again if there is something to do
	if len(l.ready) == 0 || l.slots() <= 0 {
		return nil
	}
	l.active++
	n, bytes := 0, 0
	for n < len(l.ready) && n < size && (n == 0 || bytes+len(l.ready[n].Message.Payload) <= batchBytes) {
		bytes += len(l.ready[n].Message.Payload)
		n++
	}
	a := &attempt{claims: l.ready[:n:n], route: l.route, began: time.Now()}
	a.route.hand.take()
	l.ready = l.ready[n:]
	l.readyBytes -= bytes
	if len(l.ready) == 0 {
		l.ready = nil
	}
	if l.inFlight == nil {
		l.inFlight = map[*attempt]struct{}{}
	}
	l.inFlight[a] = struct{}{}
	return a
}

// ended takes the attempt out of flight and reports it, in one step, so that
// whoever sees nothing in flight has the report. If the loop has given the
// attempt up meanwhile, its late outcome is nobody's any more. It says whether
// the attempt holds its slot until the loop has learned from it: many that fail
// at once are no more than the limit.
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
	a.held = !a.left && list[len(list)-1].attempt != nil && !worked(list) // who was not asked comes first
	to.add(list...)
	return a.held
}

// worked says whether the destination did its work for a message of the request.
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

// deliver makes one attempt. Messages whose time is over, or whose budget was
// spent by attempts that killed the process, are not sent.
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
		list = append(list, f)
	}
	return list
}

var errBudget = errors.New("the retry budget is spent")

// call runs the deliverer, whose panic is a failed attempt.
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

// classify reads a deliverer's error. An attempt that we have cut off ourselves has no
// outcome (NO-09): it is made again, uncharged. why is the cause of its context.
func classify(err, why error) *Failure {
	f := AsFailure(err)
	// An HTTP client returns the cause of the cancellation, others the plain error.
	cut := errors.Is(f, errShutdown) || errors.Is(f, context.Canceled)
	if f.Outcome != NotStarted && cut && errors.Is(why, errShutdown) {
		return &Failure{Code: codeShutdown, MaybeDelivered: true, Err: errShutdown}
	}
	if f.Outcome > NotStarted { // an error is no success
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

// policy is the message's own over the route's.
func (route *laneRoute) policy(c *Claim) RetryPolicy {
	if c.Message.Retry == nil {
		return route.Retry
	}
	return c.Message.Retry.Over(route.Retry)
}

// retryFor is how much longer this node will try the message by itself, as
// the receiver needs to know (OI-10). Only a TTL is an end: attempts that find
// nobody may be free, a lane may be held, and a node may stand still.
func (route *laneRoute) retryFor(c *Claim) time.Duration {
	if c.Expires < 0 {
		return -1
	}
	return max(c.Expires-time.Since(c.taken), 0) + route.Timeout
}
