package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// inbound is the inbox's state in memory.
type inbound struct {
	arrivals   *group[*arrival]
	identity   atomic.Pointer[string]
	forgetting forgetting

	mu   sync.Mutex
	busy map[inboxKey]chan struct{} // closed when the handler in this process has ended
}

// inboxKey identifies a message in the inbox.
type inboxKey struct {
	source int32
	id     string
}

// incoming is a message on its way into the inbox, with its canonical id.
type incoming struct {
	m       holdfast.Message
	source  int32
	id      []byte
	hash    []byte
	headers *string
	turn    uint64 // the history in which the source's number is valid
}

func newIncoming(m holdfast.Message) (in incoming, err error) {
	if err := holdfast.NormalizeIncoming(&m); err != nil {
		return in, err
	}
	in = incoming{m: m, id: idBytes(m.ID), hash: m.ContentHash()}
	if len(m.Headers) > 0 {
		b, err := json.Marshal(m.Headers)
		if err != nil {
			return in, fmt.Errorf("encode headers: %w", err)
		}
		text := string(b)
		in.headers = &text
	}
	return in, nil
}

// incoming is newIncoming with the number of the source. A separate transaction finds or makes the
// number.
func (db *DB) incoming(ctx context.Context, m holdfast.Message) (in incoming, err error) {
	turn, _ := db.past.is()
	if in, err = newIncoming(m); err == nil {
		in.turn = turn
		in.source, err = db.source(ctx, in.m.Source)
	}
	return in, err
}

// verdict is what the inbox knows about an incoming message.
type verdict struct {
	seq      int64 // row of a new message; 0: it is not new
	known    bool
	hash     []byte
	response []byte
}

// find looks up the id.
func (in *incoming) find(v *verdict) statement {
	return statement{findInbox, []any{in.source, in.id}, func(rows pgx.Rows) error {
		v.known = true
		return rows.Scan(&v.hash, &v.response)
	}}
}

// arrive inserts the id if it is new, and looks it up. An id that may have been known and forgotten
// is only looked up.
func (in *incoming) arrive(v *verdict, retention time.Duration) []statement {
	if in.m.Attempt.Forgotten(retention) {
		return []statement{in.find(v)}
	}
	insert := statement{remember, []any{in.source, in.id, in.m.Endpoint, in.hash, micros(in.m.Attempt.Memory(retention))}, func(rows pgx.Rows) error {
		return rows.Scan(&v.seq)
	}}
	return []statement{insert, in.find(v)}
}

// answer returns the result of a message that is not new.
func (in *incoming) answer(v *verdict, retention time.Duration) (holdfast.Receipt, error) {
	switch {
	case v.known && len(v.hash) > 0 && !bytes.Equal(v.hash, in.hash): // without a hash, only the id was salvaged from the database that it came from
		return holdfast.Receipt{}, fmt.Errorf("receive %s from %s: %w", in.m.ID, in.m.Source, holdfast.ErrConflict)
	case v.known:
		return holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Duplicate: true, Response: v.response}, nil
	case in.m.Attempt.Forgotten(retention):
		return holdfast.Receipt{}, fmt.Errorf("receive %s from %s: first tried %s ago, ids are remembered for %s: %w",
			in.m.ID, in.m.Source, in.m.Attempt.FirstAgo.Round(time.Second), retention, holdfast.ErrTooOld)
	}
	return holdfast.Receipt{}, fmt.Errorf("receive %s from %s: neither new nor known: %w", in.m.ID, in.m.Source, holdfast.ErrUnavailable) // it was forgotten just now
}

// Process implements holdfast.InboxStore. The id, the handler's work and the response, in this
// order, share one commit. Concurrent duplicates, on this node or another, wait for each other and
// get the first response. If the database aborts the handler's transaction (a deadlock, a
// serialization failure), the handler runs again, a few times.
func (db *DB) Process(ctx context.Context, m holdfast.Message, retention time.Duration, h holdfast.Handler[*Tx]) (holdfast.Receipt, error) {
	if err := db.usable(ctx); err != nil {
		return holdfast.Receipt{}, fmt.Errorf("process: %w", err)
	}
	var in incoming
	var receipt holdfast.Receipt
	began, taken := time.Now(), false
	err := anew(func() (err error) {
		if in, err = db.incoming(ctx, m); err == nil {
			taken = true
			receipt, err = db.processAgain(ctx, &in, retention, h)
		}
		return err
	})
	if !taken {
		return receipt, said(ctx, "process", err)
	}
	if own, ok := errors.AsType[*callerError](err); ok {
		err = own.err
	} else if err != nil {
		err = said(ctx, "process", err)
	}
	db.observeReceived(&in.m, receipt.Duplicate, time.Since(began), err)
	return receipt, err
}

func (db *DB) processAgain(ctx context.Context, in *incoming, retention time.Duration, h holdfast.Handler[*Tx]) (holdfast.Receipt, error) {
	leave, err := db.inbound.take(ctx, in.key())
	if err != nil {
		return holdfast.Receipt{}, err
	}
	defer leave()
	for try := 1; ; try++ {
		receipt, err := db.processOnce(ctx, in, retention, h)
		if err == nil {
			return receipt, nil
		}
		if _, judged := errors.AsType[*holdfast.Failure](err); judged || try == deadlocks || !again(err) {
			return holdfast.Receipt{}, err
		}
		if err := pause(ctx, time.Millisecond+rand.N(time.Duration(try)*20*time.Millisecond)); err != nil { //nolint:gosec // no secret
			return holdfast.Receipt{}, err
		}
	}
}

func (db *DB) processOnce(ctx context.Context, in *incoming, retention time.Duration, h holdfast.Handler[*Tx]) (receipt holdfast.Receipt, err error) {
	var v verdict
	settled := errors.New("it needs no handler")
	var refusal error
	first := func() []statement {
		v = verdict{}
		return in.arrive(&v, retention)
	}
	err = db.transact(ctx, first, func(ctx context.Context, tx *Tx) error {
		if err := tx.still(in.turn); err != nil {
			return err
		}
		if v.seq == 0 {
			receipt, refusal = in.answer(&v, retention)
			return settled
		}
		tx.arrived = append(tx.arrived, v.seq)
		response, err := h(ctx, tx, in.m)
		if err == nil {
			tx.respond(v.seq, response)
			receipt = holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: response}
		}
		return err
	})
	switch {
	case errors.Is(err, settled):
		return receipt, refusal
	case err != nil:
		return holdfast.Receipt{}, err
	}
	return receipt, nil
}

// take waits until no other call of this process works on the message, so that repeats of a message
// with a slow handler do not hold a connection each.
func (b *inbound) take(ctx context.Context, k inboxKey) (leave func(), err error) {
	for {
		b.mu.Lock()
		busy, taken := b.busy[k]
		if !taken {
			if b.busy == nil {
				b.busy = map[inboxKey]chan struct{}{}
			}
			mine := make(chan struct{})
			b.busy[k] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				delete(b.busy, k)
				b.mu.Unlock()
				close(mine)
			}, nil
		}
		b.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (db *DB) observeReceived(m *holdfast.Message, duplicate bool, took time.Duration, err error) {
	if err == nil {
		db.received.Add(1)
		if duplicate {
			db.duplicates.Add(1)
		}
	}
	if o := db.opts.Observer; o != nil {
		o.ObserveReceived(holdfast.ReceivedInfo{Source: m.Source, Endpoint: m.Endpoint, Duplicate: duplicate, Took: took, Err: err})
	}
}

// Inbox returns an inbox that remembers ids in this database. Each call returns a new one, without
// handlers. Keep the one that has your handlers.
func (db *DB) Inbox() *holdfast.Inbox[*Tx] { return &holdfast.Inbox[*Tx]{Store: db} }
