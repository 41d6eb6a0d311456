package sqlite

import (
	"database/sql/driver"

	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

var _ notify.Store = (*DB)(nil)

// notifies reports whether the lane has messages of notifications.
func (l *lane) notifies() bool {
	_, ok := notify.ChannelOf(l.name)
	return ok
}

// copyValues returns the columns of a notification's copy up to created. The text is in its bundle.
func copyValues(n *rows.Notification, created int64) []driver.Value {
	var message, enqueued driver.Value
	if n.Copy > 0 {
		message = idValue(n.Message)
	}
	if n.Enqueued != int64(rows.None) {
		enqueued = n.Enqueued
	}
	return []driver.Value{
		n.Seq, idValue(n.ID), n.Copy, message, n.Channel, n.Type, n.List, n.Subject, n.Site, n.Instance, n.Script, n.Execution, n.Parent, enqueued, n.Bundle, created,
	}
}
