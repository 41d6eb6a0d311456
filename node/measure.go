package node

import (
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/metrics"
)

// newMetrics makes the page of metrics: what the library counts, and the numbers of each
// part that has some.
func (n *Node) newMetrics() (*metrics.Metrics, error) {
	return metrics.New(metrics.Options{
		Counts: n.store.Counts, Lanes: n.lanes, Oldest: n.progress.Oldest, Refused: n.guard.Refused,
		Version: n.opts.Version, Commit: n.opts.Commit, Sources: append(n.special.measured, n.measured(), n.measuredJournal(), n.measuredSites(), n.measuredTelemetry(), n.measuredAudit(), n.measuredWebhooks()),
	})
}

// measured are the numbers of the node itself.
func (n *Node) measured() metrics.Source {
	const held, lost, failed = "holdfast_outbox_held", "holdfast_log_lines_lost", "holdfast_observer_failures"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: held, Help: "Messages whose TTL is over by a clock that is doubted. They are neither delivered nor ended until the clock is believed or set right."},
			{Name: lost, Help: "Lines of the log that could not be written since the start, because nobody read them or the disk was full.", Counter: true},
			{Name: failed, Help: "Calls of observers of attempts that failed since the start. They change no delivery.", Counter: true},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			see(held, n.store.Doubt().Held)
			see(lost, n.lines.dropped())
			see(failed, n.site.ObserverFailures())
		},
	}
}

// stuckAfter is the age of an unread entry at which health reports its follower. A follower reads
// within seconds, and the journal is kept until it has.
const stuckAfter = 10 * time.Minute

// lag returns the age of the oldest entry that a follower has yet to read, or zero.
func lag(f holdfast.FollowerInfo) time.Duration {
	if f.Unread.IsZero() {
		return 0
	}
	return max(time.Since(f.Unread), 0)
}

// journalHealth names the followers of the journal, and reports those that have stopped.
func journalHealth(list []holdfast.FollowerInfo, add addCheck) {
	var names, stuck []string
	for _, f := range list {
		names = append(names, f.Name)
		if late := lag(f); late > stuckAfter {
			stuck = append(stuck, fmt.Sprintf("%s for %s", f.Name, late.Round(time.Second)))
		}
	}
	switch {
	case len(stuck) > 0:
		add("journal", api.Degraded, "not read by "+brief.List(stuck)+
			": it is kept, and grows, until it is; see to the program that follows it under that name, or end it with holdfast journal forget if that does not come back")
	case len(names) > 0:
		add("journal", api.OK, "followed by "+brief.List(names))
	}
}

// measuredJournal returns the numbers of the journal's followers.
func (n *Node) measuredJournal() metrics.Source {
	const unread = "holdfast_journal_unread_seconds"
	return metrics.Source{
		Metrics: []metrics.Metric{{Name: unread, Help: "Age of the oldest entry of the journal that a follower has yet to read, or 0. The journal is kept until it has.", Label: "follower"}},
		Read: func(see func(name string, value int64, label ...string)) {
			if s := n.seen.Load(); s != nil {
				for _, f := range s.followers {
					see(unread, int64(lag(f).Seconds()), f.Name)
				}
			}
		},
	}
}
