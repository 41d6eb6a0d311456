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

// RowCheck is the result of comparing rows with the hashes of what was accepted. SQLite's own
// checks do not notice a changed payload.
type RowCheck struct {
	Messages int64 // messages that were read, with their payloads
	InboxIDs int64 // ids that were read, with the payload if the message waits to be fetched, else with the answer
	Broken   int64 // rows that are not what was accepted, and that nobody knows of yet
	Known    int64 // other such rows: a node has parked the message or dropped the answer, a salvage has marked it, or it is discarded; nobody sends it
	Rows     []BrokenRow
	Cut      bool // the time did not suffice for all rows
	Took     time.Duration
}

// brokenRows is the largest number of broken rows that are named.
const brokenRows = 20

// BrokenRow names a row that is not what was accepted.
type BrokenRow struct {
	ID          holdfast.ID
	Destination string // empty in the inbox
	Source      string
	Inbox       bool
	Answer      bool // in the inbox: the damage is in the answer that duplicates get
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

// BrokenError refuses a copy that has rows which are not what was accepted. It wraps ErrDamaged.
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
	known bool // the damage is no news: see RowCheck.Known
	sound bool
	BrokenRow
}

// newCheckedMessage compares a message with its hash. It fails if an index does not lead to the
// message.
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
	marked := v[18] != nil && v[13] == nil // the row has a body without a hash
	r.known = marked || r.state == holdfast.Discarded || holdfast.Reason(asText(v[17])) == holdfast.ReasonUndecodable
	return r, nil
}

// newCheckedInbox does the same for an id of the inbox. A message that waits to be fetched has a
// payload; any other may have an answer.
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
	r.known = v[12] == nil // a check or a salvage has dropped it before
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

// rowPages reads a page of a query's rows, those after a given row.
type rowPages func(ctx context.Context, q query, after int64, row func(v []any) error) error

// eachCheckedMessage reads all messages, a page at a time. It calls between after each page, and
// tells it whether another page follows.
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

// run reads all rows, or as many as it can until ctx ends.
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

// within is run with a time limit.
func (c *RowCheck) within(ctx context.Context, d time.Duration, read rowPages) error {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := c.run(bounded, read)
	if c.Cut = err != nil && bounded.Err() != nil && ctx.Err() == nil; c.Cut {
		return nil
	}
	return err
}

// pagesOf returns a rowPages that reads with database/sql.
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

// checkRows compares the rows with their hashes, on one connection.
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
