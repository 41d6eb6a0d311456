package holdfast

import (
	"sync"
	"time"
)

// How a lane learns what its destination bears, after Postfix. It starts with a few
// requests at a time, gains one per full round of successes, and loses one per failure.
// After downAfter failures in a row, over at least two messages, the lane is down: it gives
// its messages back, and one message at a time probes it. The lane itself decides how
// often: it waits as patience says, or as the route's policy says where that is sooner. A
// new message makes the next probe soon. A lane with a single message is never down, so
// that message keeps its own timetable exactly. With Route.OwnSchedule, every message does.
const (
	startLimit = 5
	downAfter  = 5
	probeAmong = 64               // due messages that a probe is picked from
	leastWait  = time.Second      // before any uncharged retry
	mostProbe  = 5 * time.Minute  // between two probes, also if a Retry-After asks for more
	soonAfter  = 10 * time.Second // after a probe, the next one if a new message came
	heldSoon   = time.Minute      // the same in a lane that is held: many tries may lock the credentials
)

// patience returns how long a lane that is down waits before probe n, whatever the
// schedule of its messages.
func patience() RetryPolicy {
	return RetryPolicy{First: 2 * time.Second, Max: mostProbe, Jitter: 500 * time.Millisecond, Factor: 2}
}

// laneRun is a lane during one run.
type laneRun struct {
	name string

	mu        sync.Mutex // guards the fields below; the workers use it
	route     *laneRoute // only the loop changes it
	ready     waiting
	active    int // workers
	hanging   int // of active, the workers whose attempt was given up or has lost its slot
	limit     int
	share     int // of the route's limit: other processes may deliver to the destination, too
	closed    bool
	removed   bool // its route is removed, but attempts are in hand; only the loop changes it
	inFlight  map[*attempt]struct{}
	down      bool
	streak    int // failures in a row
	problem   string
	held      bool
	nextProbe time.Time
	asked     time.Time    // no probe before this time: a Retry-After asked for it
	probed    time.Time    // when the last probe ended, or the lane went down
	pending   int64        // messages at the last look, while it is down; negative: no look yet
	since     time.Time    // since when it is up or down
	lastEnd   time.Time    // of any attempt
	decision  LaneDecision // the last one of a person
	failing   time.Time    // since when attempts get nowhere; zero: the last one got somewhere

	// Fields of the loop alone.
	place    place
	incoming []Claim
	more     bool      // the store may have due messages
	newer    bool      // the store may have due messages that were never tried, also if it has none for those who ask for all
	noFirst  time.Time // asks for no such ones before this time
	target   int       // how many ready claims it keeps, if there is room
	filled   bool      // the last claim got all that was asked for
	firstSeq int64
	several  bool      // the streak is over more than one message
	run      int       // successes since the limit last grew
	probes   int       // failed probes since the lane went down
	delayed  []delayed // messages that wait only for the destination to work; the newest last
	hastens  int       // calls of hasten in a row
	hasten   time.Time // no hasten before this time
	resume   time.Time // no request begins before this time
	pauses   int       // pauses in a row
	moved    time.Time // when an attempt last got somewhere
}

// LaneStatus is a lane as people see it.
type LaneStatus struct {
	Destination string
	Up          bool
	Held        bool          // by a fault of the lane itself, such as refused credentials
	Problem     string        // the last failure, while the lane is not up or is Failing
	Failures    int           // in a row
	Limit       int           // requests at a time, now
	InFlight    int           // requests
	Hanging     int           // of InFlight, the requests that ignore their time-out or that they are cut off
	Oldest      time.Duration // age of the oldest request that does not hang; zero: no such request
	Timeout     time.Duration // of one request
	Busy        time.Duration // until the lane goes on, after the other side could not begin
	Closed      bool          // its dispatcher is stopping or has stopped
	Ready       int           // messages claimed and not begun
	NextProbe   time.Duration // while it is down
	Since       time.Duration // how long it has been up, or down
	Idle        time.Duration // since the last attempt ended; before the first, since the start
	Decision    LaneDecision  // a person's last decision; its Paused says whether the lane is paused
	OwnSchedule bool          // its messages are tried when they are due, also while it is down or held

	// Failing is how long attempts have got nowhere: since the first attempt of the oldest
	// message that was tried, or since any attempt last got somewhere. Zero: the last
	// attempt got somewhere.
	Failing time.Duration
	// Standstill tells that due messages make no progress, as of the last look, which was a
	// few seconds ago. Nil: they make progress, or none is due. A destination without a route
	// has only this field.
	Standstill *Standstill
	// Owner is the process that owns the store where this one does not (Owned). Then nothing
	// is delivered from here. Empty: this process owns it.
	Owner string
}

// tries reports whether the lane tries a message that comes now, at once or as soon as a
// slot is free.
func (s *LaneStatus) tries() bool {
	return s.Up && s.Busy == 0 && s.Limit > 0 && !s.Closed && !s.Decision.Paused && s.Owner == ""
}

func newLaneRun(name string, route *laneRoute) *laneRun {
	l := &laneRun{name: name, route: route, limit: min(startLimit, route.Limit), share: route.Limit, more: true, newer: true}
	if route.OwnSchedule {
		l.limit = route.Limit
	}
	l.target = min(2*route.Limit, laneClaims)
	l.since = time.Now()
	l.lastEnd = l.since
	return l
}

// want returns how many messages the lane can use now; most is about how many it may hold.
// If it can use none, wait is how long until its next probe, or until it goes on.
func (l *laneRun) want(now time.Time, most int) (n int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.share == 0 || l.decision.Paused {
		return 0, 0
	}
	if l.withholds() {
		if wait := max(l.nextProbe.Sub(now), l.resume.Sub(now)); wait > 0 {
			return 0, wait
		}
		if l.probing() || l.ready.len() > 0 || !l.more {
			return 0, 0
		}
		return probeAmong, 0
	}
	if wait := l.resume.Sub(now); wait > 0 {
		return 0, wait
	}
	if !l.more || l.ready.bytes >= laneBytes {
		return 0, 0
	}
	if l.ready.len() == 0 && l.filled {
		l.target = max(l.target, min(2*l.target, most)) // the destination was faster than the claims
		l.filled = false
	}
	// Ask for many at once: a claim per message would cost a turn each.
	target := min(l.target, most)
	if n = target - l.ready.len(); n < target/4 {
		return 0, 0
	}
	return n, 0
}

// wantFirst returns how many messages that were never tried the lane can use now, while others
// fill what it holds, and wait for requests that take their time.
func (l *laneRun) wantFirst(now time.Time, most int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.newer || len(l.ready.again) == 0 || l.ready.bytes >= 2*laneBytes || l.closed || l.share == 0 || l.decision.Paused ||
		l.withholds() || l.resume.After(now) || l.noFirst.After(now) || l.retries() > l.starting() {
		return 0
	}
	target := min(l.target, most)
	if n := target - len(l.ready.first); n >= target/4 {
		return n
	}
	return 0
}

// withholds reports whether messages wait because the lane is down.
func (l *laneRun) withholds() bool { return l.down && !l.route.OwnSchedule }

// probing reports whether a request by the present route, begun since the lane went down, is
// in flight. Older requests may take long, and no probe waits for them.
func (l *laneRun) probing() bool {
	for a := range l.inFlight {
		if !a.abandoned && a.route == l.route && a.began.After(l.since) {
			return true
		}
	}
	return false
}

// starting returns how many workers may take a message at any moment. Nothing tells the loop when
// they have. An attempt that has ended counts, too, until the loop has learned from it.
func (l *laneRun) starting() int { return l.active - len(l.inFlight) }

// slots returns how many more requests may begin now. While the lane is down, one probe may
// begin, whatever is left from before.
func (l *laneRun) slots() int {
	switch {
	case l.closed, l.share == 0, l.decision.Paused, l.active >= l.limit+2*l.route.Limit:
		return 0
	case !l.withholds():
		return min(l.limit, l.share) - (l.active - l.hanging)
	case l.probing():
		return 0
	}
	return 1
}

// status returns the lane as people see it.
func (l *laneRun) status() LaneStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s := LaneStatus{
		Destination: l.name, Up: !l.down, Held: l.held, Failures: l.streak,
		Limit: min(l.limit, l.share), InFlight: len(l.inFlight), Hanging: l.hanging, Ready: l.ready.len(),
		Timeout: l.route.Timeout, Busy: max(l.resume.Sub(now), 0), Closed: l.closed, Decision: l.decision, OwnSchedule: l.route.OwnSchedule, Since: now.Sub(l.since), Idle: now.Sub(l.lastEnd),
	}
	for a := range l.inFlight {
		if !a.abandoned {
			s.Oldest = max(s.Oldest, now.Sub(a.began))
		}
	}
	if !l.failing.IsZero() {
		s.Failing = max(now.Sub(l.failing), 1) // it may have begun this moment
	}
	if l.down || l.streak > 0 || s.Failing > 0 {
		s.Problem = l.problem
	}
	if l.withholds() {
		s.NextProbe = max(time.Until(l.nextProbe), 0)
	}
	return s
}

// hold marks the lane as faulty. From then on it is probed.
func (l *laneRun) hold(problem string, probe time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.problem = true, problem
	l.fall(time.Now(), probe)
}

// fall takes the lane down.
func (l *laneRun) fall(now, probe time.Time) {
	l.down, l.since, l.probes = true, now, 0
	l.nextProbe, l.probed, l.asked, l.pending = probe, now, time.Time{}, -1
}

// laneChange is the effect of a result on its lane.
type laneChange int

const (
	laneSame laneChange = iota
	laneWentDown
	laneWentUp
	laneWasHeld // it was down already
	laneLate    // a success from before the lane was held, which says nothing
	laneGrew    // it bears one more request
)

// succeeded notes that the destination answered as it should. A message that was sent
// before credentials were refused says nothing about them.
func (l *laneRun) succeeded(a *attempt) laneChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held && !a.began.After(l.since) {
		return laneLate
	}
	l.streak, l.several, l.pauses = 0, false, 0
	if l.down {
		l.down, l.held, l.problem, l.probes, l.run = false, false, "", 0, 0
		if !l.route.OwnSchedule {
			l.limit = min(startLimit, l.route.Limit)
		}
		l.more, l.newer, l.since = true, true, time.Now()
		return laneWentUp
	}
	if l.run++; l.run >= l.limit && l.limit < l.route.Limit {
		l.limit, l.run = l.limit+1, 0
		return laneGrew
	}
	return laneSame
}

// judge notes whether a request got anywhere: it did if a message was delivered or refused
// for good. A request that only put its messages off did not, whatever else it says about
// the destination.
func (l *laneRun) judge(request []finished, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := now
	var last *Failure
	for i := range request {
		f := request[i].failure
		switch {
		case f == nil || f.Outcome == Permanent:
			l.failing, l.moved = time.Time{}, now
			return
		case f.Outcome == NotStarted || f.Code == codeShutdown:
			continue
		}
		last = f
		if a := &request[i].claim.Message.Attempt; a.Cycle == 1 && now.Add(-a.FirstAgo).Before(began) {
			began = now.Add(-a.FirstAgo)
		}
	}
	if last == nil {
		return
	}
	if began = latest(began, l.moved); l.failing.IsZero() || began.Before(l.failing) {
		l.failing = began
	}
	l.problem = last.Error()
}

// pause makes the lane wait a moment, longer each time in a row, because the other side
// could not even begin.
func (l *laneRun) pause(retryAfter time.Duration, now time.Time) {
	if now.Before(l.resume) {
		return // begun before the pause
	}
	const first, longest = 50 * time.Millisecond, 10 * time.Second
	l.resume = now.Add(max(min(first<<min(l.pauses, 10), longest), min(retryAfter, time.Hour)))
	l.pauses++
}

// failed notes a request whose failure says something about the destination.
func (l *laneRun) failed(a *attempt, f *Failure, now time.Time) laneChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = f.Error()
	l.run = 0
	if l.streak == 0 {
		l.firstSeq = a.claims[0].Seq
	}
	l.streak++
	l.several = l.several || len(a.claims) > 1 || a.claims[0].Seq != l.firstSeq
	if !l.route.OwnSchedule {
		l.limit = max(l.limit-1, 1)
	}
	fault := f.Outcome == LaneFault
	if l.down {
		change := laneSame
		if fault && !l.held {
			l.held, change = true, laneWasHeld
		}
		if a.began.After(l.since) { // else it began before the lane went down
			l.probes++
			l.planProbe(f, now)
		}
		return change
	}
	if !fault && (l.streak < downAfter || !l.several) {
		return laneSame
	}
	l.held = fault
	l.fall(now, now)
	l.planProbe(f, now)
	return laneWentDown
}

// planProbe sets the time of the next probe after a failed one. It follows the lane's own
// patience, which no schedule of a message makes longer.
func (l *laneRun) planProbe(f *Failure, now time.Time) {
	wait := max(min(patience().Next(l.probes, 0), l.route.Retry.Next(l.probes, 0)), leastWait)
	l.probed, l.asked = now, now.Add(min(f.RetryAfter, mostProbe))
	l.nextProbe = latest(now.Add(wait), l.asked)
}

// notice learns how many messages wait for a lane that is down. If there is a new one, the
// next probe comes soon, whatever the lane has seen. sooner says whether it moved.
func (l *laneRun) notice(pending int64) (sooner bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	came := l.pending >= 0 && pending > l.pending
	l.pending = pending
	if !came || !l.withholds() {
		return false
	}
	soon := soonAfter
	if l.held {
		soon = heldSoon
	}
	at := latest(l.probed.Add(soon), l.asked)
	if sooner = at.Before(l.nextProbe); sooner {
		l.nextProbe = at
	}
	return sooner
}

// rests reports whether the loop need not look at the lane.
func (l *laneRun) rests() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return (l.closed || !l.down) && l.active == 0 && len(l.inFlight) == 0 && l.ready.len() == 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// allot sets the lane's share, and returns the old and the new share.
func (l *laneRun) allot(share int) (before, now int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.share = l.share, min(max(share, 0), l.route.Limit)
	if l.share > before {
		l.more, l.newer = true, true
	}
	return before, l.share
}

// takeBack empties the ready queue.
func (l *laneRun) takeBack() []Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready.all()
}
