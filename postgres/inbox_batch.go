package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// batch is a set of messages whose handlers share a transaction. It first takes all their ids, in
// one order, so that no two transactions wait for each other. It gives back the ids whose handlers
// fail.
type batch struct {
	handler   holdfast.Handler[*Tx]
	retention time.Duration
	ms        []holdfast.Message
	list      []incoming // of the valid messages
	at        []int      // their positions in ms
	results   []holdfast.Result

	// The fields below belong to one attempt of the transaction.
	found *arrivals
	rows  map[inboxKey]*batchRow
}

// batchRow is a row of this transaction, which is kept if a handler succeeds.
type batchRow struct {
	verdict
	done bool
}

// errNothing means that there is nothing to commit.
var errNothing = errors.New("nothing to commit")

// ProcessBatch implements holdfast.InboxStore. It uses one transaction, in which each message
// succeeds or fails by itself.
func (db *DB) ProcessBatch(ctx context.Context, ms []holdfast.Message, retention time.Duration, h holdfast.Handler[*Tx]) []holdfast.Result {
	b := &batch{handler: h, retention: retention, ms: ms, results: make([]holdfast.Result, len(ms))}
	began := time.Now()
	err := db.usable(ctx)
	if err == nil {
		err = anew(func() error { return b.try(ctx, db) })
	}
	if own, ok := errors.AsType[*callerError](err); ok {
		err = own.err
	} else if err != nil {
		err = said(ctx, "process", err)
	}
	for i := range b.results {
		r := &b.results[i]
		if err != nil && !errors.Is(err, errNothing) && r.Err == nil {
			*r = holdfast.Result{Err: err}
		}
		db.observeReceived(&ms[i], r.Receipt.Duplicate, time.Since(began)/time.Duration(len(ms)), r.Err)
	}
	return b.results
}

func (b *batch) try(ctx context.Context, db *DB) error {
	b.list, b.at = nil, nil
	if err := b.prepare(ctx, db); err != nil || len(b.list) == 0 {
		return err
	}
	return db.transact(ctx, b.arrive, b.run)
}

func (b *batch) prepare(ctx context.Context, db *DB) error {
	for i := range b.ms {
		in, err := db.incoming(ctx, b.ms[i])
		switch {
		case errors.Is(err, holdfast.ErrInvalid):
			b.results[i].Err = said(ctx, "process", err)
		case err != nil:
			return err
		default:
			b.list, b.at = append(b.list, in), append(b.at, i)
		}
	}
	return nil
}

// arrive takes the ids that are new, and looks up all of them.
func (b *batch) arrive() []statement {
	w := &arrivals{responses: make([][]byte, len(b.list)), verdicts: make([]verdict, len(b.list))}
	for i := range b.list {
		in := &b.list[i]
		w.rows = append(w.rows, arriving{in, false, in.m.Attempt.Forgotten(b.retention), b.retention})
	}
	b.found, b.rows = w, map[inboxKey]*batchRow{}
	return []statement{w.insert(), w.lookUp()}
}

func (b *batch) run(ctx context.Context, tx *Tx) error {
	for i := range b.list {
		if err := tx.still(b.list[i].turn); err != nil {
			return err
		}
		if v := b.found.verdicts[i]; v.seq != 0 {
			b.rows[b.list[i].key()] = &batchRow{verdict: v}
		}
	}
	for i := range b.list {
		if err := ctx.Err(); err != nil {
			return err
		}
		receipt, err := b.one(ctx, tx, i)
		if tx.doomed != nil {
			return tx.doomed
		}
		b.results[b.at[i]] = holdfast.Result{Receipt: receipt, Err: err}
	}
	var failed []int64
	for _, row := range b.rows {
		if !row.done {
			failed = append(failed, row.seq)
		}
	}
	switch {
	case len(failed) == len(b.rows):
		return errNothing
	case len(failed) > 0:
		tx.last = append(tx.last, statement{dropInbox, []any{failed}, nil})
	}
	return nil
}

// one processes one message.
func (b *batch) one(ctx context.Context, tx *Tx, i int) (holdfast.Receipt, error) {
	in := &b.list[i]
	row, ours := b.rows[in.key()]
	switch {
	case !ours:
		return in.answer(&b.found.verdicts[i], b.retention)
	case row.done:
		return in.answer(&row.verdict, b.retention)
	}
	if err := tx.do(ctx, statement{sql: savePart}); err != nil {
		tx.doomed = said(ctx, "process", err)
		return holdfast.Receipt{}, tx.doomed
	}
	var more []statement
	if string(row.hash) != string(in.hash) {
		more = append(more, statement{setContent, []any{row.seq, in.m.Endpoint, in.hash, micros(in.m.Attempt.Memory(b.retention))}, nil})
	}
	response, err := tx.saved(ctx, in, row.seq, func(ctx context.Context, m holdfast.Message) ([]byte, error) { return b.handler(ctx, tx, m) }, more...)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	row.done, row.known, row.hash, row.response = true, true, in.hash, response
	return holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: response}, nil
}

func (in *incoming) key() inboxKey { return inboxKey{in.source, string(in.id)} }
