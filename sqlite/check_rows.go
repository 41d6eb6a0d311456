package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// RowCheck is what became of comparing rows with the hashes of what was accepted.
// SQLite's own checks do not see a payload that has changed.
type RowCheck struct {
	Messages int64 // read, with their payloads
	InboxIDs int64 // read, with the payloads of those that wait to be fetched, and the answers of the others
	Broken   int64 // are not what was accepted, and nobody has been told yet
	Known    int64 // nor are these, which a node has parked or dropped for it or a salvage has marked, or which are discarded: nobody sends them
	Rows     []BrokenRow
	Cut      bool // the time did not suffice for all
	Took     time.Duration
}

// brokenRows is how many broken rows are named.
const brokenRows = 20

// BrokenRow names one that is not what was accepted.
type BrokenRow struct {
	ID          holdfast.ID
	Destination string // empty in the inbox
	Source      string
	Inbox       bool
	Answer      bool // in the inbox: the answer that duplicates get
}

func (r BrokenRow) String() string {
	if r.Answer {
		return fmt.Sprintf("the answer to message %s of %s", r.ID, r.Source)
	}
	if r.Inbox {
		return fmt.Sprintf("message %s of %s in the inbox", r.ID, r.Source)
	}
	return fmt.Sprintf("message %s for %s", r.ID, r.Destination)
}

// BrokenError refuses a copy in which rows are not what was accepted. It is
// ErrDamaged.
type BrokenError struct{ Check RowCheck }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%v: %d of %d rows are not what was accepted, by their hashes, the first of them %s",
		ErrDamaged, e.Check.Broken, e.Check.Messages+e.Check.InboxIDs, e.Check.Rows[0])
}

func (e *BrokenError) Unwrap() error { return ErrDamaged }

// checkedRow is a row of checkedMessages or checkedInbox.
type checkedRow struct {
	seq   int64
	state holdfast.State
	known bool // its damage is no news: RowCheck.Known
	sound bool
	BrokenRow
}

// newCheckedMessage compares a message with its hash, and says whether the
// indexes lead to it.
func newCheckedMessage(v []any) (r checkedRow, err error) {
	r = checkedRow{seq: asInt(v[0]), state: holdfast.State(asInt(v[2])), BrokenRow: BrokenRow{ID: idFrom(v[1]), Source: asText(v[3]), Destination: asText(v[6])}}
	for i, index := range []string{"ids", "states", "ordering keys"} {
		if found, ok := v[14+i].(int64); !ok || found != r.seq {
			return r, fmt.Errorf("%w: the index of %s does not lead to message row %d", ErrDamaged, index, r.seq)
		}
	}
	m := holdfast.Message{
		ID: r.ID, Source: r.Source, Kind: holdfast.Kind(asText(v[4])), Endpoint: asText(v[5]), Destination: r.Destination, OrderingKey: asText(v[7]),
		Payload: asBytes(v[8]), CorrelationID: asText(v[10]), TTL: duration(asInt(v[12])),
	}
	hash, ok := v[13].(int64)
	r.sound = ok && hash == messageHash(&m, asText(v[9]), asText(v[11]))
	marked := v[18] != nil && v[13] == nil // it has a body, without a hash
	r.known = marked || r.state == holdfast.Discarded || holdfast.Reason(asText(v[17])) == holdfast.ReasonUndecodable
	return r, nil
}

// newCheckedInbox does the same with an id of the inbox: one that waits to be fetched has
// a payload, any other one may have an answer.
func newCheckedInbox(v []any) (r checkedRow, err error) {
	r = checkedRow{seq: asInt(v[0]), BrokenRow: BrokenRow{ID: idFrom(v[5]), Source: asText(v[4]), Inbox: true}}
	if asInt(v[1]) != r.seq || asInt(v[2]) != r.seq {
		return r, fmt.Errorf("%w: an index of the inbox does not lead to its row %d", ErrDamaged, r.seq)
	}
	m := holdfast.Message{
		ID: r.ID, Source: r.Source, Endpoint: asText(v[6]), Kind: holdfast.Kind(asText(v[7])), Payload: asBytes(v[8]), CorrelationID: asText(v[10]),
	}
	if asInt(v[3]) == 1 {
		r.sound = keptIntact(&m, asText(v[9]), v[11])
		return r, nil
	}
	r.sound = answerIntact(r.ID, asBytes(v[12]), v[13])
	r.known = v[12] == nil // dropped before, or by a salvage
	r.Answer = true
	return r, nil
}

// take counts a row.
func (c *RowCheck) take(r *checkedRow) {
	switch {
	case r.sound:
	case r.known:
		c.Known++
	default:
		if c.Broken++; len(c.Rows) < brokenRows {
			c.Rows = append(c.Rows, r.BrokenRow)
		}
	}
}

// rowPages reads a page of rows of a query, those after one.
type rowPages func(ctx context.Context, q query, after int64, row func(v []any) error) error

// eachCheckedMessage reads all messages, a page at a time; between is called after
// each, and told whether another follows.
func eachCheckedMessage(ctx context.Context, read rowPages, row func(r *checkedRow), between func(more bool) error) error {
	return eachPage(ctx, read, checkedMessages, newCheckedMessage, row, between)
}

func eachCheckedInbox(ctx context.Context, read rowPages, row func(r *checkedRow), between func(more bool) error) error {
	return eachPage(ctx, read, checkedInbox, newCheckedInbox, row, between)
}

func eachPage(ctx context.Context, read rowPages, q query, judge func([]any) (checkedRow, error), row func(*checkedRow), between func(more bool) error) error {
	for after, more := int64(0), true; more; {
		n := 0
		if err := read(ctx, q, after, func(v []any) error {
			r, err := judge(v)
			n, after = n+1, r.seq
			if err == nil {
				row(&r)
			}
			return err
		}); err != nil {
			return err
		}
		more = n == checkPage
		if err := between(more); err != nil {
			return err
		}
	}
	return nil
}

// run reads all rows, or as many as a context that ends leaves time for.
func (c *RowCheck) run(ctx context.Context, read rowPages) error {
	began := time.Now()
	defer func() { c.Took = time.Since(began) }()
	goOn := func(more bool) error {
		if more && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	err := eachCheckedMessage(ctx, read, func(r *checkedRow) { c.Messages++; c.take(r) }, goOn)
	if err == nil {
		err = eachCheckedInbox(ctx, read, func(r *checkedRow) { c.InboxIDs++; c.take(r) }, goOn)
	}
	return err
}

// within is run for so long.
func (c *RowCheck) within(ctx context.Context, d time.Duration, read rowPages) error {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := c.run(bounded, read)
	if c.Cut = err != nil && bounded.Err() != nil && ctx.Err() == nil; c.Cut {
		return nil
	}
	return err
}

// pagesOf reads with database/sql.
func pagesOf(ask func(ctx context.Context, q query, args ...any) (*sql.Rows, error)) rowPages {
	return func(ctx context.Context, q query, after int64, row func(v []any) error) (err error) {
		rows, err := ask(ctx, q, after, checkPage)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		for rows.Next() {
			v, err := values(rows, len(columns))
			if err == nil {
				err = row(v)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// checkRows reads them on one connection.
func (c *conn) checkRows(ctx context.Context) (r RowCheck, err error) {
	err = r.run(ctx, func(_ context.Context, q query, after int64, row func(v []any) error) error {
		return c.rows(queries[q], func(v []driver.Value) error {
			given := make([]any, len(v))
			for i := range v {
				given[i] = v[i]
			}
			return row(given)
		}, after, int64(checkPage))
	})
	return r, err
}
