package serve

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// hurry is how long a request of a stranger may take before it gives way to
	// others where there is no room.
	hurry = 500 * time.Millisecond
	// roomWait is how long it waits for room itself.
	roomWait = 5 * time.Second
)

// crowd is all requests in hand whose senders are not known: what their bodies
// hold, and how many they are.
type crowd struct {
	bytes int64 // of bodies, at most; one address may have three quarters
	most  int   // requests; one address may have three quarters

	mu    sync.Mutex
	count int
	all   holding
	by    map[netip.Addr]*company
	freed chan struct{} // closed when somebody has left, and made anew
	waits int           // for that
	last  int64         // number of a guest
}

// holding is what bodies have in memory.
type holding struct {
	held    int64
	leaving int64 // of it, that of requests which had to give way and have not ended yet
}

func (h *holding) stays() int64 { return h.held - h.leaving }

// company is those of one address, the oldest first.
type company struct {
	holding
	guests []*guest
}

// guest is one request of the crowd. The crowd's lock guards what changes.
type guest struct {
	crowd   *crowd
	from    netip.Addr
	company *company
	number  int64 // those that came later have larger ones
	came    time.Time
	cut     func() // ends its reading; called at most once, and not after it has left
	held    int64
	left    bool // it is known, has ended, or had to give way
	out     bool // it had to give way
}

func newCrowd(bytes int64, most int) *crowd {
	return &crowd{bytes: bytes, most: most, by: map[netip.Addr]*company{}, freed: make(chan struct{})}
}

// enter lets a request in; nil: there are too many that hurry as much.
func (c *crowd) enter(from netip.Addr, cut func()) *guest {
	g := &guest{crowd: c, from: from, came: time.Now(), cut: cut}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	g.number = c.last
	for {
		of := c.by[from]
		tooMany := of != nil && len(of.guests) >= share(c.most)
		if !tooMany && c.count < c.most {
			break
		}
		if !c.makeWay(g, tooMany, func(of *company) int64 { return int64(len(of.guests)) }) {
			return nil
		}
	}
	of := c.by[from]
	if of == nil {
		of = &company{}
		c.by[from] = of
	}
	g.company, of.guests = of, append(of.guests, g)
	c.count++
	return g
}

func share(all int) int { return max(all*3/4, 1) }

// grow takes room for n bytes more. It waits for it a while; false: the guest
// had to give way.
func (g *guest) grow(n int64) bool {
	c := g.crowd
	until := time.Now().Add(roomWait)
	for {
		c.mu.Lock()
		if g.left {
			c.mu.Unlock()
			return !g.out
		}
		of := g.company
		own := int64(share(int(c.bytes)))
		if of.held+n <= own && c.all.held+n <= c.bytes {
			of.held, c.all.held, g.held = of.held+n, c.all.held+n, g.held+n
			c.mu.Unlock()
			return true
		}
		// What is leaving is waited for.
		tooMuch := of.stays()+n > own
		if (tooMuch || c.all.stays()+n > c.bytes) && c.makeWay(g, tooMuch, func(of *company) int64 { return of.stays() }) {
			c.mu.Unlock()
			continue
		}
		if !time.Now().Before(until) {
			g.giveWay()
			c.mu.Unlock()
			return false
		}
		freed := c.freed
		c.waits++
		c.mu.Unlock()
		t := time.NewTimer(min(hurry, time.Until(until)))
		select {
		case <-freed:
		case <-t.C: // somebody may have been there for long by now
		}
		t.Stop()
		c.mu.Lock()
		c.waits--
		c.mu.Unlock()
	}
}

// shrink gives back what was not needed.
func (g *guest) shrink(n int64) {
	c := g.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.left || n == 0 { // then end has all to give back
		return
	}
	g.held -= n
	c.all.held -= n
	g.company.held -= n
	c.tell()
}

// makeWay ends the oldest request of the address that has the most, or of the
// guest's own, for a guest that came later. It reports false if none has been
// there for long. Who has less than others need not go.
func (c *crowd) makeWay(g *guest, here bool, has func(of *company) int64) bool {
	var victim *company
	all := int64(0)
	for address, of := range c.by {
		all += has(of)
		if here && address != g.from || len(of.guests) == 0 {
			continue
		}
		if oldest := of.guests[0]; time.Since(oldest.came) < hurry || oldest.number > g.number {
			continue
		}
		if victim == nil || has(of) > has(victim) {
			victim = of
		}
	}
	if victim == nil || has(victim)*int64(len(c.by)) < all {
		return false
	}
	victim.guests[0].giveWay()
	return true
}

// giveWay ends a request's reading. What it holds is free when the request has
// ended.
func (g *guest) giveWay() {
	g.out = true
	c := g.crowd
	c.remove(g)
	g.company.leaving += g.held
	c.all.leaving += g.held
	g.cut()
}

// leave ends the stay of a sender who is known. It reports false if the guest
// had to give way.
func (g *guest) leave() bool {
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	if g.out {
		return false
	}
	if !g.left {
		g.crowd.remove(g)
		g.release()
	}
	return true
}

// end is called once, when the request has ended.
func (g *guest) end() {
	if !g.leave() {
		g.crowd.mu.Lock()
		defer g.crowd.mu.Unlock()
		g.company.leaving -= g.held
		g.crowd.all.leaving -= g.held
		g.release()
	}
}

// remove takes a guest off the list.
func (c *crowd) remove(g *guest) {
	g.left = true
	of := g.company
	i := slices.Index(of.guests, g)
	of.guests = slices.Delete(of.guests, i, i+1)
	c.count--
}

// release gives back what a guest holds.
func (g *guest) release() {
	c, of := g.crowd, g.company
	of.held -= g.held
	c.all.held -= g.held
	g.held = 0
	if len(of.guests) == 0 && of.held == 0 && c.by[g.from] == of {
		delete(c.by, g.from)
	}
	c.tell()
}

// wasCut says whether the guest had to give way.
func (g *guest) wasCut() bool {
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	return g.out
}

func (c *crowd) tell() {
	if c.waits == 0 {
		return
	}
	close(c.freed)
	c.freed = make(chan struct{})
}
