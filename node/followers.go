package node

import (
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/metrics"
)

// stuckAfter is how old what a follower has not read gets before people are told: it
// reads within seconds, and the journal is kept for as long as it does not.
const stuckAfter = 10 * time.Minute

// lag is for how long a follower has not read what is there.
func lag(f holdfast.FollowerInfo) time.Duration {
	if f.Unread.IsZero() {
		return 0
	}
	return max(time.Since(f.Unread), 0)
}

// journalHealth names those that follow the journal, and tells of one that has stopped.
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
			": it is kept, and grows, until it is; see to the program that follows it under that name, or end the name with the store's Forget if that does not come back")
	case len(names) > 0:
		add("journal", api.OK, "followed by "+brief.List(names))
	}
}

// measuredJournal are the numbers of those that follow the journal.
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
