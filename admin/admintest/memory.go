// Package admintest has a stand-in for a node's store, for tests of the
// operator API and of the command line. Nothing in it is durable, and it
// delivers nothing: tests put messages into the states they need.
package admintest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/people"
)

// Memory is an outbox, an inbox, a token store, and the part of a store of
// notifications that operators see.
type Memory struct {
	mu       sync.Mutex
	records  []holdfast.Record // by Seq, which is the index and one
	kept     []kept
	tokens   map[string]token
	notified []notified
	book     notify.Directory
	fail     error
}

type kept struct {
	message  holdfast.KeptMessage
	done     bool
	response []byte
}

type token struct {
	role    string
	hash    [32]byte
	created time.Time
	used    time.Time
	until   time.Time
}

func (t *token) admin() bool { return t.role == "admin" && t.until.IsZero() }

func (t *token) over() bool { return !t.until.IsZero() && !time.Now().Before(t.until) }

var (
	_ holdfast.Enqueuer = (*Memory)(nil)
	_ holdfast.Outbox   = (*Memory)(nil)
	_ holdfast.InboxLog = (*Memory)(nil)
)

// FailWith makes every further call fail; nil ends that.
func (m *Memory) FailWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// Enqueue keeps messages.
func (m *Memory) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	if err := holdfast.Normalize("memory", ms); err != nil {
		return nil, err
	}
	receipts := make([]holdfast.Receipt, len(ms))
	var fresh []holdfast.Record
	for i, msg := range ms {
		if r := m.find(msg.ID); r != nil {
			if !sameContent(r.Message, msg) {
				return nil, fmt.Errorf("enqueue %s: %w", msg.ID, holdfast.ErrConflict)
			}
			receipts[i] = holdfast.Receipt{ID: msg.ID, State: r.State, Duplicate: true}
			continue
		}
		now := time.Now()
		r := holdfast.Record{
			Message: msg, State: holdfast.Pending, Cycle: 1, Created: now, Due: now.Add(msg.Delay), Size: len(msg.Payload),
			Seq: int64(len(m.records) + len(fresh) + 1),
		}
		if msg.TTL > 0 {
			r.Expires = now.Add(msg.TTL)
		}
		r.History = []holdfast.Entry{{ID: msg.ID, Kind: holdfast.Enqueued, State: holdfast.Pending, At: now, Cycle: 1}}
		fresh = append(fresh, r)
		receipts[i] = holdfast.Receipt{ID: msg.ID, State: holdfast.Pending}
	}
	m.records = append(m.records, fresh...)
	return receipts, nil
}

func sameContent(a, b holdfast.Message) bool {
	return a.Kind == b.Kind && a.Destination == b.Destination && a.Endpoint == b.Endpoint && bytes.Equal(a.Payload, b.Payload)
}

func (m *Memory) ready(ctx context.Context) error {
	if m.fail != nil {
		return m.fail
	}
	return ctx.Err()
}

func (m *Memory) find(id holdfast.ID) *holdfast.Record {
	for i := range m.records {
		if m.records[i].Message.ID == id {
			return &m.records[i]
		}
	}
	return nil
}

// Change edits the record of a message.
func (m *Memory) Change(id holdfast.ID, edit func(r *holdfast.Record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.find(id)
	if r == nil {
		return fmt.Errorf("change %s: %w", id, holdfast.ErrNotFound)
	}
	edit(r)
	return nil
}

// Get returns one message.
func (m *Memory) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return holdfast.Record{}, err
	}
	if r := m.find(id); r != nil {
		return *r, nil
	}
	return holdfast.Record{}, fmt.Errorf("get %s: %w", id, holdfast.ErrNotFound)
}

// List returns one page, newest first.
func (m *Memory) List(ctx context.Context, q holdfast.Query) (holdfast.Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return holdfast.Page{}, err
	}
	before := int64(len(m.records) + 1)
	if q.After != "" {
		n, err := strconv.ParseInt(q.After, 10, 64)
		if err != nil {
			return holdfast.Page{}, fmt.Errorf("%w: %w", holdfast.ErrInvalid,
				&holdfast.FieldError{Field: "after", Value: q.After, Problem: "is not the next of a page"})
		}
		before = n
	}
	limit := q.Limit
	if limit == 0 {
		limit = 50
	}
	var page holdfast.Page
	for _, r := range slices.Backward(m.records) {
		if r.Seq >= before || len(q.States) > 0 && !slices.Contains(q.States, r.State) ||
			q.Destination != "" && r.Message.Destination != q.Destination || q.Held && r.HeldUntil.IsZero() ||
			!q.Selects(&r) || q.Text != nil && !q.Text(&r, r.Message.Payload) {
			continue
		}
		if q.Count > 0 {
			if page.Count == q.Count {
				page.Next = "1"
				break
			}
			page.Count++
			continue
		}
		if len(page.Records) == limit {
			page.Next = strconv.FormatInt(page.Records[limit-1].Seq, 10)
			break
		}
		r.Message.Payload, r.History = nil, nil
		page.Records = append(page.Records, r)
	}
	return page, nil
}

// Requeue starts a new cycle of a message that has ended undelivered.
func (m *Memory) Requeue(ctx context.Context, id holdfast.ID, how holdfast.Requeue) (holdfast.Record, error) {
	return m.decide(ctx, id, holdfast.VerbRequeue, func(r *holdfast.Record) {
		r.State = holdfast.Pending
		r.Cycle++
		r.Failures, r.Tries, r.Reason, r.Due, r.Settled = 0, 0, "", time.Now(), time.Time{}
		if how.TTL > 0 {
			r.Message.TTL = how.TTL
		}
		if r.Message.TTL > 0 {
			r.Expires = r.Due.Add(r.Message.TTL)
		}
		r.History = append(r.History, holdfast.Entry{ID: id, Kind: holdfast.Requeued, State: r.State, At: r.Due, Cycle: r.Cycle, Actor: how.Actor})
	})
}

// Discard gives a message up that is not delivered.
func (m *Memory) Discard(ctx context.Context, id holdfast.ID, actor string) (holdfast.Record, error) {
	return m.decide(ctx, id, holdfast.VerbDiscard, func(r *holdfast.Record) {
		if r.Discarding = r.State == holdfast.Claimed; !r.Discarding {
			r.State, r.Reason, r.Settled, r.Due = holdfast.Discarded, holdfast.ReasonOperator, time.Now(), time.Time{}
		}
		r.History = append(r.History, holdfast.Entry{ID: id, Kind: holdfast.GivenUp, State: r.State, At: time.Now(), Cycle: r.Cycle, Actor: actor})
	})
}

// Reschedule says when a message is tried next.
func (m *Memory) Reschedule(ctx context.Context, id holdfast.ID, how holdfast.Reschedule) (holdfast.Record, error) {
	return m.decide(ctx, id, holdfast.VerbReschedule, func(r *holdfast.Record) {
		now := time.Now()
		r.Due = now.Add(how.In)
		r.History = append(r.History, holdfast.Entry{ID: id, Kind: holdfast.Rescheduled, State: r.State, At: now, Cycle: r.Cycle, Took: how.In, Actor: how.Actor})
	})
}

func (m *Memory) decide(ctx context.Context, id holdfast.ID, verb holdfast.Verb, edit func(r *holdfast.Record)) (holdfast.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return holdfast.Record{}, err
	}
	r := m.find(id)
	switch {
	case r == nil:
		return holdfast.Record{}, fmt.Errorf("decide %s: %w", id, holdfast.ErrNotFound)
	case !verb.From(r.State), r.Discarding && !r.State.Final():
		return holdfast.Record{}, fmt.Errorf("decide %s: it is %s: %w", id, r.State, holdfast.ErrState)
	}
	edit(r)
	return *r, nil
}

// Counts counts the records.
func (m *Memory) Counts() holdfast.Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := holdfast.Counts{Lanes: map[string]holdfast.LaneCounts{}, Inbox: int64(len(m.kept)), Received: int64(len(m.kept))}
	for _, r := range m.records {
		lane := c.Lanes[r.Message.Destination]
		switch r.State {
		case holdfast.Pending:
			c.Pending, lane.Pending = c.Pending+1, lane.Pending+1
		case holdfast.Claimed:
			c.Claimed++
		case holdfast.Parked:
			c.Parked, lane.Parked = c.Parked+1, lane.Parked+1
		case holdfast.Expired:
			c.Expired, lane.Expired = c.Expired+1, lane.Expired+1
		case holdfast.Delivered, holdfast.Discarded:
		}
		c.Lanes[r.Message.Destination] = lane
	}
	for _, k := range m.kept {
		if !k.done {
			c.Kept++
		}
	}
	return c
}

// CreateToken keeps a token.
func (m *Memory) CreateToken(ctx context.Context, name, role string, lasts time.Duration, hash [32]byte, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	if _, taken := m.tokens[name]; taken {
		return fmt.Errorf("create token %s: %w", name, holdfast.ErrConflict)
	}
	if m.tokens == nil {
		m.tokens = map[string]token{}
	}
	made := token{role: role, hash: hash, created: time.Now()}
	if lasts > 0 {
		made.until = made.created.Add(lasts)
	}
	m.tokens[name] = made
	return nil
}

// DeleteToken ends a token.
func (m *Memory) DeleteToken(ctx context.Context, name string, force bool, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	gone, ok := m.tokens[name]
	if !ok {
		return fmt.Errorf("delete token %s: %w", name, holdfast.ErrNotFound)
	}
	if !force && gone.admin() {
		admins := 0
		for _, t := range m.tokens {
			if t.admin() {
				admins++
			}
		}
		if admins == 1 {
			return fmt.Errorf("delete token %s: %w", name, people.ErrNoAdmin)
		}
	}
	delete(m.tokens, name)
	return nil
}

// FindToken finds a token by the hash of its secret.
func (m *Memory) FindToken(ctx context.Context, hash [32]byte) (name, role string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return "", "", err
	}
	for name, t := range m.tokens {
		if t.hash == hash && !t.over() {
			t.used = time.Now()
			m.tokens[name] = t
			return name, t.role, nil
		}
	}
	return "", "", fmt.Errorf("find token: %w", holdfast.ErrNotFound)
}

// EachToken lists the tokens by name.
func (m *Memory) EachToken(ctx context.Context, yield func(name, role string, created, lastUsed, until time.Time, ended bool)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.tokens)) {
		t := m.tokens[name]
		yield(name, t.role, t.created, t.used, t.until, t.over())
	}
	return nil
}
