package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
)

// enqueueMost bounds the weight of one transaction, in bytes.
const enqueueMost = 4 << 20

// entry is one message on its way into the table.
type entry struct {
	m       holdfast.Message
	id      []byte
	route   route
	minted  bool  // the store made its id: nobody else can have it
	sourced bool  // the caller named the source
	bundle  int64 // the bundle that has its payload; 0: none
	seq     int64 // set once it is inserted
	headers *string
	retry   *string
}

// enqueue is the work of one Enqueue call.
type enqueue struct {
	entries  []entry
	receipts []holdfast.Receipt
	bytes    int
	turn     uint64 // the history in which the numbers of names are valid
}

// newEnqueue checks the messages and looks up their names, in separate transactions.
func (db *DB) newEnqueue(ctx context.Context, ms []holdfast.Message) (*enqueue, error) {
	k := &enqueue{entries: make([]entry, len(ms))}
	k.turn, _ = db.past.is()
	own := slices.Clone(ms)
	for i := range ms {
		k.entries[i].minted, k.entries[i].sourced = ms[i].ID == "", ms[i].Source != ""
	}
	if err := holdfast.Normalize(db.opts.Source, own); err != nil {
		return nil, err
	}
	for i := range own {
		if err := k.entries[i].fill(own[i]); err != nil {
			return nil, err
		}
		k.bytes += len(own[i].Payload) + 256
	}
	for i := range k.entries {
		e := &k.entries[i]
		var err error
		if e.route, err = db.route(ctx, e.names()); err != nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
	}
	return k, k.checkTwins()
}

func (e *entry) fill(m holdfast.Message) error {
	m.Attempt = holdfast.Attempt{}
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	e.m, e.id = m, idBytes(m.ID)
	if len(m.Headers) > 0 {
		b, err := json.Marshal(m.Headers)
		if err != nil {
			return fmt.Errorf("enqueue %s: encode headers: %w", m.ID, err)
		}
		text := string(b)
		e.headers = &text
	}
	if m.Retry != nil {
		b, err := json.Marshal(m.Retry)
		if err != nil {
			return fmt.Errorf("enqueue %s: encode retry policy: %w", m.ID, err)
		}
		text := string(b)
		e.retry = &text
	}
	return nil
}

func (e *entry) names() routeKey {
	return routeKey{e.m.Source, e.m.Destination, e.m.Endpoint, e.m.Kind}
}

// same reports whether a stored message with the entry's id is the same message. Headers and time
// limits do not count. The source counts only if the caller named it, because the store's own name
// may change between two tries.
func (e *entry) same(k routeKey, payload []byte) bool {
	return k.kind == e.m.Kind && k.destination == e.m.Destination && k.endpoint == e.m.Endpoint &&
		bytes.Equal(payload, e.m.Payload) && (!e.sourced || k.source == e.m.Source)
}

func (e *entry) conflict() error {
	return fmt.Errorf("enqueue %s: %w", e.m.ID, holdfast.ErrConflict)
}

// checkTwins finds an id that occurs twice in the call with different content.
func (k *enqueue) checkTwins() error {
	if len(k.entries) < 2 {
		return nil
	}
	first := make(map[holdfast.ID]*entry, len(k.entries))
	for i := range k.entries {
		e := &k.entries[i]
		if f := first[e.m.ID]; f == nil {
			first[e.m.ID] = e
		} else if !e.same(f.names(), f.m.Payload) {
			return e.conflict()
		}
	}
	return nil
}

// Enqueue implements holdfast.Enqueuer: it returns when the messages are committed. Concurrent
// calls share transactions. Use errors.Is to distinguish ErrConflict, ErrInvalid, ErrNested,
// ErrUnavailable and ErrDiskFull. A cancelled ctx takes the call back if its transaction has not
// begun.
func (db *DB) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	if err := db.usable(ctx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	var k *enqueue
	if err := anew(func() (err error) {
		if k, err = db.newEnqueue(ctx, ms); err != nil {
			return err
		}
		if err = db.enqueues.do(ctx, k, k.bytes); err == nil || errors.Is(err, holdfast.ErrConflict) {
			return err
		}
		return fmt.Errorf("enqueue: %w", err)
	}); err != nil {
		return nil, err
	}
	k.tell(ctx, db.log)
	return k.receipts, nil
}

// tell logs the new messages, once they are committed (OI-18).
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

// enqueueAll writes the calls of one group. A refused call is answered and left out, and the others
// are written again without it. If a fault may be one call's, each call is written by itself to
// find out.
func (db *DB) enqueueAll(ctx context.Context, list []*call[*enqueue]) {
	for len(list) > 0 {
		group, later := apart(list)
		refused, err := db.enqueueGroup(ctx, group, false)
		switch {
		case err == nil && len(refused) == 0:
			answer(group, nil)
		case err == nil:
			for _, c := range group {
				if why, ok := refused[c]; ok {
					c.done <- why
				} else {
					later = append(later, c)
				}
			}
		case len(group) > 1 && blames(err), isLocked(err) && !minted(group):
			// Calls with ids of ours wait for nobody. They go first, unless there are no others:
			// then one of them is at fault.
			free, others := group[:0:0], group[:0:0]
			for _, c := range group {
				if minted([]*call[*enqueue]{c}) {
					free = append(free, c)
				} else {
					others = append(others, c)
				}
			}
			if len(others) == 0 {
				free, others = nil, group
			}
			if len(free) > 0 {
				db.enqueueAll(ctx, free)
			}
			byThemselves(db, others, db.enqueueAlone)
		default:
			answer(group, err)
		}
		list = later
	}
}

// enqueueAlone writes one call, and waits for the locks that it needs.
func (db *DB) enqueueAlone(ctx context.Context, list []*call[*enqueue]) {
	refused, err := db.enqueueGroup(ctx, list, true)
	if why, ok := refused[list[0]]; ok {
		err = why
	}
	answer(list, err)
}

func answer[T any](list []*call[T], err error) {
	for _, c := range list {
		c.done <- err
	}
}

// apart leaves calls for later if they contain an id of an earlier call.
func apart(list []*call[*enqueue]) (group, later []*call[*enqueue]) {
	if len(list) == 1 {
		return list, nil
	}
	seen := map[holdfast.ID]bool{}
	for _, c := range list {
		twin := false
		for i := range c.work.entries {
			e := &c.work.entries[i]
			twin = twin || !e.minted && seen[e.m.ID]
		}
		if twin {
			later = append(later, c)
			continue
		}
		for i := range c.work.entries {
			if e := &c.work.entries[i]; !e.minted {
				seen[e.m.ID] = true
			}
		}
		group = append(group, c)
	}
	return group, later
}

// errRefused rolls back a group in which some calls are refused.
var errRefused = errors.New("some are refused")

func (db *DB) enqueueGroup(ctx context.Context, list []*call[*enqueue], patient bool) (refused map[*call[*enqueue]]error, err error) {
	turn, _ := db.past.is()
	refused = map[*call[*enqueue]]error{}
	for _, c := range list {
		if c.work.turn != turn {
			refused[c] = errStale
		}
	}
	if len(refused) > 0 {
		return refused, nil
	}
	if minted(list) {
		return nil, db.unnamed(db.enqueueMinted(ctx, list))
	}
	err = db.own(ctx, func(tx *ownTx) error {
		if err := tx.still(turn); err != nil {
			return err
		}
		tx.impatient = !patient
		refused = map[*call[*enqueue]]error{}
		works := make([]*enqueue, len(list))
		for i, c := range list {
			works[i] = c.work
		}
		conflicts, err := tx.insert(works)
		for i, why := range conflicts {
			if why != nil {
				refused[list[i]] = why
			}
		}
		if err == nil && len(refused) > 0 {
			return errRefused
		}
		return err
	})
	if errors.Is(err, errRefused) {
		return refused, nil
	}
	return nil, db.unnamed(err)
}

// unnamed handles a name whose row is gone, deleted by hand or by a partial restore, while memory
// still knows its number. The statement then inserts a NULL, which the table refuses. unnamed drops
// the names from memory, and the call is made once more.
func (db *DB) unnamed(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "23502" || e.ColumnName != "route" {
		return err
	}
	db.names.forget()
	return errStale
}

// minted reports whether no call of the group can be refused and no key needs a decision. Then one
// statement is enough.
func minted(list []*call[*enqueue]) bool {
	for _, c := range list {
		for i := range c.work.entries {
			if e := &c.work.entries[i]; !e.minted || e.m.OrderingKey != "" {
				return false
			}
		}
	}
	return true
}

func (db *DB) enqueueMinted(ctx context.Context, list []*call[*enqueue]) error {
	works := make([]*enqueue, len(list))
	for i, c := range list {
		works[i] = c.work
	}
	w := newInserts(works)
	for _, k := range works {
		k.receipts = make([]holdfast.Receipt, len(k.entries))
		for i := range k.entries {
			k.receipts[i] = holdfast.Receipt{ID: k.entries[i].m.ID, State: holdfast.Pending}
		}
	}
	return db.atOnce(ctx, works[0].turn, func(tx *ownTx) once {
		for _, lane := range w.lanes {
			tx.count(lane, holdfast.LaneCounts{Pending: 1})
			tx.wakes(lane)
		}
		_, known := db.past.now()
		return once{
			insertMinted, append(w.args(), tx.owner, known),
			func(rows pgx.Rows) error {
				var table int64
				if err := rows.Scan(&tx.xid, &table); err != nil {
					return err
				}
				return db.sees(table, known)
			},
			proof{rows: &proofRows{isEnqueued, []any{w.ids}}},
		}
	})
}

// insert writes the messages of several calls and makes their receipts. If conflicts[i] is not nil,
// call i must not be committed.
func (tx *ownTx) insert(works []*enqueue) (conflicts []error, err error) {
	w := newInserts(works)
	keys := w.keys(works)
	if err := tx.lockKeys(keys); err != nil {
		return nil, err
	}
	if err := tx.query(insertMessages, w.args(), w.read); err != nil {
		return nil, err
	}
	if len(w.new) > 0 {
		tx.proof = proof{rows: &proofRows{isEnqueued, []any{w.fresh()}}}
	}
	if len(w.new) != len(w.ids) {
		if err := tx.query(findMessages, []any{w.old()}, w.readOld); err != nil {
			return nil, err
		}
	}
	conflicts = make([]error, len(works))
	for i, k := range works {
		conflicts[i] = tx.receipts(k, w)
	}
	return conflicts, tx.placeKeys(keys)
}

// receipts makes the receipts of one call.
func (tx *ownTx) receipts(k *enqueue, w *inserts) error {
	return k.reply(w, tx.namesOf, func(lane int32) {
		tx.count(lane, holdfast.LaneCounts{Pending: 1})
		tx.wakes(lane)
	})
}

// reply makes the receipts of a call, and calls fresh for each new message.
func (k *enqueue) reply(w *inserts, namesOf func(route int32) (routeKey, error), fresh func(lane int32)) error {
	k.receipts = make([]holdfast.Receipt, len(k.entries))
	for i := range k.entries {
		e := &k.entries[i]
		r := holdfast.Receipt{ID: e.m.ID, State: holdfast.Pending}
		id := string(e.id)
		switch n, inserted := w.new[id]; {
		case inserted && !n.said: // the first with this id in the call
			e.seq, w.new[id] = n.seq, newMessage{n.seq, true}
			fresh(e.route.lane)
		case inserted:
			r.Duplicate = true
		default:
			old, ok := w.known[id]
			if !ok {
				return fmt.Errorf("enqueue %s: neither new nor known: %w", e.m.ID, holdfast.ErrUnavailable) // it was purged just now
			}
			names, err := namesOf(old.route)
			if err != nil {
				return err
			}
			if !e.same(names, old.payload) {
				return e.conflict()
			}
			r.State, r.Duplicate = old.state, true
		}
		k.receipts[i] = r
	}
	return nil
}
