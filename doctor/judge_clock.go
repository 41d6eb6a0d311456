package doctor

import (
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/wire"
)

const (
	clockOff    = 30 * time.Second
	clockBehind = 5 * time.Second // a smaller step back is an ordinary correction of the clock
)

func judgeClock(f *Findings) []Check {
	const g = in("Clock")
	const hint = "set the clock, and let the machine keep it with NTP"
	now := f.Now.UTC().Format(time.RFC3339)
	switch behind := f.File.Latest.Sub(f.Now); {
	case f.Now.Before(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)):
		return []Check{g.failing("clock", now+": that is far in the past; nothing expires, and no signature is accepted", hint)}
	case !f.File.Latest.IsZero() && behind > clockBehind:
		return []Check{g.warning("clock", fmt.Sprintf("%s: that is %s before a time that the database has seen", now, span(behind)), hint), judgeOffset(g, f)}
	}
	return []Check{g.ok("clock", now), judgeOffset(g, f)}
}

// judgeOffset judges the destination whose clock is farthest off: receivers check signatures one by one.
func judgeOffset(g in, f *Findings) Check {
	const name = "clock of the destinations"
	worst, who := time.Duration(-1), ""
	var off time.Duration
	for _, p := range f.Peers {
		if p.Probed.Date.IsZero() {
			continue
		}
		o := offset(p)
		if o.Abs() > worst {
			worst, off, who = o.Abs(), o, p.Name
		}
	}
	if who == "" {
		return g.skipped(name, "no destination has sent its time")
	}
	side := "before"
	if off > 0 {
		side = "after"
	}
	detail := fmt.Sprintf("this clock is %s %s the clock of %s", span(worst), side, who)
	hint := fmt.Sprintf("signatures are refused from %s on; set the clock of this machine or of %s, and keep both with NTP", span(wire.Tolerance), who)
	c := g.ok(name, "all within "+span(max(worst, time.Second)))
	switch {
	case worst > wire.Tolerance:
		c = g.failing(name, detail, hint)
	case worst > clockOff:
		c = g.warning(name, detail, hint)
	}
	return c.with("offsetSeconds", off.Seconds())
}

// offset returns how far this clock is ahead of the peer's. It is 0 if the duration of the call and the whole
// seconds of the answer explain the difference.
func offset(p PeerFound) time.Duration {
	earliest, latest := p.Sent.Sub(p.Probed.Date.Add(time.Second)), p.Came.Sub(p.Probed.Date)
	switch {
	case earliest > 0:
		return earliest
	case latest < 0:
		return latest
	}
	return 0
}
