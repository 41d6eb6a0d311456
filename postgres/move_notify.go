package postgres

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/move"
)

func (x *exporting) book(c *move.Config) error {
	if err := x.each(exportBook, nil, func(rows pgx.Rows) error { return rows.Scan(&c.Book) }); err != nil {
		return err
	}
	if err := x.each(exportChannels, nil, func(rows pgx.Rows) error {
		var ch move.Channel
		var changed int64
		var waits string
		err := rows.Scan(&ch.Name, &ch.Kind, &ch.Settings, &ch.Attempts, &ch.Interval, &waits, &ch.Workers, &ch.Disabled, &changed)
		if err == nil {
			err = json.Unmarshal([]byte(waits), &ch.Waits)
		}
		ch.Changed = move.Distance(changed, x.base, never)
		c.Channels = append(c.Channels, ch)
		return err
	}); err != nil {
		return err
	}
	at := map[string]int{}
	if err := x.each(exportLists, nil, func(rows pgx.Rows) error {
		var l move.List
		var changed int64
		err := rows.Scan(&l.Name, &l.Description, &l.Partial, &changed)
		l.Changed = move.Distance(changed, x.base, never)
		at[l.Name] = len(c.Lists)
		c.Lists = append(c.Lists, l)
		return err
	}); err != nil {
		return err
	}
	return x.each(exportRecipients, nil, func(rows pgx.Rows) error {
		var name string
		var r move.Recipient
		err := rows.Scan(&name, &r.Channel, &r.Address, &r.Name, &r.Disabled)
		if i, ok := at[name]; ok {
			c.Lists[i].Recipients = append(c.Lists[i].Recipients, r)
		}
		return err
	})
}

// notifications reads a page of them, and then what became of their recipients.
func (x *exporting) notifications(p *move.Page, after int64) error {
	var seqs []int64
	if err := x.page(p, exportNotifications, after, func(rows pgx.Rows) (int64, int, error) {
		n, err := x.notification(rows)
		p.Notifications, seqs = append(p.Notifications, n), append(seqs, n.Seq)
		return n.Seq, len(n.Payload), err
	}); err != nil || len(seqs) == 0 {
		return err
	}
	// Recipients count as well for the end of a page: there are more if it is not full of rows.
	p.End = false
	return x.each(exportTargets, []any{seqs}, func(rows pgx.Rows) error {
		var t move.Target
		var seq, at int64
		if err := rows.Scan(&seq, &t.Channel, &t.Address, &t.Name, &t.Result, &t.Code, &t.Text, &t.Receipt, &t.Maybe, &t.Attempts, &t.Cycle, &t.Server, &t.TLS, &t.Truncated, &at); err != nil {
			return err
		}
		t.At = move.Distance(at, x.base, never)
		if i, found := slices.BinarySearchFunc(p.Notifications, seq, func(n move.Notification, seq int64) int { return cmp.Compare(n.Seq, seq) }); found {
			p.Notifications[i].Targets = append(p.Notifications[i].Targets, t)
		}
		return nil
	})
}

func (x *exporting) notification(rows pgx.Rows) (n move.Notification, err error) {
	var id, message []byte
	var g move.Gone
	var gone bool
	var created int64
	var enqueued, delivered, settled, tried *int64
	if err := rows.Scan(&n.Seq, &n.Copy, &id, &message, &n.Channel, &n.Type, &n.List, &n.Subject, &n.Payload, &n.Hash, &n.Site, &n.Instance, &n.Script, &n.Execution,
		&n.Parent, &enqueued, &created, &delivered, &gone, &g.State, &settled, &tried, &g.Failures, &g.Tries, &g.Cycle, &g.Reason, &g.LastError); err != nil {
		return n, err
	}
	n.ID, n.Message, n.Enqueued = idFrom(id), idFrom(message), move.None
	if enqueued != nil {
		n.Enqueued = *enqueued
	}
	n.Created, n.Delivered = created-x.base, x.far(delivered)
	if gone {
		g.Settled, g.Tried = x.far(settled), x.far(tried)
		n.Gone = &g
	}
	return n, nil
}

func (im *importing) book(c *move.Config) error {
	for _, ch := range c.Channels {
		var waits *string
		if len(ch.Waits) > 0 {
			b, err := json.Marshal(ch.Waits)
			if err != nil {
				return err
			}
			waits = nullText(string(b))
		}
		if _, err := im.tx.Exec(im.ctx, importChannel, ch.Name, ch.Kind, ch.Settings, ch.Attempts, ch.Interval, waits, ch.Workers, ch.Disabled, im.at(ch.Changed)); err != nil {
			return err
		}
	}
	for _, l := range c.Lists {
		if _, err := im.tx.Exec(im.ctx, importList, l.Name, l.Description, l.Partial, len(l.Recipients), im.at(l.Changed)); err != nil {
			return err
		}
		var rows [][]any
		for i, r := range l.Recipients {
			rows = append(rows, []any{l.Name, int64(i), r.Channel, r.Address, r.Name, r.Disabled})
		}
		if err := im.copy("hf_recipient", rows, "list", "place", "channel", "address", "name", "disabled"); err != nil {
			return err
		}
	}
	if c.Book == 0 {
		return nil
	}
	_, err := im.tx.Exec(im.ctx, importBook, c.Book)
	return err
}

func (im *importing) notifications(page *move.Page) error {
	var rows, bodies, ends, targets [][]any
	var seqs, delivered []int64
	var sites []string
	for i := range page.Notifications {
		n := &page.Notifications[i]
		var enqueued *int64
		if n.Enqueued != move.None {
			enqueued = &n.Enqueued
		}
		rows = append(rows, []any{
			n.Seq, idBytes(n.ID), n.Copy, idBytes(n.Message), n.Channel, n.Type, n.List, n.Subject, n.Site, n.Instance, n.Script, n.Execution, n.Parent, enqueued, n.Hash, im.at(n.Created),
		})
		if n.Payload != nil {
			bodies = append(bodies, []any{n.Seq, n.Payload})
		}
		switch g := n.Gone; {
		case g != nil:
			ends = append(ends, []any{
				n.Seq, n.Site, g.State, im.at(g.Settled), g.Failures, g.Tries, g.Cycle, nullText(g.Reason), nullText(g.LastError), im.orNull(g.Tried),
			})
		case n.Delivered != move.None:
			seqs, sites, delivered = append(seqs, n.Seq), append(sites, n.Site), append(delivered, im.at(n.Delivered))
		}
		for _, t := range n.Targets {
			targets = append(targets, []any{
				n.Seq, t.Channel, t.Address, t.Name, t.Result, t.Code, t.Text, t.Receipt, t.Maybe, t.Attempts, t.Cycle, t.Server, t.TLS, t.Truncated, im.at(t.At),
			})
		}
	}
	for _, table := range []struct {
		name    string
		rows    [][]any
		columns []string
	}{
		{"hf_notification", rows, []string{"seq", "id", "copy", "message", "channel", "type", "list", "subject", "site", "instance", "script", "execution", "parent", "enqueued", "hash", "created"}},
		{"hf_notification_body", bodies, []string{"seq", "payload"}},
		{"hf_notification_end", ends, []string{"seq", "site", "state", "settled", "failures", "tries", "cycle", "reason", "last_error", "tried"}},
		{"hf_target", targets, []string{"seq", "channel", "address", "name", "result", "code", "text", "receipt", "maybe", "attempts", "cycle", "server", "tls", "truncated", "at"}},
	} {
		if err := im.copy(table.name, table.rows, table.columns...); err != nil {
			return err
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	_, err := im.tx.Exec(im.ctx, importDelivered, seqs, sites, delivered)
	return err
}
