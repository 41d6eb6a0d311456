package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// part is the store's part in a transaction that runs a caller's statements. It locks only the rows
// that it writes: all other decisions about them are left to the store's own short transactions.
type part struct {
	session
	db     *DB
	over   atomic.Bool // the function that got the transaction has returned
	doomed error       // why it must not commit
	joined bool        // the caller commits it, and does not tell the store

	xid     string      // number of a transaction that the store commits
	turn    uint64      // the history that it belongs to
	table   int64       // the table that names belong to in that history
	ids     [][]byte    // the messages that it wrote
	arrived []int64     // the inbox rows that it wrote
	last    []statement // to run before the commit
	changed *ownTx      // changes that memory learns after the commit
	after   []func()
}

// undoFor bounds the work after an error, when the caller's ctx may have ended.
const undoFor = 5 * time.Second

// do runs statements of the store in the transaction, if it is still open.
func (p *part) do(ctx context.Context, list ...statement) error {
	switch {
	case p.db.gone.Load():
		return holdfast.ErrClosed
	case p.over.Load():
		return pgx.ErrTxClosed
	}
	return p.run(ctx, list...)
}

// enqueue writes messages in the transaction.
func (p *part) enqueue(ctx context.Context, ms []holdfast.Message) ([]holdfast.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(ms) == 0 {
		return nil, nil
	}
	k, err := p.db.newEnqueue(ctx, ms)
	if err == nil {
		err = p.still(k.turn)
	}
	if err == nil {
		err = p.enter(ctx)
	}
	if err != nil {
		return nil, said(ctx, "enqueue", err)
	}
	w := newInserts([]*enqueue{k})
	if err := p.insert(ctx, k, w); err != nil {
		return nil, errors.Join(said(ctx, "enqueue", err), p.takeBack(ctx, w))
	}
	if !p.joined {
		p.ids = append(p.ids, w.fresh()...)
		p.after = append(p.after, func() { k.tell(context.WithoutCancel(ctx), p.db.log) })
	}
	return k.receipts, nil
}

func (p *part) insert(ctx context.Context, k *enqueue, w *inserts) error {
	err := p.do(ctx, append([]statement{{insertMessages, w.args(), w.read}}, p.sameTables()...)...)
	if err == nil && len(w.new) != len(w.ids) {
		err = p.do(ctx, statement{findMessages, []any{w.old()}, w.readOld})
	}
	if err != nil {
		return p.db.unnamed(err)
	}
	// The names of another node's route are read on a connection of the store.
	names := func(route int32) (routeKey, error) { return p.db.routeNames(ctx, route) }
	if err := k.reply(w, names, func(int32) {}); err != nil || !p.joined || len(w.new) == 0 {
		return err
	}
	return p.do(ctx, statement{tallyMessages, []any{w.fresh()}, nil})
}

// still refuses numbers of another history than that of the transaction. A caller's own transaction
// cannot be checked.
func (p *part) still(turn uint64) error {
	if !p.joined && turn != p.turn {
		return errStale
	}
	return nil
}

// sameTables returns a check for the end of a write by numbers of names. A restore in place may
// have created the tables anew since the transaction began, and given the numbers to other names.
// The write holds locks on the tables, so that no restore can follow it. A transaction that fails
// the check must not commit, whatever its function does with the error. In a caller's own
// transaction the tables are locked from the first look.
func (p *part) sameTables() []statement {
	if p.joined || p.table == 0 {
		return nil
	}
	return []statement{{"SELECT " + readTable, nil, func(rows pgx.Rows) error {
		var now int64
		if err := rows.Scan(&now); err != nil {
			return err
		}
		err := p.db.sees(now, p.table)
		p.doomed = cmp.Or(p.doomed, err)
		return err
	}}}
}

// fresh returns the ids that were inserted.
func (w *inserts) fresh() [][]byte {
	list := make([][]byte, 0, len(w.new))
	for id := range w.new {
		list = append(list, []byte(id))
	}
	return list
}

// takeBack undoes an insert, whose rows nobody else has seen. A savepoint would do as well, but a
// transaction should not have many.
func (p *part) takeBack(ctx context.Context, w *inserts) error {
	if len(w.new) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
	defer cancel()
	if err := p.do(ctx, statement{takeBackMessages, []any{w.fresh()}, nil}); err != nil {
		p.doomed = fmt.Errorf("take messages back: %w", err)
	}
	return p.doomed
}

// said adds the action to an error of the database. If the server wants the transaction to be
// repeated, it asks whoever began it to do so.
func said(ctx context.Context, what string, err error) error {
	switch {
	case errors.Is(err, holdfast.ErrConflict), errors.Is(err, holdfast.ErrInvalid), errors.Is(err, holdfast.ErrTooOld):
		return err
	case again(err):
		return fmt.Errorf("%s: another transaction interfered; run the whole transaction again: %w", what, explainTo(ctx, err))
	}
	return fmt.Errorf("%s: %w", what, explainTo(ctx, err))
}

// conclude writes what is known only at the end, and checks that the transaction and the tables are
// still the ones it began with.
func (t *Tx) conclude(ctx context.Context) error {
	if len(t.ids) == 0 && len(t.arrived) == 0 && len(t.last) == 0 {
		return nil
	}
	o := &ownTx{db: t.db, ctx: context.WithoutCancel(ctx), owner: t.db.self.owner()}
	var xid string
	var table int64
	count := statement{conclude, []any{o.owner, t.ids, t.arrived}, func(rows pgx.Rows) error {
		var lane int32
		var pending, inbox int64
		if err := rows.Scan(&xid, &lane, &pending, &inbox, &table); err != nil {
			return err
		}
		if lane != 0 {
			o.count(lane, holdfast.LaneCounts{Pending: pending})
			o.wakes(lane)
		}
		o.countInbox(inbox, 0)
		return nil
	}}
	if err := t.do(ctx, append(t.last, count)...); err != nil {
		return fmt.Errorf("before the commit: %w", err)
	}
	if xid != t.xid {
		return errEnded
	}
	if err := t.db.sees(table, t.table); err != nil {
		return err
	}
	t.changed = o
	return nil
}

// proof returns rows that show that the transaction is committed. It uses only rows that still
// exist at the end, since the caller may have undone others.
func (p *part) proof() (list proof) {
	switch {
	case p.changed == nil:
	case p.changed.inbox > 0:
		list.rows = &proofRows{isArrived, []any{p.arrived}}
	case len(p.changed.counts) > 0:
		list.rows = &proofRows{isEnqueued, []any{p.ids}}
	}
	return list
}

// publish tells memory and other nodes what is now committed.
func (p *part) publish() {
	if p.changed != nil {
		p.changed.publish()
	}
	for _, f := range p.after {
		f()
	}
}
