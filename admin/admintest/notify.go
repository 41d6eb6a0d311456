package admintest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// notified is one copy of a notification. Its state is the message's.
type notified struct {
	notification notify.Notification
	message      holdfast.ID
	channel      string
	targets      []notify.Target
}

// Notified keeps a notification with a message for each channel. Here the ids of
// messages can be read: that of the first copy is the notification's, each further
// one has the channel behind it; where another site was first with the id, the
// site is before it.
func (m *Memory) Notified(ctx context.Context, n notify.Notification, channels ...string) error {
	for i, channel := range channels {
		id := n.ID
		if i > 0 {
			id += holdfast.ID("." + channel)
		}
		if _, err := m.Get(ctx, id); err == nil {
			id = holdfast.ID(n.Origin.Site) + "/" + id
		}
		if _, err := m.Enqueue(ctx, holdfast.Message{ID: id, Source: n.Origin.Site, Destination: notify.Lane(channel), Endpoint: n.List}); err != nil {
			return err
		}
		m.mu.Lock()
		m.notified = append(m.notified, notified{n, id, channel, nil})
		m.mu.Unlock()
	}
	return nil
}

// Reach says what became of recipients of a message.
func (m *Memory) Reach(message holdfast.ID, targets ...notify.Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.notified {
		if m.notified[i].message == message {
			m.notified[i].targets = targets
		}
	}
}

// record is a copy as the store shows it.
func (m *Memory) record(n *notified, q *notify.Query) notify.Record {
	r := m.find(n.message)
	out := notify.Record{
		Notification: n.notification, Message: n.message, Channel: n.channel, Seq: r.Seq, Status: notify.StatusOf(r.State, r.Tries), Reason: r.Reason,
		Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, LastError: r.LastError, Created: r.Created, LastAttempt: r.LastAttempt, Ended: r.Settled, Discarding: r.Discarding,
	}
	if out.Status == notify.Pending || out.Status == notify.Retrying {
		out.NextAttempt = r.Due
	}
	out.Stuck = q.IsStuck(&out, time.Now())
	return out
}

// Notification returns the copies of one.
func (m *Memory) Notification(ctx context.Context, site string, id holdfast.ID) (copies []notify.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	for i := range m.notified {
		if n := &m.notified[i]; n.notification.ID == id && n.notification.Origin.Site == site {
			r := m.record(n, &notify.Query{})
			r.Targets, r.History = n.targets, m.find(n.message).History
			copies = append(copies, r)
		}
	}
	if len(copies) == 0 {
		return nil, fmt.Errorf("notification %s: %w", id, holdfast.ErrNotFound)
	}
	return copies, nil
}

// NotificationSites returns the sites that have sent an id.
func (m *Memory) NotificationSites(ctx context.Context, id holdfast.ID) (sites []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	for i := range m.notified {
		if n := &m.notified[i].notification; n.ID == id {
			sites = append(sites, n.Origin.Site)
		}
	}
	slices.Sort(sites)
	return slices.Compact(sites), nil
}

// Notifications returns one page of copies, newest first.
func (m *Memory) Notifications(ctx context.Context, q notify.Query) (notify.Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var page notify.Page
	if err := m.ready(ctx); err != nil {
		return page, err
	}
	before, limit := int64(len(m.records)+1), q.Limit
	if q.After != "" {
		var err error
		if before, err = strconv.ParseInt(q.After, 10, 64); err != nil {
			return page, fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{Field: "after", Value: q.After, Problem: "is not the next of a page"})
		}
	}
	if limit == 0 {
		limit = 50
	}
	shows := q.Filter()
	for i := range slices.Backward(m.notified) {
		r := m.record(&m.notified[i], &q)
		if r.Seq >= before || !shows(&r) {
			continue
		}
		if len(page.Records) == limit {
			page.Next = strconv.FormatInt(page.Records[limit-1].Seq, 10)
			break
		}
		r.Notification.Body, r.Notification.Data = "", nil
		page.Records = append(page.Records, r)
	}
	return page, nil
}

// KPIs counts the copies.
func (m *Memory) KPIs(ctx context.Context, stuckAfter, window time.Duration) (all notify.KPIs, sites map[string]notify.KPIs, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return all, nil, err
	}
	sites = map[string]notify.KPIs{}
	for i := range m.notified {
		r := m.record(&m.notified[i], &notify.Query{StuckAfter: stuckAfter})
		site := r.Notification.Origin.Site
		var one notify.KPIs
		switch r.Status {
		case notify.Pending, notify.Retrying:
			one.Depth, one.Oldest = 1, time.Since(r.Created)
			if r.Stuck {
				one.Stuck = 1
			}
		case notify.Parked:
			one.Parked = 1
		case notify.Delivered:
			if time.Since(r.Ended) < window {
				one.Delivered = 1
			}
		case notify.Discarded, notify.Forwarding:
		}
		of := sites[site]
		of.Add(one)
		sites[site] = of
		all.Add(one)
	}
	return all, sites, nil
}

// Directory returns all channels and lists.
func (m *Memory) Directory(ctx context.Context) (notify.Directory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return notify.Directory{}, err
	}
	return notify.Directory{Version: m.book.Version, Channels: maps.Clone(m.book.Channels), Lists: maps.Clone(m.book.Lists)}, nil
}

// PutChannel keeps a channel.
func (m *Memory) PutChannel(ctx context.Context, c notify.Channel, _ string) error {
	return m.change(ctx, func() error {
		if err := seen(m.book.Channels, c.Name, c.Version, false); err != nil {
			return err
		}
		c.Changed, c.Version = time.Now(), m.book.Version+1
		m.book.Channels[c.Name] = c
		return nil
	})
}

// DeleteChannel ends a channel.
func (m *Memory) DeleteChannel(ctx context.Context, name string, version int64, _ string) error {
	return m.change(ctx, func() error { return take(m.book.Channels, name, version) })
}

// PutList keeps a list.
func (m *Memory) PutList(ctx context.Context, l notify.List, _ string) error {
	return m.change(ctx, func() error {
		if err := seen(m.book.Lists, l.Name, l.Version, false); err != nil {
			return err
		}
		l.Changed, l.Version = time.Now(), m.book.Version+1
		m.book.Lists[l.Name] = l
		return nil
	})
}

// DeleteList ends a list.
func (m *Memory) DeleteList(ctx context.Context, name string, version int64, _ string) error {
	return m.change(ctx, func() error { return take(m.book.Lists, name, version) })
}

func (m *Memory) change(ctx context.Context, edit func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	if m.book.Channels == nil {
		m.book.Channels, m.book.Lists = map[string]notify.Channel{}, map[string]notify.List{}
	}
	if err := edit(); err != nil {
		return err
	}
	m.book.Version++
	return nil
}

// seen compares what there is with what the caller has seen.
func seen[V notify.Channel | notify.List](all map[string]V, name string, version int64, end bool) error {
	there, found := all[name]
	var present int64
	switch v := any(there).(type) {
	case notify.Channel:
		present = v.Version
	case notify.List:
		present = v.Version
	}
	return notify.Seen(found, present, version, end)
}

func take[V notify.Channel | notify.List](all map[string]V, name string, version int64) error {
	if err := seen(all, name, version, true); err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	delete(all, name)
	return nil
}

// Channels stands in for who delivers over channels. The zero one takes
// settings with a host, and addresses with an @ or none.
type Channels struct {
	mu      sync.Mutex
	status  map[string]holdfast.LaneStatus
	report  notify.Report
	fail    error
	Resumed []string // names, in order; read when nothing asks any more
	Tested  []string // name and address, in order
}

// Answer makes every further test end so.
func (c *Channels) Answer(r notify.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report = r
}

// FailWith makes every further Resume and Test fail; nil ends that.
func (c *Channels) FailWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

// Fares says how a channel fares.
func (c *Channels) Fares(name string, s holdfast.LaneStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == nil {
		c.status = map[string]holdfast.LaneStatus{}
	}
	c.status[name] = s
}

// Check wants a known kind, and settings with a host.
func (c *Channels) Check(channel notify.Channel) error {
	var faults []error
	if channel.Kind != "email" && channel.Kind != "ntfy" {
		faults = append(faults, &holdfast.FieldError{Field: "kind", Value: channel.Kind, Problem: "is not a kind of channel; the kinds are email, ntfy"})
	}
	if !strings.Contains(string(channel.Settings), `"host":"`) {
		faults = append(faults, &holdfast.FieldError{Field: "settings.host", Problem: "is missing"})
	}
	return errors.Join(faults...)
}

// CheckRecipient wants a mail address where the channel is of e-mail.
func (c *Channels) CheckRecipient(channel notify.Channel, address string) error {
	if channel.Kind == "email" && strings.Count(address, "@") != 1 {
		return &holdfast.FieldError{Field: "address", Value: address, Problem: "is not a mail address"}
	}
	return nil
}

// Status tells what Fares was told.
func (c *Channels) Status() map[string]holdfast.LaneStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.status)
}

// Resume notes that it was called.
func (c *Channels) Resume(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	c.Resumed = append(c.Resumed, name)
	delete(c.status, name)
	return nil
}

// Test notes that it was called, and answers what Answer was told.
func (c *Channels) Test(_ context.Context, name, address string) (notify.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Tested = append(c.Tested, name+" "+address)
	return c.report, c.fail
}
