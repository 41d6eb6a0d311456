package serve

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// hurry is how long a request of a stranger may take before it gives way to others that need its room.
	hurry = 500 * time.Millisecond
	// roomWait is how long a request waits for room itself.
	roomWait = 5 * time.Second
)

// crowd holds all requests in hand whose senders are unknown. It counts them, and the bytes of their bodies.
type crowd struct {
	bytes int64 // of bodies, at most; one address may have three quarters of them
	most  int   // requests, at most; one address may have three quarters of them

	mu    sync.Mutex
	count int
	all   holding
	by    map[netip.Addr]*company
	freed chan struct{} // closed when a guest has left, and then made anew
	waits int           // how many wait for freed
	last  int64         // number of the last guest
}

// holding counts the bytes of bodies in memory.
type holding struct {
	held    int64
	leaving int64 // part of held that belongs to requests which had to give way but have not ended yet
}

func (h *holding) stays() int64 { return h.held - h.leaving }

// company holds the guests of one address, the oldest first.
type company struct {
	holding
	guests []*guest
}

// guest is one request of the crowd. The crowd's lock guards the fields that change.
type guest struct {
	crowd   *crowd
	from    netip.Addr
	company *company
	number  int64 // grows with each guest
	came    time.Time
	cut     func() // ends its reading; called at most once, and never after it has left
	held    int64
	left    bool // its sender is known, it has ended, or it had to give way
	out     bool // it had to give way
}

func newCrowd(bytes int64, most int) *crowd {
	return &crowd{bytes: bytes, most: most, by: map[netip.Addr]*company{}, freed: make(chan struct{})}
}

// enter lets a request in. Nil: too many requests are there, none for longer than hurry.
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

// grow takes room for n more bytes, and waits a while for it. False: the guest had to give way.
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
		// Wait for what is leaving.
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
		case <-t.C: // by now, another guest may have been there for long
		}
		t.Stop()
		c.mu.Lock()
		c.waits--
		c.mu.Unlock()
	}
}

// shrink gives back room that was not needed.
func (g *guest) shrink(n int64) {
	c := g.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.left || n == 0 { // if it has left, its room was given back
		return
	}
	g.held -= n
	c.all.held -= n
	g.company.held -= n
	c.tell()
}

// makeWay makes room for a guest. It ends the oldest request of the address that has the most, or, with here,
// of the guest's own address. That request must have come before the guest. makeWay returns false if no
// request has been there for long. An address that has less than the average need not give way.
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

// giveWay ends a request's reading. Its room is free when the request has ended.
func (g *guest) giveWay() {
	g.out = true
	c := g.crowd
	c.remove(g)
	g.company.leaving += g.held
	c.all.leaving += g.held
	g.cut()
}

// leave ends the stay of a guest whose sender is known. It returns false if the guest had to give way.
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

// release gives back the room of a guest.
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

// wasCut reports whether the guest had to give way.
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
