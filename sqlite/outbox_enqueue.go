package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// entry is a message with its column values. The caller's goroutine makes it, so that the writer
// has less to do.
type entry struct {
	m       holdfast.Message
	id      driver.Value
	minted  bool // nobody else can have this id
	sourced bool // the caller named the source
	headers driver.Value
	retry   driver.Value
	hash    int64
	bundle  int64 // the bundle that has the payload; 0: none
}

// enqueue is the work of one Enqueue call: all of its messages or none.
type enqueue struct {
	entries  []entry
	receipts []holdfast.Receipt
	conflict error
	bytes    int
}

// newEnqueue checks and encodes the messages.
func (db *DB) newEnqueue(ms []holdfast.Message) (*enqueue, error) {
	if err := db.ready(); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	k := &enqueue{entries: make([]entry, len(ms))}
	own := make([]holdfast.Message, len(ms))
	copy(own, ms)
	if err := holdfast.Normalize(db.opts.Source, own); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	for i := range own {
		e := &k.entries[i]
		e.m, e.minted, e.sourced = own[i], ms[i].ID == "", ms[i].Source != ""
		if err := e.encode(); err != nil {
			return nil, fmt.Errorf("enqueue %s: %w", e.m.ID, err)
		}
		k.bytes += len(e.m.Payload) + 256
	}
	return k, nil
}

// encode makes the column values of a message in normal form.
func (e *entry) encode() error {
	e.m.Attempt = holdfast.Attempt{Cycle: 1}
	e.id = idValue(e.m.ID)
	if len(e.m.Headers) > 0 {
		b, err := json.Marshal(e.m.Headers)
		if err != nil {
			return fmt.Errorf("encode headers: %w", err)
		}
		e.headers = string(b)
	}
	if e.m.Retry != nil {
		b, err := json.Marshal(e.m.Retry)
		if err != nil {
			return fmt.Errorf("encode retry policy: %w", err)
		}
		e.retry = string(b)
	}
	if e.m.Payload == nil {
		e.m.Payload = []byte{}
	}
	e.hash = messageHash(&e.m, asText(e.headers), asText(e.retry))
	return nil
}

// Enqueue implements holdfast.Enqueuer. It returns when the messages are on disk. Calls share
// commits. Its errors wrap ErrDiskFull, ErrConflict, ErrInvalid or ErrNested. If ctx is cancelled
// before the work has begun, nothing is enqueued.
func (db *DB) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	k, err := db.newEnqueue(ms)
	if err != nil {
		return nil, err
	}
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if k.conflict != nil {
		return nil, k.conflict
	}
	k.tell(ctx, db.log)
	return k.receipts, nil
}

// tell logs the new messages, once they are on disk (OI-18).
func (k *enqueue) tell(ctx context.Context, log *slog.Logger) {
	if !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for i, r := range k.receipts {
		if m := &k.entries[i].m; !r.Duplicate {
			log.LogAttrs(ctx, slog.LevelInfo, "message enqueued", slog.String("message_id", string(r.ID)),
				slog.String("destination", m.Destination), slog.String("endpoint", m.Endpoint))
		}
	}
}

func (k *enqueue) size() (int, int) { return len(k.entries), k.bytes }

func (k *enqueue) apply(tx *writeTx) error {
	k.receipts, k.conflict = make([]holdfast.Receipt, 0, len(k.entries)), nil
	if len(k.entries) > 1 {
		// All or nothing without a savepoint, which would cost a quarter of the speed: look for
		// conflicts before the first insert.
		if err := k.check(tx); err != nil || k.conflict != nil {
			return err
		}
	}
	for i := range k.entries {
		r, err := tx.insert(&k.entries[i])
		if errors.Is(err, holdfast.ErrConflict) && len(k.entries) == 1 {
			k.conflict = err
			return nil
		}
		if err != nil {
			return err
		}
		k.receipts = append(k.receipts, r)
	}
	return nil
}

// check finds ids that are taken, in the table or twice within the call.
func (k *enqueue) check(tx *writeTx) error {
	seen := make(map[holdfast.ID]*entry, len(k.entries))
	for i := range k.entries {
		e := &k.entries[i]
		if e.minted {
			continue
		}
		if first := seen[e.m.ID]; first != nil && !e.same(&first.m) {
			k.conflict = fmt.Errorf("enqueue %s: %w", e.m.ID, holdfast.ErrConflict)
			return nil
		}
		seen[e.m.ID] = e
		if _, _, err := tx.lookup(e); errors.Is(err, holdfast.ErrConflict) {
			k.conflict = err
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// same reports whether a message with the entry's id is the same message. Headers and time limits
// do not count. The source counts only if the caller named it, because the store's own name may
// change between two tries.
func (e *entry) same(m *holdfast.Message) bool {
	return m.Kind == e.m.Kind && m.Destination == e.m.Destination && m.Endpoint == e.m.Endpoint &&
		bytes.Equal(m.Payload, e.m.Payload) && (!e.sourced || m.Source == e.m.Source)
}

// insert writes one message, or finds the message that has its id.
func (tx *writeTx) insert(e *entry) (holdfast.Receipt, error) {
	m := &e.m
	r, err := tx.route(m)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	p, err := tx.place(m, r.lane)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	seq, err := tx.insertRow(e.id, r.route, r.lane.id, p.due, p.now, nullInstant(p.expires), nullText(m.OrderingKey), asBit(p.blocked))
	if err != nil {
		return holdfast.Receipt{}, err
	}
	if seq == 0 {
		receipt, found, err := tx.lookup(e)
		if err == nil && !found {
			err = fmt.Errorf("insert message %s: neither new nor known", m.ID)
		}
		return receipt, err
	}
	tx.wrote(&tx.first.message, &tx.last.message, seq)
	var ttl, start driver.Value
	if m.TTL > 0 {
		ttl = micros(m.TTL)
	}
	if p.blocked && m.Delay > 0 {
		start = p.start
	}
	var bundle driver.Value
	payload := m.Payload
	if e.bundle != 0 {
		bundle, payload = e.bundle, []byte{}
	}
	if _, err := tx.exec(insertBody, seq, bundle, payload, e.headers, nullText(m.CorrelationID), e.retry, ttl, start, e.hash); err != nil {
		return holdfast.Receipt{}, err
	}
	if tx.followed() {
		ev := event{message: seq, kind: holdfast.Enqueued, state: holdfast.Pending, cycle: 1}
		if err := tx.event(&ev); err != nil {
			return holdfast.Receipt{}, err
		}
	}
	tx.moves = append(tx.moves, change{r.lane, none, holdfast.Pending})
	tx.expires(p.expires)
	f := freshRow{lane: r.lane, due: p.due}
	if p.due == p.now {
		c := holdfast.Claim{Message: *m, Seq: seq, Expires: -1, Created: tx.w.db.clock.wall(p.now)}
		if m.TTL > 0 {
			c.Expires = time.Duration(p.expires) // an instant, until the claim is leased
		}
		f.claim = &c
	}
	tx.fresh = append(tx.fresh, f)
	return holdfast.Receipt{ID: m.ID, State: holdfast.Pending}, nil
}

// insertRow uses the next number that no message and no notification has. After a salvage or a
// copy, the message of the last notification may be missing.
func (tx *writeTx) insertRow(args ...driver.Value) (int64, error) {
	taken := tx.w.db.taken.Load()
	if taken == 0 {
		return tx.conn.insert(insertMessage, args...)
	}
	seq, err := tx.conn.insert(insertAbove, append(args, taken)...)
	if seq > taken {
		tx.after = append(tx.after, func() { tx.w.db.taken.CompareAndSwap(taken, 0) })
	}
	return seq, err
}

// place is the position of a new message in its lane.
type place struct {
	now, start   int64 // start: earliest first try
	due, expires int64
	blocked      bool
}

func (tx *writeTx) place(m *holdfast.Message, l *lane) (p place, err error) {
	p.now = tx.tick()
	p.start, p.expires = after(p.now, m.Delay), never
	if m.TTL > 0 {
		p.expires = after(p.start, m.TTL)
	}
	p.due = min(p.start, p.expires)
	if m.OrderingKey == "" {
		return p, nil
	}
	if p.blocked, err = tx.keyIsBlocked(l, m.OrderingKey, never); p.blocked {
		p.due = p.expires
	}
	return p, err
}

// lookup finds the message that has the entry's id. Other content is ErrConflict.
func (tx *writeTx) lookup(e *entry) (r holdfast.Receipt, found bool, err error) {
	var seq, lane int64
	var state holdfast.State
	m := holdfast.Message{Destination: e.m.Destination}
	found, err = tx.conn.one(findMessage, func(v []driver.Value) error {
		seq, lane, state = asInt(v[0]), asInt(v[1]), holdfast.State(asInt(v[2]))
		m.Source, m.Kind, m.Endpoint = asText(v[3]), holdfast.Kind(asText(v[4])), asText(v[5])
		return nil
	}, e.id)
	if err != nil || !found {
		return r, found, err
	}
	l, err := tx.lane(e.m.Destination)
	if err != nil {
		return r, true, err
	}
	lost := true
	if _, err = tx.conn.one(findBody, func(v []driver.Value) error {
		m.Payload, lost = asBytes(v[0]), v[1] == nil
		return nil
	}, seq); err != nil {
		return r, true, err
	}
	// If the content of a message was lost with a damaged file, the id decides.
	if !lost && (l.id != lane || !e.same(&m)) {
		return r, true, fmt.Errorf("enqueue %s: %w", e.m.ID, holdfast.ErrConflict)
	}
	return holdfast.Receipt{ID: e.m.ID, State: tx.w.db.lanes.shown(seq, state), Duplicate: true}, true, nil
}

// shown returns the state that people see: a message that is leased in memory is claimed.
func (ls *lanes) shown(seq int64, state holdfast.State) holdfast.State {
	if state != holdfast.Pending {
		return state
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, ok := ls.leases[seq]; ok {
		return holdfast.Claimed
	}
	return state
}

// idValue returns an id as it is stored: a UUID as its 16 bytes, which no text equals.
func idValue(id holdfast.ID) driver.Value {
	if u, ok := id.UUID(); ok {
		return u[:]
	}
	return string(id)
}

func idFrom(v driver.Value) holdfast.ID {
	switch v := v.(type) {
	case []byte:
		var u [16]byte
		copy(u[:], v)
		return holdfast.IDOf(u)
	case string:
		return holdfast.ID(strings.Clone(v))
	}
	return ""
}
