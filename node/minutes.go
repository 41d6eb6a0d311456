package node

import (
	"strings"

	"github.com/holdfast-mq/holdfast/minutes"
	"github.com/holdfast-mq/holdfast/notify"
)

// minutes makes the part that writes what happens in each minute.
func (n *Node) minutes() *minutes.Recorder {
	return &minutes.Recorder{Store: n.kept.Minutes, Node: n.cfg.Node.ID, Read: n.numbers, Logger: n.log}
}

// numbers reads what the node has counted in memory.
func (n *Node) numbers() minutes.Numbers {
	ofChannel := func(lane string) bool { return strings.HasPrefix(lane, notify.LanePrefix) }
	all, notified, c := n.metrics.Totals(func(string) bool { return true }), n.metrics.Totals(ofChannel), n.store.Counts()
	now := minutes.Numbers{
		Delivered: all.Delivered, Failed: all.Failed, Parked: all.Parked, Expired: all.Expired, Notified: notified.Delivered, Received: c.Received,
		Waiting: c.Pending, ParkedNow: c.Parked,
	}
	for _, waited := range n.progress.Oldest() {
		now.Oldest = max(now.Oldest, waited)
	}
	for lane, of := range c.Lanes {
		if ofChannel(lane) {
			now.NotifyWaiting, now.NotifyParkedNow = now.NotifyWaiting+of.Pending, now.NotifyParkedNow+of.Parked
		}
	}
	return now
}
