package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// arrival stores incoming messages: messages that wait to be fetched, or forwarded messages with
// their responses.
type arrival struct {
	list      []incoming
	responses [][]byte // nil: the messages wait to be fetched
	retention time.Duration
	results   []holdfast.Result
	bytes     int
}

func (k *arrival) size() (int, int) { return 2 * len(k.list), k.bytes }

func (k *arrival) apply(tx *writeTx) error {
	for i := range k.list {
		r, err := k.one(tx, i)
		if err != nil {
			return err
		}
		k.results[i] = r
	}
	return nil
}

func (k *arrival) one(tx *writeTx, i int) (holdfast.Result, error) {
	in := &k.list[i]
	source, err := tx.source(in.m.Source)
	if err != nil {
		return holdfast.Result{}, err
	}
	wait := k.responses == nil
	var response []byte
	if !wait {
		response = k.responses[i]
	}
	if wait && in.m.Attempt.Forgotten(k.retention) {
		// Only for a message that waits: one that was forwarded already is recorded in any case.
		if v, err := in.look(tx, source, k.retention); err != nil || v.known || v.err != nil {
			return tx.known(&v), err
		}
	}
	seq, err := tx.remember(in, source, wait, response, k.retention)
	if err != nil {
		return holdfast.Result{}, err
	}
	if seq == 0 {
		v, err := in.look(tx, source, k.retention)
		if err == nil && !v.known {
			err = fmt.Errorf("remember %s: neither new nor known", in.m.ID)
		}
		return tx.known(&v), err
	}
	tx.received++
	receipt := holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: response}
	if !wait {
		return holdfast.Result{Receipt: receipt}, nil
	}
	tx.kept++
	_, err = tx.exec(insertInboxBody, seq, string(in.m.Kind), in.m.Payload, in.headers, nullText(in.m.CorrelationID),
		keptHash(&in.m, asText(in.headers)))
	return holdfast.Result{Receipt: receipt}, err
}

// known returns the result for a message that is not new.
func (tx *writeTx) known(v *inboxEntry) holdfast.Result {
	if v.err != nil {
		return holdfast.Result{Err: v.err}
	}
	if v.known {
		tx.received++
		tx.duplicates++
	}
	return holdfast.Result{Receipt: v.receipt}
}

// Keep implements holdfast.InboxLog.
func (db *DB) Keep(ctx context.Context, retention time.Duration, ms ...holdfast.Message) ([]holdfast.Result, error) {
	if err := db.room.refusal(); err != nil {
		results, err := db.recognise(ctx, retention, err, ms...)
		db.count(results)
		return results, err
	}
	k := &arrival{retention: retention}
	return db.arrive(ctx, k, len(ms), func(i int) (holdfast.Message, []byte) { return ms[i], nil })
}

// Record implements holdfast.InboxLog.
func (db *DB) Record(ctx context.Context, retention time.Duration, done ...holdfast.Processed) ([]holdfast.Result, error) {
	k := &arrival{retention: retention, responses: make([][]byte, 0, len(done))}
	return db.arrive(ctx, k, len(done), func(i int) (holdfast.Message, []byte) { return done[i].Message, done[i].Response })
}

// arrive checks the messages and stores the valid ones. An invalid message gets its result and does
// not stop the others.
func (db *DB) arrive(ctx context.Context, k *arrival, n int, get func(i int) (holdfast.Message, []byte)) ([]holdfast.Result, error) {
	if err := db.ready(); err != nil {
		return nil, fmt.Errorf("store %d incoming messages: %w", n, err)
	}
	results := make([]holdfast.Result, n)
	at := make([]int, 0, n)
	for i := range n {
		m, response := get(i)
		in, err := newIncoming(m)
		if err != nil {
			results[i].Err = err
			continue
		}
		k.list, at = append(k.list, in), append(at, i)
		if k.responses != nil {
			k.responses = append(k.responses, response)
		}
		k.bytes += len(m.Payload) + len(response) + 128
	}
	if len(k.list) == 0 {
		return results, nil
	}
	k.results = make([]holdfast.Result, len(k.list))
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("store %d incoming messages: %w", len(k.list), err)
	}
	for i, r := range k.results {
		results[at[i]] = r
	}
	return results, nil
}

// recognise answers known messages on a full disk, so that at least their senders are done with
// them, and refuses the rest.
func (db *DB) recognise(ctx context.Context, retention time.Duration, refusal error, ms ...holdfast.Message) ([]holdfast.Result, error) {
	known, results, err := db.lookUp(ctx, retention, ms)
	for i := range results {
		if !known[i] {
			results[i].Err = refusal
		}
	}
	return results, err
}

// Known implements holdfast.InboxLog.
func (db *DB) Known(ctx context.Context, retention time.Duration, ms ...holdfast.Message) ([]bool, []holdfast.Result, error) {
	known, results, err := db.lookUp(ctx, retention, ms)
	db.count(results)
	refusal := db.room.refusal()
	if err != nil || refusal == nil {
		return known, results, err
	}
	for i := range known {
		// Before the effect: the caller is about to do something that could not be recorded, and
		// would do it again at each try.
		if !known[i] {
			known[i], results[i].Err = true, refusal
		}
	}
	return known, results, nil
}

func (db *DB) lookUp(ctx context.Context, retention time.Duration, ms []holdfast.Message) ([]bool, []holdfast.Result, error) {
	known, results := make([]bool, len(ms)), make([]holdfast.Result, len(ms))
	if err := db.readable(ctx); err != nil {
		return nil, nil, fmt.Errorf("look up incoming: %w", err)
	}
	if err := db.ready(); err != nil {
		return nil, nil, fmt.Errorf("look up incoming: %w", err)
	}
	for i := range ms {
		in, err := newIncoming(ms[i])
		if err != nil {
			known[i], results[i].Err = true, err
			continue
		}
		var hash, response []byte
		var answer any
		err = db.oftenOne(ctx, knownID, []any{in.m.Source, in.id}, &hash, &response, &answer)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if ms[i].Attempt.Forgotten(retention) {
				known[i], results[i].Err = true, fmt.Errorf("receive %s from %s: %w", ms[i].ID, ms[i].Source, holdfast.ErrTooOld)
			}
		case err != nil:
			return nil, nil, fmt.Errorf("look up incoming %s: %w", ms[i].ID, err)
		case len(hash) > 0 && !bytes.Equal(hash, in.hash): // without a hash, only the id was salvaged
			known[i], results[i].Err = true, fmt.Errorf("receive %s from %s: %w", ms[i].ID, ms[i].Source, holdfast.ErrConflict)
		default:
			known[i] = true
			results[i].Receipt = db.answered(&in.m, response, answer)
		}
	}
	return known, results, nil
}

// count counts the duplicates among the results.
func (db *DB) count(results []holdfast.Result) {
	for i := range results {
		if results[i].Receipt.Duplicate {
			db.received.Add(1)
			db.duplicates.Add(1)
		}
	}
}
