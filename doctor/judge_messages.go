package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func judgeMessages(f *Findings) []Check {
	const g = in("Messages")
	read := f.File.Err == nil && f.File.Schema > 0 && f.File.Schema <= f.File.Newest
	if !read && f.Running.Health == nil {
		return []Check{g.skipped("messages", "the database was not read")}
	}
	checks := []Check{judgeParked(g, f, read)}
	if !read {
		return checks
	}
	if f.Config.Config == nil {
		checks = append(checks, g.skipped("without a destination", "the configuration has faults"))
	} else {
		checks = append(checks, judgeUnrouted(g, f))
	}
	if len(f.File.Held) > 0 {
		var items []string
		for _, name := range slices.Sorted(maps.Keys(f.File.Held)) {
			items = append(items, name+": "+f.File.Held[name])
		}
		return append(checks, g.warning("lanes", brief.Count(len(items), "destination is held: its messages wait for a person", "destinations are held: their messages wait for a person"),
			"remove the reason; the node tries one message from time to time, and goes on when one is accepted").listing(items))
	}
	return append(checks, g.ok("lanes", "none is held"))
}

func judgeParked(g in, f *Findings, read bool) Check {
	var total int64
	var items []string
	for _, name := range slices.Sorted(maps.Keys(f.File.Parked)) {
		total += f.File.Parked[name]
		items = append(items, fmt.Sprintf("%s: %d", name, f.File.Parked[name]))
	}
	if !read {
		total = f.Running.Health.Parked
	}
	count := strconv.FormatInt(total, 10)
	if read && total >= sqlite.ParkedMost {
		count = "at least " + count
	}
	c := g.ok("parked", "none")
	if total > 0 {
		c = g.warning("parked", count+" messages wait for a person",
			"look with: holdfast messages ls --state parked; then retry or discard them").listing(items)
	}
	return c.with("messages", float64(total))
}

func judgeUnrouted(g in, f *Findings) Check {
	var lost []string
	for _, name := range f.File.Waiting {
		// As in a running node, notices that no dispatcher has callbacks for are nobody's work.
		if name != holdfast.EndedDestination && !f.Config.Config.Serves(name) {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		return g.warning("without a destination", fmt.Sprintf("messages wait for %s that the configuration does not name", brief.Count(len(lost), "destination", "destinations")),
			admin.Unserved(lost)).listing(lost)
	}
	return g.ok("without a destination", "none")
}
