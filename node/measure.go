package node

import "github.com/holdfast-mq/holdfast/metrics"

// newMetrics makes the page of metrics: what the library counts, and the numbers of each
// part that has some.
func (n *Node) newMetrics() (*metrics.Metrics, error) {
	return metrics.New(metrics.Options{
		Counts: n.store.Counts, Lanes: n.lanes, Oldest: n.progress.Oldest, Refused: n.guard.Refused,
		Version: n.opts.Version, Commit: n.opts.Commit, Sources: append(n.special.measured, n.measured()),
	})
}

// measured are the numbers of the node itself.
func (n *Node) measured() metrics.Source {
	const held, lost = "holdfast_outbox_held", "holdfast_log_lines_lost"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: held, Help: "Messages whose TTL is over by a clock that is doubted: neither delivered nor ended until it is believed or put right."},
			{Name: lost, Help: "Lines of the log that could not be written since the start, because nobody read them or the disk was full.", Counter: true},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			see(held, n.store.Doubt().Held)
			see(lost, n.lines.dropped())
		},
	}
}
