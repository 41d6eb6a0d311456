package serve

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxPaced bounds the memory of a Pace.
const maxPaced = 4096

// Pace limits how often each of many does something. Its fields are set before it is used. It may be used
// concurrently.
type Pace[Who comparable] struct {
	PerSecond float64
	Burst     int // that may come at once

	mu   sync.Mutex
	seen map[Who]*rate.Limiter
}

// Allow counts one time, and reports whether it is within the limit of who.
func (p *Pace[Who]) Allow(who Who) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[Who]*rate.Limiter{}
	}
	l, ok := p.seen[who]
	if !ok {
		if len(p.seen) >= maxPaced {
			p.shrink()
		}
		l = rate.NewLimiter(rate.Limit(p.PerSecond), p.Burst)
		p.seen[who] = l
	}
	return l.Allow()
}

// shrink forgets the quiet ones, or else half of all. A full map of addresses is an attack from many. No limit
// for each of them can stop it, and it must not make every call walk through the map.
func (p *Pace[Who]) shrink() {
	now := time.Now()
	for who, l := range p.seen {
		if l.TokensAt(now) >= float64(p.Burst) {
			delete(p.seen, who)
		}
	}
	for who := range p.seen {
		if len(p.seen) <= maxPaced/2 {
			return
		}
		delete(p.seen, who)
	}
}
