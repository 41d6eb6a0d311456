package postgres

import (
	"sync"
	"sync/atomic"
	"time"
)

// claims is what this node has in hand, and its knowledge of the lanes.
type claims struct {
	mu       sync.Mutex
	number   int64 // of the last claim
	held     map[int64]hold
	lanes    map[int32]*laneView
	flying   atomic.Int64 // running calls of Claim
	lost     []lostClaim
	suspects bool // there are rows whose owner died while it had them in hand
	suspect  int  // number of suspects in hand
	unplaced bool // there are keys that need a decision
}

// lostClaim is a claim whose commit is in doubt. Its messages are given back once they show:
// outbox_lost.go.
type lostClaim struct {
	owner, number int64
	since         time.Time
}

// hold is one message in hand.
type hold struct {
	owner, token int64
	lane         int32
	key          string
	tries        int
	cycle        int
	failures     int
	revision     int
	suspect      bool
	settling     bool  // a settlement is under way
	ends         int64 // its expiry, by the time that was seen to pass
}

// laneView bounds where a claim looks. Deleted rows stay in the index until they are cleaned up,
// which an old transaction of any client can delay for long. A claim that begins behind them does
// not meet them (outbox case 62). Rows before the floor are those whose transaction took longer
// than floorSlack, and those given back. So the whole lane is read from time to time.
type laneView struct {
	floor int64
	first int64     // the same for messages that were never tried: see ClaimFirst
	whole time.Time // when the whole lane is read again
}

// reread makes the next claims look behind the floors. tried says that what is there was tried:
// ClaimFirst need not see it, for which it would pass over all others that were.
func (l *laneView) reread(tried bool) {
	if l.whole = (time.Time{}); !tried {
		l.first = 0
	}
}

const (
	floorSlack = 2 * int64(time.Second/time.Microsecond)
	wholeEvery = time.Second
	wholeShare = 20 // one part of this many of the time goes to reading whole lanes
)

func (c *claims) inHand() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.held))
}

// next returns a new claim number. No other owner uses it.
func (c *claims) next() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	return c.number
}

func (c *claims) lane(id int32) *laneView {
	if c.lanes == nil {
		c.lanes = map[int32]*laneView{}
	}
	l := c.lanes[id]
	if l == nil {
		l = &laneView{}
		c.lanes[id] = l
	}
	return l
}

// rewind makes the next claim read the whole of the given lanes.
func (c *claims) rewind(lanes ...int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range lanes {
		c.lane(id).reread(false)
	}
}

// rewindTried is rewind for messages that were tried.
func (c *claims) rewindTried(lane int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lane(lane).reread(true)
}

func (c *claims) set(flag *bool, to bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*flag = to
}

func (c *claims) saw(unplaced, suspects bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unplaced, c.suspects = c.unplaced || unplaced, suspects
}
