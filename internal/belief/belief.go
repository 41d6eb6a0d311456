// Package belief decides whether time that a clock claims has passed counts towards an end: an
// expiry, a deletion, or the end of a token.
//
// A store has a scale of instants, in microseconds, that never runs backwards. While a process
// lives, the scale follows the monotonic clock: that time was seen to pass. At a start the scale
// leaps over the time that no process saw. There a stop of two days looks like a clock that is two
// days wrong, so the leap is doubted. Until it is believed or denied, ages leave it out, and an end
// that only the leap would cause is Held. Messages that wait for their turn do not depend on this
// package: they follow the scale, and are delivered as usual after a stop.
//
// A doubt ends in one of three ways: others confirm the clock, the clock is put back (then that
// part of the leap never was), or the doubt has stood for the hold, in which people can notice it.
// A leap that never was stays recorded: the numbers of instants before it make them look older than
// they are.
package belief

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// DefaultHold is how long a leap is doubted at most: a day, in microseconds.
const DefaultHold = 24 * 60 * 60 * second

const (
	second = 1_000_000
	// tiny is how long a restart takes; such a leap is believed.
	tiny = second
	// mostLeaps limits the list; the leaps that lie closest are merged.
	mostLeaps = 16
)

// Leap is time that a scale counted and no process saw pass.
type Leap struct {
	At    int64 `json:"at"`    // the instant after the leap
	Doubt int64 `json:"doubt"` // the part that may be true
	False int64 `json:"false"` // the part that never was
	Since int64 `json:"since"` // the instant from which it is doubted
}

func (l *Leap) size() int64 { return l.Doubt + l.False }

// Guard knows the leaps of one scale. Its methods may be called concurrently.
type Guard struct {
	mu    sync.Mutex
	hold  int64
	leaps []Leap // by At
	news  uint64

	verdicts uint64
}

// New makes a guard that doubts a leap for at most hold; zero: DefaultHold.
func New(hold int64) *Guard {
	if hold <= 0 {
		hold = DefaultHold
	}
	return &Guard{hold: hold}
}

// Verdict says whether an end has come.
type Verdict int

// The verdicts. Held: over if the clock is right, but not by the time that was seen to pass.
const (
	Lives Verdict = iota
	Held
	Over
)

// Leap records that the scale has leapt by size, to the instant at. denied means that somebody saw
// that the time did not pass, such as the owner of a file whose time another process gives. The
// leap is then denied at once.
func (g *Guard) Leap(at, size int64, denied bool) {
	if size < tiny {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := Leap{At: at, Doubt: size, Since: at}
	if denied {
		l.Doubt, l.False = 0, size
	}
	g.add(l)
}

// Add records leaps of another scale, given as distances from an instant that is base on this
// scale. A known leap is not recorded twice.
func (g *Guard) Add(base int64, leaps ...Leap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range leaps {
		l.At, l.Since = l.At+base, l.Since+base
		if !slices.ContainsFunc(g.leaps, func(known Leap) bool { return known.At == l.At }) {
			g.add(l)
		}
	}
}

// add is called with the lock held. It merges two leaps into the later one: that makes what lies
// between them younger, never older.
func (g *Guard) add(l Leap) {
	g.news++
	g.verdicts++
	at, _ := slices.BinarySearchFunc(g.leaps, l.At, func(l Leap, at int64) int { return int(max(min(l.At-at, 1), -1)) })
	g.leaps = slices.Insert(g.leaps, at, l)
	if len(g.leaps) <= mostLeaps {
		return
	}
	closest := 1
	for i := range g.leaps[1:] {
		if g.leaps[i+1].At-g.leaps[i].At < g.leaps[closest].At-g.leaps[closest-1].At {
			closest = i + 1
		}
	}
	into, from := &g.leaps[closest], g.leaps[closest-1]
	into.Doubt, into.False = into.Doubt+from.Doubt, into.False+from.False
	g.leaps = slices.Delete(g.leaps, closest-1, closest)
}

// Deny marks up to amount of the doubted time as time that never was, the latest first. It returns
// how much that was.
func (g *Guard) Deny(amount int64) (denied int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range slices.Backward(g.leaps) {
		l := &g.leaps[i]
		n := min(l.Doubt, amount-denied)
		l.Doubt, l.False, denied = l.Doubt-n, l.False+n, denied+n
	}
	if denied > 0 {
		g.news++
		g.verdicts++
	}
	return denied
}

// Confirm believes everything that is doubted.
func (g *Guard) Confirm() (believed int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.believe(func(*Leap) bool { return true })
}

// Contradict restarts the hold, because somebody has said that the clock is wrong.
func (g *Guard) Contradict(now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.leaps {
		if l := &g.leaps[i]; l.Doubt > 0 && l.Since < now {
			l.Since = now
			g.news++
		}
	}
}

// Settle believes what has been doubted for the whole hold, in time that was seen to pass.
func (g *Guard) Settle(now int64) (believed int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.believe(func(l *Leap) bool { return g.age(now, l.Since) >= g.hold })
}

func (g *Guard) believe(which func(l *Leap) bool) (believed int64) {
	over := make([]bool, len(g.leaps)) // decided before any is believed
	for i := range g.leaps {
		over[i] = g.leaps[i].Doubt > 0 && which(&g.leaps[i])
	}
	for i := range g.leaps {
		if over[i] {
			believed += g.leaps[i].Doubt
			g.leaps[i].Doubt = 0
		}
	}
	if believed > 0 {
		g.news++
		g.verdicts++
		g.leaps = slices.DeleteFunc(g.leaps, func(l Leap) bool { return l.size() == 0 })
	}
	return believed
}

// Doubt returns how much is doubted, and for how long at most from now.
func (g *Guard) Doubt(now int64) (doubt, left int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.leaps {
		if l := &g.leaps[i]; l.Doubt > 0 {
			doubt += l.Doubt
			left = max(left, g.hold-g.age(now, l.Since))
		}
	}
	return doubt, left
}

// Judge returns the verdict about an end at instant end, which was set lasts before it.
func (g *Guard) Judge(now, end, lasts int64) Verdict {
	if now < end {
		return Lives
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case now-end >= g.late(end-lasts, (*Leap).size):
		return Over
	case now-end >= g.late(end-lasts, func(l *Leap) int64 { return l.False }):
		return Held
	}
	return Lives
}

// End returns the instant at which such an end comes for certain.
func (g *Guard) End(end, lasts int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return end + g.late(end-lasts, (*Leap).size)
}

// EndByClock returns the instant at which such an end comes if the clock is right.
func (g *Guard) EndByClock(end, lasts int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return end + g.late(end-lasts, func(l *Leap) int64 { return l.False })
}

// Age returns how much of the time since an instant was seen to pass.
func (g *Guard) Age(now, at int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.age(now, at)
}

func (g *Guard) age(now, at int64) int64 { return max(now-at-g.late(at, (*Leap).size), 0) }

// Claimed returns the age by the clock: with doubted time, without time that never was.
func (g *Guard) Claimed(now, at int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now - at - g.late(at, func(l *Leap) int64 { return l.False })
}

// Shift returns how much later an instant is than its number says: the time that the scale has
// counted since and that never was.
func (g *Guard) Shift(at int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.late(at, func(l *Leap) int64 { return l.False })
}

// Before returns the latest instant whose age has reached keep: everything up to it may be deleted.
func (g *Guard) Before(now, keep int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := now - keep
	for i := range g.leaps {
		at -= g.leaps[i].size()
	}
	for i := range g.leaps {
		if l := &g.leaps[i]; at >= l.At-l.size() {
			at += l.size()
		}
	}
	return at
}

// late returns how much later an end comes that was set at an instant, because of leaps since. An
// instant within a leap counts as before it.
func (g *Guard) late(set int64, size func(l *Leap) int64) (sum int64) {
	for i := range g.leaps {
		l := &g.leaps[i]
		n := size(l)
		sum += n - max(min(set-(l.At-n), n), 0)
	}
	return sum
}

// News grows with each change, so that a keeper knows when to save.
func (g *Guard) News() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.news
}

// Verdicts grows with each change that may alter a verdict other than by the passing of time. A
// restarted hold is no such change.
func (g *Guard) Verdicts() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.verdicts
}

// Leaps returns the known leaps, by At.
func (g *Guard) Leaps() []Leap {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.leaps)
}

// From returns the leaps as distances from an instant, for Add.
func (g *Guard) From(base int64) []Leap {
	leaps := g.Leaps()
	for i := range leaps {
		leaps[i].At, leaps[i].Since = leaps[i].At-base, leaps[i].Since-base
	}
	return leaps
}

// Text returns the leaps in the form that Load reads.
func (g *Guard) Text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text, _ := json.Marshal(g.leaps) // cannot fail: numbers only
	return string(text)
}

// Load replaces the leaps by those in a text. The empty text has none.
func (g *Guard) Load(text string) error {
	var leaps []Leap
	var err error
	if text != "" {
		if err = json.Unmarshal([]byte(text), &leaps); err != nil {
			leaps, err = nil, fmt.Errorf("read leaps of the clock: %w", err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old, verdicts := g.leaps, g.verdicts
	g.leaps = nil
	for _, l := range leaps {
		if l.Doubt >= 0 && l.False >= 0 && l.size() > 0 {
			g.add(l)
		}
	}
	if g.verdicts = verdicts; !slices.EqualFunc(g.leaps, old, sameVerdict) {
		g.verdicts++
	}
	return err
}

func sameVerdict(a, b Leap) bool { return a.At == b.At && a.Doubt == b.Doubt && a.False == b.False }
