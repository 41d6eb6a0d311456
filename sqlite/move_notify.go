package sqlite

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"slices"

	"github.com/holdfast-mq/holdfast/move"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// Channels, lists and notifications of a move.
const (
	exportBook     = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = 'book'), 0)`
	exportChannels = `SELECT name, kind, settings, attempts, interval, coalesce(waits, 'null'), workers, disabled, changed FROM hf_channel ORDER BY name`
	exportLists    = `SELECT name, description, partial, changed FROM hf_list ORDER BY name`

	exportRecipients = `SELECT list, channel, address, name, disabled FROM hf_recipient ORDER BY list, place`

	exportNotifications = `SELECT n.seq, n.copy, n.id, n.message, n.channel, n.type, n.list, n.subject, b.payload, n.hash, n.site, n.instance, n.script, n.execution,
			n.parent, n.enqueued, n.created, n.delivered, n.state, n.settled, n.tried, coalesce(n.failures, 0), coalesce(n.tries, 0), coalesce(n.cycle, 0), coalesce(n.reason, ''), coalesce(n.last_error, ''),
			(SELECT count(*) FROM hf_target AS t WHERE t.seq = n.seq)
		FROM hf_notification AS n LEFT JOIN hf_notification_body AS b ON b.seq = n.seq WHERE n.seq > ?1 ORDER BY n.seq LIMIT ?2`
	exportTargets = `SELECT t.seq, ` + targetColumns + ` FROM hf_target AS t WHERE t.seq BETWEEN ?1 AND ?2 ORDER BY t.seq, t.channel, t.address`
)

// targetBytes is what a recipient's row takes, more or less.
const targetBytes = 256

func (x *exporting) book(c *move.Config) error {
	if err := x.each(exportBook, func(found *sql.Rows) error { return found.Scan(&c.Book) }); err != nil {
		return err
	}
	if err := x.each(exportChannels, func(found *sql.Rows) error {
		var ch move.Channel
		var waits string
		var changed int64
		if err := found.Scan(&ch.Name, &ch.Kind, &ch.Settings, &ch.Attempts, &ch.Interval, &waits, &ch.Workers, &ch.Disabled, &changed); err != nil {
			return err
		}
		ch.Changed = move.Distance(changed, x.base, never)
		c.Channels = append(c.Channels, ch)
		return json.Unmarshal([]byte(waits), &c.Channels[len(c.Channels)-1].Waits)
	}); err != nil {
		return err
	}
	at := map[string]int{}
	if err := x.each(exportLists, func(found *sql.Rows) error {
		var l move.List
		var changed int64
		err := found.Scan(&l.Name, &l.Description, &l.Partial, &changed)
		l.Changed = move.Distance(changed, x.base, never)
		at[l.Name] = len(c.Lists)
		c.Lists = append(c.Lists, l)
		return err
	}); err != nil {
		return err
	}
	return x.each(exportRecipients, func(found *sql.Rows) error {
		var name string
		var r move.Recipient
		err := found.Scan(&name, &r.Channel, &r.Address, &r.Name, &r.Disabled)
		if i, ok := at[name]; ok {
			c.Lists[i].Recipients = append(c.Lists[i].Recipients, r)
		}
		return err
	})
}

// notifications reads a page of them, and then what became of their recipients:
// there is one connection.
func (x *exporting) notifications(p *move.Page, after int64) error {
	if err := x.page(p, exportNotifications, after, func(found *sql.Rows) (int64, int, error) {
		n, targets, err := x.notification(found)
		p.Notifications = append(p.Notifications, n)
		return n.Seq, len(n.Payload) + targets*targetBytes, err
	}); err != nil || len(p.Notifications) == 0 {
		return err
	}
	return x.each(exportTargets, func(found *sql.Rows) error {
		var t move.Target
		var seq, at int64
		if err := found.Scan(&seq, &t.Channel, &t.Address, &t.Name, &t.Result, &t.Code, &t.Text, &t.Receipt, &t.Maybe, &t.Attempts, &t.Cycle, &t.Server, &t.TLS, &t.Truncated, &at); err != nil {
			return err
		}
		t.At = move.Distance(at, x.base, never)
		// One of a message without a notification is left behind: nobody could see it.
		if i, found := slices.BinarySearchFunc(p.Notifications, seq, func(n move.Notification, seq int64) int { return cmp.Compare(n.Seq, seq) }); found {
			p.Notifications[i].Targets = append(p.Notifications[i].Targets, t)
		}
		return nil
	}, p.Notifications[0].Seq, p.Last)
}

func (x *exporting) notification(found *sql.Rows) (n move.Notification, targets int, err error) {
	var id, message any
	var g move.Gone
	var enqueued, delivered, state, settled, tried sql.NullInt64
	var created int64
	if err := found.Scan(&n.Seq, &n.Copy, &id, &message, &n.Channel, &n.Type, &n.List, &n.Subject, &n.Payload, &n.Hash, &n.Site, &n.Instance, &n.Script, &n.Execution,
		&n.Parent, &enqueued, &created, &delivered, &state, &settled, &tried, &g.Failures, &g.Tries, &g.Cycle, &g.Reason, &g.LastError, &targets); err != nil {
		return n, 0, err
	}
	n.ID, n.Message, n.Enqueued = idFrom(id), idFrom(message), move.None
	if message == nil {
		n.Message = notify.MessageID(n.Site, n.ID, "")
	}
	if enqueued.Valid {
		n.Enqueued = enqueued.Int64
	}
	n.Created, n.Delivered = created-x.base, x.far(delivered)
	if state.Valid {
		g.State, g.Settled, g.Tried = state.Int64, x.far(settled), x.far(tried)
		n.Gone = &g
	}
	return n, targets, nil
}

func (im *importing) book(c *move.Config) error {
	tx := im.tx
	var list []rows.Row
	for i := range c.Channels {
		ch := &c.Channels[i]
		r := &rows.Channel{
			Name: ch.Name, Kind: ch.Kind, Settings: ch.Settings, Attempts: ch.Attempts, Interval: ch.Interval, Workers: ch.Workers, Disabled: ch.Disabled, Changed: rows.Instant(ch.Changed),
		}
		if len(ch.Waits) > 0 {
			text, err := json.Marshal(ch.Waits)
			if err != nil {
				return err
			}
			r.Waits = string(text)
		}
		list = append(list, r)
	}
	for i := range c.Lists {
		l := &c.Lists[i]
		list = append(list, &rows.List{Name: l.Name, Description: l.Description, Partial: l.Partial, Recipients: int64(len(l.Recipients)), Changed: rows.Instant(l.Changed)})
		for place, r := range l.Recipients {
			list = append(list, &rows.Recipient{List: l.Name, Place: int64(place), Channel: r.Channel, Address: r.Address, Name: r.Name, Disabled: r.Disabled})
		}
	}
	if _, err := tx.write(im.base, replaceRow, list); err != nil {
		return err
	}
	if c.Book == 0 {
		return nil
	}
	_, err := tx.exec(setMeta, metaBook, c.Book)
	return err
}

func (im *importing) notification(n *move.Notification) error {
	tx := im.tx
	var message, enqueued driver.Value
	if n.Copy > 0 {
		message = idValue(n.Message)
	}
	if n.Enqueued != move.None {
		enqueued = n.Enqueued
	}
	args := []driver.Value{
		n.Seq, idValue(n.ID), n.Copy, message, n.Channel, n.Type, n.List, n.Subject, n.Site, n.Instance, n.Script, n.Execution, n.Parent, enqueued, n.Hash,
		im.at(n.Created), im.orNull(n.Delivered),
	}
	if g := n.Gone; g != nil {
		args = append(args, g.State, im.orNull(g.Settled), g.Failures, g.Tries, g.Cycle, nullText(g.Reason), nullText(g.LastError), im.orNull(g.Tried))
	} else {
		args = append(args, nil, nil, nil, nil, nil, nil, nil, nil)
	}
	seq, err := tx.conn.insert(salvageNotification, args...)
	if err != nil {
		return err
	}
	if seq == 0 {
		return errThere
	}
	if n.Payload != nil {
		if _, err := tx.exec(insertNotificationBody, n.Seq, n.Payload); err != nil {
			return err
		}
	}
	list := make([]rows.Row, len(n.Targets))
	for i := range n.Targets {
		t := &n.Targets[i]
		list[i] = &rows.Target{
			Seq: n.Seq, Channel: t.Channel, Address: t.Address, Name: t.Name, Result: t.Result, Code: t.Code, Text: t.Text, Receipt: t.Receipt, Maybe: t.Maybe,
			Attempts: t.Attempts, Cycle: t.Cycle, Server: t.Server, TLS: t.TLS, Truncated: t.Truncated, At: rows.Instant(t.At),
		}
	}
	_, err = tx.write(im.base, replaceRow, list)
	return err
}
