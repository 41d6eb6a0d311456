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
	limit      int
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
	Ready       int           // messages claimed and not begun
	NextProbe   time.Duration // while it is down
	Since       time.Duration // it has been up, or down, for so long
	Idle        time.Duration // since any attempt ended; since the start, before the first
}

func newLaneRun(name string, route Route) *laneRun {
	l := &laneRun{name: name, route: route, limit: min(startLimit, route.Limit), more: true, inFlight: map[*attempt]struct{}{}}
	l.batch, _ = route.Deliverer.(BatchDeliverer)
	l.target = 2 * route.Limit
	l.since = time.Now()
	l.lastEnd = l.since
	return l
}

// want says how many messages the lane can use now, and, while it is down,
// how long until it is probed.
func (l *laneRun) want(now time.Time) (n int, probeIn time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		if wait := l.nextProbe.Sub(now); wait > 0 {
			return 0, wait
		}
		if l.active > 0 || len(l.ready) > 0 || !l.more {
			return 0, 0
		}
		return 1, 0
	}
	if wait := l.resume.Sub(now); wait > 0 {
		return 0, wait
	}
	if !l.more || l.readyBytes >= laneBytes {
		return 0, 0
	}
	if len(l.ready) == 0 && l.filled {
		l.target = min(2*l.target, laneClaims) // it was faster than we were
		l.filled = false
	}
	// Ask for a good part at once: a claim per message would cost a turn each.
	if n = l.target - len(l.ready); n < l.target/4 {
		return 0, 0
	}
	return n, 0
}

// status reads the lane for people.
func (l *laneRun) status() LaneStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := LaneStatus{
		Destination: l.name, Up: !l.down, Held: l.held, Failures: l.streak,
		Limit: l.limit, InFlight: len(l.inFlight), Ready: len(l.ready),
		Since: time.Since(l.since), Idle: time.Since(l.lastEnd),
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
)

// succeeded notes that the destination answered as it should.
func (l *laneRun) succeeded() laneChange {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// failed notes a failure that says something about the destination.
func (l *laneRun) failed(seq int64, f *Failure, now time.Time) laneChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem = f.Error()
	l.run = 0
	if l.streak == 0 {
		l.firstSeq = seq
	}
	l.streak++
	l.several = l.several || seq != l.firstSeq
	l.limit = max(l.limit-1, 1)
	fault := f.Outcome == LaneFault
	if l.down {
		l.held = l.held || fault
		if now.Before(l.nextProbe) {
			return laneSame // begun before the lane went down
		}
		l.probes++
		l.nextProbe = now.Add(l.route.Retry.Next(l.probes, f.RetryAfter))
		return laneSame
	}
	if !fault && (l.streak < downAfter || !l.several) {
		return laneSame
	}
	l.down, l.held, l.probes, l.since = true, fault, 0, now
	l.nextProbe = now.Add(l.route.Retry.Next(0, f.RetryAfter))
	return laneWentDown
}

// takeBack empties the ready queue.
func (l *laneRun) takeBack() []Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := l.ready
	l.ready, l.readyBytes = nil, 0
	return back
}
