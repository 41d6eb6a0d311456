package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// In returns the outbox and the inbox inside a transaction of the caller, which must be of the
// attached handle. What it enqueues and processes exists if the caller commits. The dispatcher
// learns of the commit within 100 ms; after Do it knows at once. If Open has opened the DB, callers
// have no transactions: then each call of the Tx fails.
//
// A call takes effect as a whole, or it returns an error and takes no effect, and the transaction
// goes on. Only a transaction that reads before it writes can meet SQLITE_BUSY_SNAPSHOT, as with
// any statement: begin it with a write (modernc: ?_txlock=immediate, mattn: ?_txlock=immediate) or
// use Do. A Tx of In holds no resources: it needs no end, and In may be called again for the same
// transaction.
func (db *DB) In(tx *sql.Tx) *Tx {
	t := &Tx{db: db, tx: tx, wtx: &writeTx{}, joined: true}
	t.wtx.begin(db.writer)
	s := &shared{tx: tx}
	if db.attached != nil {
		s.prepared = db.attached.prepared
	}
	t.wtx.conn, t.wtx.private = &conn{s}, newPrivate()
	return t
}

// private holds the names that a call in a caller's transaction has met. It must not touch the
// names of the writer. Nobody tells it whether the transaction commits, nor whether the caller
// rolls back to a savepoint between two calls.
type private struct {
	lanes    map[string]*lane
	routes   map[routeKey]route
	sources  map[string]int64
	entered  bool
	followed bool
}

func newPrivate() *private {
	return &private{lanes: map[string]*lane{}, routes: map[routeKey]route{}, sources: map[string]int64{}}
}

// forget drops the names of the previous call.
func (p *private) forget() {
	clear(p.lanes)
	clear(p.routes)
	clear(p.sources)
}

// enterJoined makes the store's first statement in a caller's transaction a write, and then looks
// at the file. Only from then on nobody else can change it.
func (t *Tx) enterJoined() error {
	if t.db.attached == nil {
		return errors.New("the store has a file of its own; use Do, or Attach to the caller's database")
	}
	if err := t.db.writer.takes(); err != nil || t.wtx.private.entered {
		return err
	}
	if _, err := t.wtx.exec(takeLock); err != nil {
		return err
	}
	var f fileInfo
	var level int64
	if _, err := t.wtx.conn.one(joinState, func(v []driver.Value) error {
		f.alone, f.created, f.followed, level = asInt(v[0]) == 1, asInt(v[1]), asInt(v[2]) == 1, asInt(v[3])
		return nil
	}); err != nil {
		return err
	}
	if err := t.db.durable(strconv.FormatInt(level, 10)); err != nil {
		return err
	}
	if f.alone {
		return fmt.Errorf("%w: a node has taken %s for itself", ErrOwned, t.db.path)
	}
	t.wtx.now = max(t.wtx.now, t.db.clock.now(), f.created+1)
	t.wtx.private.entered, t.wtx.private.followed = true, f.followed
	return nil
}

// part is a part of a transaction that can be undone alone.
type part struct {
	t  *Tx
	at mark
}

// mark is the state in memory of a transaction at the begin of a part.
type mark struct {
	moves, fresh, released, after, undo int
	expiry                              int64
	inboxed, kept, received, duplicates int64
	journaled                           bool
	last                                seen
}

func (tx *writeTx) mark() mark {
	return mark{
		len(tx.moves), len(tx.fresh), len(tx.released), len(tx.after), len(tx.undo), tx.expiry,
		tx.inboxed, tx.kept, tx.received, tx.duplicates, tx.journaled, tx.last,
	}
}

func (tx *writeTx) backTo(m mark) {
	for i := len(tx.undo) - 1; i >= m.undo; i-- {
		tx.undo[i]()
	}
	tx.moves, tx.fresh, tx.released = tx.moves[:m.moves], tx.fresh[:m.fresh], tx.released[:m.released]
	tx.after, tx.undo, tx.expiry = tx.after[:m.after], tx.undo[:min(m.undo, len(tx.undo))], m.expiry
	tx.inboxed, tx.kept, tx.received, tx.duplicates, tx.journaled = m.inboxed, m.kept, m.received, m.duplicates, m.journaled
	tx.last = m.last // another process may write those keys, so they are not known
}

// save begins a part.
func (t *Tx) save() (*part, error) {
	p := &part{t: t}
	t.sure = t.sure && !t.joined // the caller can use the transaction, too
	err := t.ours(func(tx *writeTx) error {
		if _, err := tx.exec(saveHere); err != nil {
			return err
		}
		p.at = tx.mark()
		if t.joined {
			tx.private.forget()
			if err := t.enterJoined(); err != nil {
				return errors.Join(err, p.back(tx))
			}
		}
		return nil
	})
	if err != nil && t.joined && !errors.Is(err, errIO) {
		t.fault = nil // nothing was done, so the same call may succeed later
	}
	return p, err
}

func (p *part) back(tx *writeTx) error {
	tx.backTo(p.at)
	if _, err := tx.exec(backToHere); err != nil {
		return err
	}
	_, err := tx.exec(releaseHere)
	return err
}

// undo undoes the part and returns err. If that fails, the whole transaction is over.
func (p *part) undo(err error) error {
	t := p.t
	if errors.Is(t.fault, errIO) {
		return err // what was written before the part cannot be trusted either
	}
	t.fault = nil
	if fault := t.ours(p.back); fault != nil {
		return errors.Join(err, fault)
	}
	return err
}

// keep makes the part belong to its transaction.
func (p *part) keep() error {
	return p.t.ours(func(tx *writeTx) error {
		_, err := tx.exec(releaseHere)
		return err
	})
}

// enqueueJoined is Enqueue in a transaction whose end the store does not learn.
func (t *Tx) enqueueJoined(k *enqueue) ([]holdfast.Receipt, error) {
	p, err := t.save()
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	err = t.ours(k.apply)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", p.undo(err))
	}
	if k.conflict != nil {
		return nil, p.undo(k.conflict)
	}
	if err := p.keep(); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	return k.receipts, nil
}

// Process runs h for a new message inside this transaction. The id, what h does and its response
// exist if the transaction commits. An error of h undoes what h did and nothing else. A zero
// retention means holdfast.DefaultInboxRetention.
func (t *Tx) Process(ctx context.Context, m holdfast.Message, retention time.Duration, h holdfast.Handler[*Tx]) (holdfast.Receipt, error) {
	if retention == 0 {
		retention = holdfast.DefaultInboxRetention
	}
	in, err := newIncoming(m)
	if err == nil {
		err = t.db.ready() // an id that is not salvaged yet would look new
	}
	if err != nil {
		return holdfast.Receipt{}, fmt.Errorf("process: %w", err)
	}
	p, err := t.save()
	if err != nil {
		return holdfast.Receipt{}, fmt.Errorf("process: %w", err)
	}
	returned := false
	defer func() {
		if !returned { // h panicked: the caller may recover and commit
			_ = p.undo(nil)
		}
	}()
	receipt, err := t.process(ctx, &in, retention, h)
	returned = true
	if err != nil {
		return holdfast.Receipt{}, p.undo(err)
	}
	return receipt, p.keep()
}

// process does the inbox's part of a transaction: it writes the id, runs the handler, and writes
// the response.
func (t *Tx) process(ctx context.Context, in *incoming, retention time.Duration, h holdfast.Handler[*Tx]) (holdfast.Receipt, error) {
	var v inboxEntry
	var seq int64
	if err := t.ours(func(tx *writeTx) (err error) {
		v, seq, err = in.arrive(tx, retention)
		return err
	}); err != nil {
		return holdfast.Receipt{}, err
	}
	if seq == 0 {
		return v.receipt, v.err
	}
	response, err := h(context.WithValue(ctx, insideKey{t.db}, true), t, in.m)
	t.sure = t.sure && !t.joined // the handler may know the caller's transaction
	if err != nil {
		return holdfast.Receipt{}, err
	}
	err = t.ours(func(tx *writeTx) error {
		if response == nil { // the row says so already
			return nil
		}
		_, err := tx.exec(setResponse, seq, response, answerHash(in.m.ID, response))
		return err
	})
	return holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: response}, err
}

// ProcessBatch implements holdfast.InboxStore. It uses one transaction, in which each message can
// be undone alone.
func (db *DB) ProcessBatch(ctx context.Context, ms []holdfast.Message, retention time.Duration, h holdfast.Handler[*Tx]) []holdfast.Result {
	results := make([]holdfast.Result, len(ms))
	began := time.Now()
	refusal := db.ready() // before the wait for a turn, as Process does
	if refusal == nil {
		refusal = db.room.refusal()
	}
	if refusal != nil {
		known, err := db.recognise(ctx, retention, refusal, ms...)
		for i := range ms {
			if err == nil {
				results[i] = known[i]
			} else {
				results[i].Err = fmt.Errorf("process: %w", err)
			}
			db.observeReceived(&ms[i], results[i].Receipt.Duplicate, 0, results[i].Err)
		}
		return results
	}
	err := db.Do(ctx, func(ctx context.Context, tx *Tx) error {
		for i := range ms {
			if err := ctx.Err(); err != nil {
				return err
			}
			receipt, err := tx.Process(ctx, ms[i], retention, h)
			if tx.fault != nil {
				return tx.fault
			}
			results[i] = holdfast.Result{Receipt: receipt, Err: err}
		}
		return nil
	})
	for i := range results {
		if err != nil && results[i].Err == nil {
			results[i] = holdfast.Result{Err: err}
		}
		db.observeReceived(&ms[i], results[i].Receipt.Duplicate, time.Since(began)/time.Duration(len(ms)), results[i].Err)
	}
	return results
}
