package node

import "github.com/holdfast-mq/holdfast/activity"

// activity makes the part that writes what happens to messages.
func (n *Node) activity() *activity.Log {
	r := n.cfg.Retention
	return &activity.Log{Journal: n.store, Store: n.kept.Activity, Off: !n.cfg.Activity, Keep: r.Activity, Every: r.Sweep, Logger: n.log}
}
