package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// arriveMost bounds the weight of one transaction, in bytes.
const arriveMost = 4 << 20

// arrival is the work of storing incoming messages: either messages that are kept until they are
// fetched, or forwarded ones together with their responses.
type arrival struct {
	list      []incoming
	responses [][]byte // nil: the messages are kept
	retention time.Duration
	results   []holdfast.Result
	bytes     int
	turn      uint64 // the history in which the sources' numbers are valid

	fresh, duplicates int64
}

// Keep implements holdfast.InboxLog. Calls share transactions.
func (db *DB) Keep(ctx context.Context, retention time.Duration, ms ...holdfast.Message) ([]holdfast.Result, error) {
	return db.store(ctx, len(ms), func() *arrival { return &arrival{retention: retention} },
		func(i int) (holdfast.Message, []byte) { return ms[i], nil })
}

// Record implements holdfast.InboxLog. Calls share transactions.
func (db *DB) Record(ctx context.Context, retention time.Duration, done ...holdfast.Processed) ([]holdfast.Result, error) {
	return db.store(ctx, len(done), func() *arrival { return &arrival{retention: retention, responses: make([][]byte, 0, len(done))} },
		func(i int) (holdfast.Message, []byte) { return done[i].Message, done[i].Response })
}

// store checks the messages and stores the valid ones. An invalid one gets its error as its result,
// and does not stop the others.
func (db *DB) store(ctx context.Context, n int, empty func() *arrival, get func(i int) (holdfast.Message, []byte)) (results []holdfast.Result, err error) {
	if err = db.usable(ctx); err == nil {
		err = anew(func() (err error) {
			results, err = db.storeOnce(ctx, empty(), n, get)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("store %d incoming messages: %w", n, err)
	}
	return results, nil
}

func (db *DB) storeOnce(ctx context.Context, k *arrival, n int, get func(i int) (holdfast.Message, []byte)) ([]holdfast.Result, error) {
	k.turn, _ = db.past.is()
	results := make([]holdfast.Result, n)
	at := make([]int, 0, n)
	for i := range n {
		m, response := get(i)
		in, err := newIncoming(m)
		if err != nil {
			results[i].Err = err
			continue
		}
		if in.source, err = db.source(ctx, in.m.Source); err != nil {
			return nil, err
		}
		k.list, at = append(k.list, in), append(at, i)
		if k.responses != nil {
			k.responses = append(k.responses, response)
		}
		k.bytes += len(m.Payload) + len(response) + 256
	}
	if len(k.list) == 0 {
		return results, nil
	}
	if err := db.inbound.arrivals.do(ctx, k, k.bytes); err != nil {
		return nil, err
	}
	for i, r := range k.results {
		results[at[i]] = r
	}
	db.received.Add(k.fresh + k.duplicates)
	db.duplicates.Add(k.duplicates)
	return results, nil
}

// arriveAll writes the calls of one group. If a fault may be one call's, it writes each call by
// itself to find out.
func (db *DB) arriveAll(ctx context.Context, list []*call[*arrival]) {
	err := db.own(ctx, func(tx *ownTx) error {
		tx.impatient = true
		return tx.arrive(list)
	})
	if len(list) > 1 && blames(err) || isLocked(err) {
		byThemselves(db, list, db.arriveAlone)
		return
	}
	answer(list, err)
}

// arriveAlone writes one call, and waits for the locks that it needs.
func (db *DB) arriveAlone(ctx context.Context, list []*call[*arrival]) {
	answer(list, db.own(ctx, func(tx *ownTx) error { return tx.arrive(list) }))
}

// arrive stores the new messages and looks up the others.
func (tx *ownTx) arrive(calls []*call[*arrival]) error {
	w := &arrivals{}
	for _, c := range calls {
		if err := tx.still(c.work.turn); err != nil {
			return err
		}
		w.add(c.work)
	}
	if err := tx.run(w.insert()); err != nil {
		return err
	}
	if len(w.new) > 0 {
		tx.proof = proof{rows: &proofRows{isArrived, []any{w.new}}}
	}
	if len(w.new) < len(w.rows) {
		if err := tx.run(w.lookUp()); err != nil {
			return err
		}
	}
	at := 0
	for _, c := range calls {
		at = c.work.finish(tx, w, at)
	}
	return nil
}

func (tx *ownTx) run(s statement) error { return tx.query(s.sql, s.args, s.row) }

// arrivals are the rows of several calls, with one verdict each.
type arrivals struct {
	rows      []arriving
	verdicts  []verdict
	new       []int64 // rows that were inserted
	responses [][]byte
}

type arriving struct {
	in        *incoming
	waits     bool
	known     bool // it may have been here before and be forgotten: it is only looked up
	retention time.Duration
}

// add adds the rows of a call. A message that is to be kept is only looked up if it may have been
// known and forgotten. A forwarded one is recorded in any case.
func (w *arrivals) add(k *arrival) {
	waits := k.responses == nil
	for i := range k.list {
		in := &k.list[i]
		w.rows = append(w.rows, arriving{in, waits, waits && in.m.Attempt.Forgotten(k.retention), k.retention})
		var response []byte
		if !waits {
			response = k.responses[i]
		}
		w.responses = append(w.responses, response)
	}
	w.verdicts = make([]verdict, len(w.rows))
}

// insert makes the rows of the new messages.
func (w *arrivals) insert() statement {
	var sources []int32
	var ids, hashes, payloads, responses [][]byte
	var endpoints, kinds []string
	var kept []bool
	var memories []int64
	var headers, corr []*string
	var at []int
	for i, r := range w.rows {
		m := &r.in.m
		if r.known {
			continue
		}
		at = append(at, i)
		sources, ids, hashes = append(sources, r.in.source), append(ids, r.in.id), append(hashes, r.in.hash)
		endpoints, kept, memories = append(endpoints, m.Endpoint), append(kept, r.waits), append(memories, micros(m.Attempt.Memory(r.retention)))
		responses, kinds, headers = append(responses, w.responses[i]), append(kinds, string(m.Kind)), append(headers, r.in.headers)
		corr = append(corr, nullText(m.CorrelationID))
		var payload []byte // only for kept messages
		if r.waits {
			payload = m.Payload
		}
		payloads = append(payloads, payload)
	}
	args := []any{sources, ids, endpoints, hashes, kept, memories, responses, kinds, payloads, headers, corr}
	return statement{keepInbox, args, func(rows pgx.Rows) error {
		var n, seq int64
		err := rows.Scan(&n, &seq)
		w.verdicts[at[n-1]].seq, w.new = seq, append(w.new, seq)
		return err
	}}
}

// lookUp reads the rows of all messages that were not inserted.
func (w *arrivals) lookUp() statement {
	var sources []int32
	var ids [][]byte
	var at []int
	for i, r := range w.rows {
		if w.verdicts[i].seq == 0 {
			sources, ids, at = append(sources, r.in.source), append(ids, r.in.id), append(at, i)
		}
	}
	return statement{lookUpInbox, []any{sources, ids}, func(rows pgx.Rows) error {
		var n int64
		var hash, response []byte
		if err := rows.Scan(&n, &hash, &response); err != nil {
			return err
		}
		v := &w.verdicts[at[n-1]]
		v.known, v.hash, v.response = true, hash, response
		return nil
	}}
}

// finish makes the results of a call, whose rows begin at index at.
func (k *arrival) finish(tx *ownTx, w *arrivals, at int) (next int) {
	k.results = make([]holdfast.Result, len(k.list))
	k.fresh, k.duplicates = 0, 0
	for i := range k.list {
		in, v := &k.list[i], &w.verdicts[at+i]
		if v.seq != 0 {
			k.fresh++
			k.results[i].Receipt = holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: w.responses[at+i]}
			continue
		}
		k.results[i].Receipt, k.results[i].Err = in.answer(v, k.retention)
		if k.results[i].Err == nil {
			k.duplicates++
		}
	}
	if k.responses == nil {
		tx.countInbox(k.fresh, k.fresh)
	} else {
		tx.countInbox(k.fresh, 0)
	}
	return at + len(k.list)
}

// Known implements holdfast.InboxLog.
func (db *DB) Known(ctx context.Context, retention time.Duration, ms ...holdfast.Message) ([]bool, []holdfast.Result, error) {
	known, results := make([]bool, len(ms)), make([]holdfast.Result, len(ms))
	list, verdicts := make([]incoming, len(ms)), make([]verdict, len(ms))
	var names []string
	var ids [][]byte
	var at []int
	for i := range ms {
		var err error
		if list[i], err = newIncoming(ms[i]); err != nil {
			known[i], results[i].Err = true, err
			continue
		}
		names, ids, at = append(names, list[i].m.Source), append(ids, list[i].id), append(at, i)
	}
	if len(at) == 0 {
		return known, results, nil
	}
	if err := db.read(ctx, knownInbox, []any{names, ids}, func(rows pgx.Rows) error {
		var n int64
		var v verdict
		err := rows.Scan(&n, &v.hash, &v.response)
		v.known = true
		verdicts[at[n-1]] = v
		return err
	}); err != nil {
		return nil, nil, fmt.Errorf("look up %d incoming messages: %w", len(at), err)
	}
	for _, i := range at {
		if v := &verdicts[i]; v.known || list[i].m.Attempt.Forgotten(retention) {
			known[i] = true
			results[i].Receipt, results[i].Err = list[i].answer(v, retention)
		}
		if results[i].Receipt.Duplicate {
			db.received.Add(1)
			db.duplicates.Add(1)
		}
	}
	return known, results, nil
}
