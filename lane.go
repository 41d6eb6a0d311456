package holdfast

import (
	"sync"
	"time"
)

// How a lane learns what its destination bears, after Postfix: it starts with
// a few requests at a time, gains one per full round of successes, loses one
// per failure. After downAfter failures in a row over at least two messages it
// is down: what it holds goes back, and one message per backoff probes it. A
// lane with a single message is never down, so that message keeps its own
// timetable exactly.
const (
	startLimit = 5
	downAfter  = 5
	probeAmong = 64              // due messages that a probe is picked from
	leastWait  = time.Second     // before anything uncharged is tried again
	mostProbe  = 5 * time.Minute // that one message's Retry-After holds up a lane
)

// laneRun is a lane during one run.
type laneRun struct {
	name  string
	route Route
	batch BatchDeliverer // nil: one by one

	mu         sync.Mutex // guards what follows; the workers use it
	ready      []Claim
	readyBytes int
	active     int // workers
	hanging    int // of them, those whose attempt was given up
	limit      int
	share      int // of the route's limit: others may deliver to the destination, too
	closed     bool
	inFlight   map[*attempt]struct{}
	down       bool
	streak     int // failures in a row
	problem    string
	held       bool
	nextProbe  time.Time
	since      time.Time // of being up or down
	lastEnd    time.Time // of any attempt

	// The loop's alone.
	incoming []Claim
	more     bool // the store may have due messages
	target   int  // how many ready claims it keeps
	most     int  // the largest target
	filled   bool // the last claim got all that was asked for
	firstSeq int64
	several  bool      // the streak is over more than one message
	run      int       // successes since the limit last grew
	probes   int       // failed ones since the lane went down
	resume   time.Time // nothing is begun before
	pauses   int       // in a row
}

// LaneStatus is a lane as people see it.
type LaneStatus struct {
	Destination string
	Up          bool
	Held        bool          // by a fault of the lane itself, such as refused credentials
	Problem     string        // the last failure, while it is not up
	Failures    int           // in a row
	Limit       int           // requests at a time, now
	InFlight    int           // requests
	Hanging     int           // of them, those that ignore their time-out
	Oldest      time.Duration // of the requests that do not hang; zero: there is none
	Timeout     time.Duration // of one request
	Paused      time.Duration // until it goes on, where the other side could not begin
	Ready       int           // messages claimed and not begun
	NextProbe   time.Duration // while it is down
	Since       time.Duration // it has been up, or down, for so long
	Idle        time.Duration // since any attempt ended; since the start, before the first
}

// newLaneRun makes a lane that holds at most about most claims.
func newLaneRun(name string, route Route, most int) *laneRun {
	l := &laneRun{name: name, route: route, limit: min(startLimit, route.Limit), share: route.Limit, more: true, inFlight: map[*attempt]struct{}{}}
	l.batch, _ = route.Deliverer.(BatchDeliverer)
	l.most = min(max(most, startLimit), laneClaims)
	l.target = min(2*route.Limit, l.most)
	l.since = time.Now()
	l.lastEnd = l.since
	return l
}

// want says how many messages the lane can use now, and, while it is down,
// how long until it is probed.
func (l *laneRun) want(now time.Time) (n int, probeIn time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.share == 0 {
		return 0, 0
	}
	if l.down {
		if wait := max(l.nextProbe.Sub(now), l.resume.Sub(now)); wait > 0 {
			return 0, wait
		}
		if l.probing() || len(l.ready) > 0 || !l.more {
			return 0, 0
		}
		return probeAmong, 0
	}
	if wait := l.resume.Sub(now); wait > 0 {
		return 0, wait
	}
	if !l.more || l.readyBytes >= laneBytes {
		return 0, 0
	}
	if len(l.ready) == 0 && l.filled {
		l.target = min(2*l.target, l.most) // it was faster than we were
		l.filled = false
	}
	// Ask for a good part at once: a claim per message would cost a turn each.
	if n = l.target - len(l.ready); n < l.target/4 {
		return 0, 0
	}
	return n, 0
}

// probing says whether a request of since the lane went down is under way.
// Older ones may take long, and no probe waits for them.
func (l *laneRun) probing() bool {
	for a := range l.inFlight {
		if !a.abandoned && a.began.After(l.since) {
			return true
		}
	}
	return false
}

// slots is how many more requests may begin now. While the lane is down that
// is one probe, whatever is left of before.
func (l *laneRun) slots() int {
	switch {
	case l.closed, l.share == 0, l.active >= l.limit+2*l.route.Limit:
		return 0
	case !l.down:
		return min(l.limit, l.share) - (l.active - l.hanging)
	case l.probing():
		return 0
	}
	return 1
}

// status reads the lane for people.
func (l *laneRun) status() LaneStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s := LaneStatus{
		Destination: l.name, Up: !l.down, Held: l.held, Failures: l.streak,
		Limit: min(l.limit, l.share), InFlight: len(l.inFlight), Hanging: l.hanging, Ready: len(l.ready),
		Timeout: l.route.Timeout, Paused: max(l.resume.Sub(now), 0), Since: now.Sub(l.since), Idle: now.Sub(l.lastEnd),
	}
	for a := range l.inFlight {
		if !a.abandoned {
			s.Oldest = max(s.Oldest, now.Sub(a.began))
		}
	}
	if l.down || l.streak > 0 {
		s.Problem = l.problem
	}
	if l.down {
		s.NextProbe = max(time.Until(l.nextProbe), 0)
	}
	return s
}

// hold marks the lane as faulty; it is probed from then on.
func (l *laneRun) hold(problem string, probe time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.held, l.problem, l.nextProbe, l.since = true, true, problem, probe, time.Now()
}

// laneChange is what a result did to its lane.
type laneChange int

const (
	laneSame laneChange = iota
	laneWentDown
	laneWentUp
	laneWasHeld // it was down already
)

// succeeded notes that the destination answered as it should. What was sent
// before credentials were refused says nothing about them.
func (l *laneRun) succeeded(a *attempt) laneChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held && !a.began.After(l.since) {
		return laneSame
	}
	l.streak, l.several, l.pauses = 0, false, 0
	if l.down {
		l.down, l.held, l.problem, l.probes, l.run = false, false, "", 0, 0
		l.limit = min(startLimit, l.route.Limit)
		l.more, l.since = true, time.Now()
		return laneWentUp
	}
	if l.run++; l.run >= l.limit && l.limit < l.route.Limit {
		l.limit, l.run = l.limit+1, 0
	}
	return laneSame
}

// pause makes the lane wait a moment, longer each time in a row: the other
// side could not even begin.
func (l *laneRun) pause(retryAfter time.Duration, now time.Time) {
	if now.Before(l.resume) {
		return // begun before the pause
	}
	const first, longest = 50 * time.Millisecond, 10 * time.Second
	l.resume = now.Add(max(min(first<<min(l.pauses, 10), longest), min(retryAfter, time.Hour)))
	l.pauses++
}

// failed notes a request that failed, for a reason that says something about
// the destination.
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
	l.limit = max(l.limit-1, 1)
	fault := f.Outcome == LaneFault
	if l.down {
		change := laneSame
		if fault && !l.held {
			l.held, change = true, laneWasHeld
		}
		if a.began.After(l.since) { // else it was begun before the lane went down
			l.probes++
			l.nextProbe = now.Add(l.probeWait(f))
		}
		return change
	}
	if !fault && (l.streak < downAfter || !l.several) {
		return laneSame
	}
	l.down, l.held, l.probes, l.since = true, fault, 0, now
	l.nextProbe = now.Add(l.probeWait(f))
	return laneWentDown
}

// probeWait is how long until the next probe.
func (l *laneRun) probeWait(f *Failure) time.Duration {
	return max(l.route.Retry.Next(l.probes, min(f.RetryAfter, mostProbe)), leastWait)
}

// allot sets the lane's share, and says whether there is none left of what it
// had.
func (l *laneRun) allot(share int) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	share = min(max(share, 0), l.route.Limit)
	if share > l.share {
		l.more = true
	}
	gone = share == 0 && l.share > 0
	l.share = share
	return gone
}

// takeBack empties the ready queue.
func (l *laneRun) takeBack() []Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := l.ready
	l.ready, l.readyBytes = nil, 0
	return back
}
