package holdfast

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// settleAnswer is the result of one Settle call.
type settleAnswer struct {
	list []finished
	sent []Settlement
	won  []bool
	err  error
}

// collect takes results from the workers, learns from them what the lanes bear, and queues
// them for settlement.
func (r *dispatch) collect() {
	from := len(r.outbox)
	r.outbox = r.reports.take(r.outbox)
	now := time.Now()
	ended := r.outbox[from:] // learn may append to the outbox
	for i := range ended {
		if f := ended[i].failure; f != nil && f.Outcome == NotStarted {
			r.d.Waiters.postponed(ended[i].claim.Message.ID)
		}
	}
	for len(ended) > 0 {
		n := 1
		for n < len(ended) && ended[n].attempt != nil && ended[n].attempt == ended[0].attempt {
			n++
		}
		r.learn(ended[:n], now)
		ended = ended[n:]
	}
}

// learn tells the lane how one request ended. A request worked if any of its messages did.
func (r *dispatch) learn(request []finished, now time.Time) {
	l, a := request[0].lane, request[0].attempt
	if a == nil {
		return // nothing was sent
	}
	r.agenda.mark(l)
	if l.removed || a.route != l.route { // it says nothing about the present route
		if l.release(a) {
			r.start(l)
		}
		return
	}
	l.judge(request, now)
	if worked(request) {
		change := l.succeeded(a)
		r.changed(l, change, nil)
		if change != laneLate {
			r.hasten(l, now, change == laneWentUp)
		}
		return
	}
	var failure *Failure
	for i := range request {
		if f := request[i].failure; f.Code != codeShutdown && (failure == nil || failure.Outcome == NotStarted) {
			failure = f
		}
	}
	switch {
	case failure == nil:
	case failure.Outcome == NotStarted:
		l.pause(failure.RetryAfter, now) // the other side is busy, not broken
		r.shut(l)
	default:
		r.changed(l, l.failed(a, failure, now), failure)
	}
	if l.release(a) {
		r.start(l)
	}
}

// changed acts on the change of a lane.
func (r *dispatch) changed(l *laneRun, change laneChange, f *Failure) {
	switch change {
	case laneWentUp:
		r.log.InfoContext(r.work, "destination is up", slog.String("destination", l.name))
		r.faults.keep(l.name, "")
	case laneWentDown, laneWasHeld:
		if f.Outcome == LaneFault {
			r.log.ErrorContext(r.work, "destination held", slog.String("destination", l.name), slog.String("code", f.Code), slog.Any("error", f))
			r.faults.keep(l.name, f.Error())
		} else {
			r.log.WarnContext(r.work, "destination is down", slog.String("destination", l.name), slog.Any("error", f))
		}
		if !l.route.OwnSchedule {
			r.shut(l)
		}
	case laneGrew:
		r.start(l) // ready messages need not wait for a claim
	case laneSame, laneLate:
	}
}

// shut gives back the messages of a lane that is not tried now, and tells those who wait
// for them. Attempts in hand go on.
func (r *dispatch) shut(l *laneRun) {
	r.giveBack(l.takeBack())
	r.d.Waiters.shut(l.name, func() map[ID]struct{} { return r.handOf(l) })
}

// handOf returns the messages in hand: those in flight, and those whose outcome is not on disk yet.
func (r *dispatch) handOf(l *laneRun) map[ID]struct{} {
	hand := map[ID]struct{}{}
	l.mu.Lock()
	for a := range l.inFlight {
		for _, c := range a.claims {
			hand[c.Message.ID] = struct{}{}
		}
	}
	for _, list := range [][]finished{r.outbox, r.sent, r.reports.peek()} { // holding l.mu: an attempt that ends is in one of them
		for _, f := range list {
			hand[f.claim.Message.ID] = struct{}{}
		}
	}
	l.mu.Unlock()
	return hand
}

func (r *dispatch) giveBack(claims []Claim) {
	for _, c := range claims {
		r.d.Waiters.postponed(c.Message.ID)
		r.outbox = append(r.outbox, finished{claim: c, failure: &Failure{Outcome: NotStarted}})
	}
}

// settle sends all ended attempts to the store, one call at a time. Attempts that end
// meanwhile go with the next call.
func (r *dispatch) settle() {
	if r.settling || len(r.outbox) == 0 {
		return
	}
	a := settleAnswer{list: r.outbox, sent: make([]Settlement, len(r.outbox))}
	for i := range a.list {
		a.sent[i] = a.list[i].settlement()
		r.reject(&a.list[i], &a.sent[i])
	}
	if r.shared != nil {
		r.d.Waiters.record(a.list)
	}
	r.outbox, r.sent, r.settling = nil, a.list, true
	wait, last := r.trouble, r.work.Done()
	switch {
	case r.lingers:
		last = nil // it may retry as long as the store is open
	case r.work.Err() != nil: // until the end of the stop, which is near
		wait, last = min(wait, lastWords/4), nil
	}
	go func() {
		if wait > 0 { // the disk was full a moment ago
			t := time.NewTimer(wait)
			defer t.Stop()
			select {
			case <-t.C:
			case <-last: // the last try
			}
		}
		a.won, a.err = r.d.Store.Settle(context.WithoutCancel(r.work), a.sent...)
		r.settled <- a
	}()
}

// reject discards a message that was refused for good at its first try while its caller
// waits for the answer: nobody has to decide about it (SF-03, SF-25, F1-94).
func (r *dispatch) reject(f *finished, s *Settlement) {
	if s.State == Parked && s.Outcome == Permanent && f.claim.Tries == 0 && r.d.Waiters.hold(f.claim.Message.ID) {
		s.State, s.Reason = Discarded, ReasonRejected
	}
}

// settlement turns a result into the settlement of its message.
func (f *finished) settlement() Settlement {
	c := &f.claim
	s := Settlement{Seq: c.Seq, Token: c.Token, Took: f.took, Outcome: Succeeded, State: Delivered, Detail: f.detail}
	if f.failure == nil {
		return s
	}
	p := RetryPolicy{}
	chargeAll := false
	if f.lane != nil {
		route := f.lane.route
		if f.attempt != nil {
			route = f.attempt.route // an attempt ends by the route that it began with
		}
		p, chargeAll = route.policy(c), route.ChargeAll
	}
	s.Outcome, s.Code, s.Maybe, s.State = f.failure.Outcome, f.failure.Code, f.failure.MaybeDelivered, Pending
	s.Error = errorText(f.failure, c.Message.ID)
	switch f.failure.Outcome {
	case NotStarted:
		return s
	case Permanent:
		s.State, s.Charged, s.Reason = Parked, f.charged(chargeAll), f.failure.Reason
		if s.Reason == "" {
			s.Reason = ReasonPermanent
		}
		return s
	case Transient, Unreachable, LaneFault, Succeeded:
		s.Charged = f.charged(chargeAll)
	}
	if f.failure.Code == codeShutdown {
		return s // due at once, for the next owner
	}
	if s.Charged && p.Spent(c.Failures+1) {
		s.State, s.Reason = Parked, ReasonExhausted
		return s
	}
	wait := p.Next(c.Tries, 0)
	if !s.Charged && f.lane != nil {
		wait = f.lane.uncharged(wait)
	}
	s.RetryIn = least(wait, f.failure.RetryAfter)
	f.delayedBy(&s, wait)
	return s
}

// charged reports whether a failed attempt counts against the budget.
func (f *finished) charged(all bool) bool {
	switch f.failure.Outcome {
	case Permanent:
		return f.attempt != nil
	case Transient:
		return f.failure.Code != codeShutdown
	case Unreachable:
		return all
	case NotStarted, LaneFault, Succeeded:
	}
	return false
}

// parks reports whether the message of a failed attempt is parked.
func (f *finished) parks() bool {
	if f.failure.Outcome == Permanent {
		return true
	}
	route := f.attempt.route
	return f.failure.Code != codeShutdown && f.charged(route.ChargeAll) && route.policy(&f.claim).Spent(f.claim.Failures+1)
}

// uncharged returns how long a message waits after an uncharged attempt. The wait has a
// least length, so that retries do not loop, whatever the policy says. In a lane that is
// down it is at most the lane's own patience, so that the lane has a message to probe with.
func (l *laneRun) uncharged(wait time.Duration) time.Duration {
	if l.withholds() {
		wait = min(wait, mostProbe)
	}
	return max(wait, leastWait)
}

// errorText returns the error text that is kept with a message. It leaves out the message's own id.
func errorText(f *Failure, id ID) string {
	const most = 1000
	text := strings.TrimPrefix(strings.ToValidUTF8(f.Error(), "�"), "deliver message "+string(id)+": ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// answered handles the end of a Settle call. Outcomes that could not be recorded stay in
// memory. Nothing more is claimed until they are.
func (r *dispatch) answered(a settleAnswer) error {
	r.sent, r.settling = nil, false
	if a.err != nil {
		if errors.Is(a.err, ErrClosed) {
			r.d.Waiters.recorded(a.list)
			return a.err
		}
		r.trouble = min(max(2*r.trouble, 50*time.Millisecond), settleRetry)
		r.log.Error("outcomes not recorded, trying again", slog.Int("count", len(a.list)), slog.Any("error", a.err))
		for i := range a.list {
			if a.sent[i].Reason == ReasonRejected {
				r.d.Waiters.postponed(a.list[i].claim.Message.ID) // it parks, and nobody knows when that will be recorded
			}
		}
		r.outbox = append(a.list, r.outbox...)
		return nil
	}
	r.trouble = 0
	for i := range a.list {
		if a.won[i] {
			a.list[i].remember()
		}
		r.tell(&a.list[i], &a.sent[i], a.won[i])
	}
	r.d.Waiters.recorded(a.list)
	for i := range a.list { // the next message of the same ordering key may be due
		if l := r.lanes[a.list[i].claim.Message.Destination]; l != nil {
			r.agenda.ask(l)
		}
	}
	return nil
}

// tell logs and counts an attempt whose outcome is on disk (OI-18).
func (r *dispatch) tell(f *finished, s *Settlement, won bool) {
	m := &f.claim.Message
	if s.Outcome == NotStarted {
		return
	}
	ctx := r.work
	if !won {
		r.d.Waiters.postponed(m.ID) // another decision stands
		r.log.LogAttrs(ctx, slog.LevelWarn, "late outcome changed nothing", slog.String("message_id", string(m.ID)), slog.String("outcome", s.Outcome.String()))
		return
	}
	if r.d.Observer != nil || r.d.Waiters != nil {
		r.observe(f.info(s))
	}
	switch s.State {
	case Delivered:
		if r.log.Enabled(ctx, slog.LevelInfo) {
			r.log.LogAttrs(ctx, slog.LevelInfo, "message sent", slog.String("message_id", string(m.ID)), slog.String("destination", m.Destination),
				slog.String("endpoint", m.Endpoint), slog.Duration("took", s.Took), slog.Bool("duplicate", f.receipt.Duplicate))
		}
		if f.receipt.Note != "" {
			r.log.LogAttrs(ctx, slog.LevelWarn, "answer not kept", slog.String("message_id", string(m.ID)), slog.String("destination", m.Destination),
				slog.String("note", f.receipt.Note))
		}
	case Parked:
		r.log.LogAttrs(ctx, slog.LevelError, "message parked", slog.String("message_id", string(m.ID)), slog.String("destination", m.Destination),
			slog.String("reason", string(s.Reason)), slog.Int("attempts", f.claim.Tries+1), slog.String("error", s.Error))
	case Discarded:
		r.log.LogAttrs(ctx, slog.LevelWarn, "message refused", slog.String("message_id", string(m.ID)), slog.String("destination", m.Destination),
			slog.String("reason", string(s.Reason)), slog.String("error", s.Error))
	case Pending, Claimed, Expired:
		r.log.LogAttrs(ctx, slog.LevelWarn, "attempt failed", slog.String("message_id", string(m.ID)), slog.String("destination", m.Destination),
			slog.Int("attempt", f.claim.Tries+1), slog.String("outcome", s.Outcome.String()), slog.Bool("charged", s.Charged),
			slog.Duration("retry_in", s.RetryIn), slog.String("error", s.Error))
	}
}

func (f *finished) info(s *Settlement) AttemptInfo {
	m := &f.claim.Message
	a := AttemptInfo{
		ID: m.ID, Source: m.Source, Destination: m.Destination, Endpoint: m.Endpoint, Headers: m.Headers, Created: f.claim.Created,
		Outcome: s.Outcome, State: s.State, Reason: s.Reason, Cycle: m.Attempt.Cycle, Retries: f.claim.Tries, Took: s.Took,
		Response: f.receipt.Response, Note: f.receipt.Note, Failure: f.failure,
	}
	if f.attempt != nil {
		a.Began = f.attempt.began
	}
	return a
}

// observe tells the waiters and the observer. A panic of the observer is counted, and affects nothing
// else (SF-24).
func (r *dispatch) observe(a AttemptInfo) {
	if r.d.Waiters != nil {
		r.d.Waiters.ObserveAttempt(a)
	}
	if r.d.Observer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			r.d.observer.Add(1)
			r.log.ErrorContext(r.work, "observer panicked", slog.Any("panic", p))
		}
	}()
	r.d.Observer.ObserveAttempt(a)
}

// giveUpHung settles attempts that ignore their time-out. Each makes room for another one, but
// counts until it returns, so that attempts of a deliverer that never returns cannot pile up.
func (r *dispatch) giveUpHung(now time.Time) {
	held := len(r.agenda.busy)
	for l := range r.agenda.busy {
		hung := l.hung(now.Add(-hungAfter))
		for _, a := range hung {
			r.abandon(l, a, now, "hung", "the attempt ignored its time-out")
		}
		if len(hung) > 0 {
			r.start(l) // a lane that is full claims nothing, and would not begin what it has
		}
		r.cutFormer(l, now)
		r.forget(l)
		if l.rests() {
			delete(r.agenda.busy, l)
		}
	}
	r.agenda.shrink(held)
}

func (r *dispatch) abandon(l *laneRun, a *attempt, now time.Time, code, text string) {
	list := make([]finished, len(a.claims))
	for i, c := range a.claims {
		list[i] = finished{
			lane: l, claim: c, took: now.Sub(a.began), attempt: a,
			failure: &Failure{Code: code, MaybeDelivered: true, Err: errors.New(text)},
		}
	}
	r.outbox = append(r.outbox, list...)
	r.learn(list, now)
}

// hung marks the attempts that timed out before the given time as given up, and returns them.
func (l *laneRun) hung(before time.Time) (list []*attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.inFlight {
		if !a.abandoned && a.began.Add(a.route.Timeout).Before(before) {
			a.abandoned = true
			if !a.left {
				l.hanging++
			}
			list = append(list, a)
		}
	}
	return list
}
