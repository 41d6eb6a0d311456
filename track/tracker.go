package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

// looked is how many messages, and how many records, one page reads at most.
const looked = 2000

// pageOf is how many of them it reads at once.
const pageOf = 500

// Past keeps the records of purged messages; nodestore.Operations is one. Its methods may be called
// concurrently, and wait for no write.
type Past interface {
	// PastOperation returns the latest record of an id, or ErrNotFound.
	PastOperation(ctx context.Context, id holdfast.ID) (Operation, error)
	// PastOperations returns at most limit records with numbers below before, the highest number first.
	PastOperations(ctx context.Context, before int64, limit int) ([]Operation, error)
}

// Tracker finds operations. Its methods may be called concurrently.
type Tracker struct {
	Outbox holdfast.Outbox
	Past   Past // nil: nothing is known of purged messages
	// Category returns the category of a destination, and whether its messages are operations. It must not block.
	Category func(destination string) (c holdfast.Category, tracked bool)
	Node     string // the node's name, for people
}

// Status says what became of an operation (SF-22). An id that is not known, or not any more, is ErrNotFound.
func (t *Tracker) Status(ctx context.Context, id holdfast.ID) (Operation, error) {
	id, err := holdfast.ParseID(string(id)) // a UUID in any form is one value (SF-12)
	if err != nil {
		return Operation{}, fmt.Errorf("operation: %w: %w", holdfast.ErrInvalid, err)
	}
	r, err := t.Outbox.Get(ctx, id)
	if err == nil {
		if o, tracked := t.of(&r); tracked {
			return o, nil
		}
		err = holdfast.ErrNotFound
	} else if errors.Is(err, holdfast.ErrNotFound) && t.Past != nil {
		// A message that is purged between the two looks is found by the second.
		var o Operation
		if o, err = t.Past.PastOperation(ctx, id); err == nil {
			o.Node = t.Node
			return o, nil
		}
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return Operation{}, fmt.Errorf("operation %s: %w", id, holdfast.ErrNotFound)
	}
	return Operation{}, err
}

func (t *Tracker) of(r *holdfast.Record) (o Operation, tracked bool) {
	category, tracked := t.Category(r.Message.Destination)
	if !tracked {
		return o, false
	}
	o = Of(r)
	o.Category, o.Node = category, t.Node
	return o, true
}

// List returns one page, newest first. It reads a bounded number of rows, whatever the filter: a page may be
// short or empty and still have a next page.
func (t *Tracker) List(ctx context.Context, f Filter) (p Page, err error) {
	before := int64(0) // from the newest on
	if f.After != "" {
		if before, err = cursor.Parse(f.After); err != nil {
			return p, fmt.Errorf("list operations: %w", err)
		}
	} else if !f.To.IsZero() {
		if before, err = t.at(ctx, f.To.Add(unordered)); err != nil {
			return p, fmt.Errorf("list operations: %w", err)
		}
	}
	if f.Destination == "" && len(f.Among) == 1 {
		f.Destination = f.Among[0] // the outbox finds the messages of one without reading those of others
	}
	limit := min(max(cmp.Or(f.Limit, 50), 1), pageOf)
	// Messages come first: one that is purged between the two looks is found by the second.
	messages, fromM, err := t.messages(ctx, &f, before, limit)
	if err != nil {
		return p, fmt.Errorf("list operations: %w", err)
	}
	records, fromR, err := t.records(ctx, &f, before, limit)
	if err != nil {
		return p, fmt.Errorf("list operations: %w", err)
	}
	p.Operations = slices.Concat(messages, records)
	slices.SortStableFunc(p.Operations, func(a, b Operation) int { return cmp.Compare(b.Seq, a.Seq) })
	p.Operations = slices.CompactFunc(p.Operations, func(a, b Operation) bool { return a.Seq == b.Seq })
	// What lies below the place where either of the two stopped belongs to the next page.
	from := max(fromM, fromR)
	p.Operations = slices.DeleteFunc(p.Operations, func(o Operation) bool { return o.Seq < from })
	if len(p.Operations) > limit {
		p.Operations = p.Operations[:limit]
		from = p.Operations[limit-1].Seq
	}
	p.Next = cursor.Format(from)
	return p, nil
}

// messages returns the messages below before that the filter shows, and the number of the last one that it
// looked at; 0: there are no more.
func (t *Tracker) messages(ctx context.Context, f *Filter, before int64, limit int) (list []Operation, from int64, err error) {
	q := holdfast.Query{States: f.states(), Destination: f.Destination, Limit: pageOf, After: cursor.Format(before)}
	for read := 0; read < looked; {
		page, err := t.Outbox.List(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		read += max(len(page.Records), pageOf) // an empty page has cost as much as a full one
		for i := range page.Records {
			r := &page.Records[i]
			o, tracked := t.of(r)
			if tracked && f.shows(&o) {
				list = append(list, o)
			}
			if len(list) == limit {
				return list, r.Seq, nil
			}
			if r.Created.Before(f.From.Add(-unordered)) && !f.From.IsZero() {
				return list, 0, nil // those that follow are older
			}
		}
		if page.Next == "" {
			return list, 0, nil
		}
		q.After = page.Next
	}
	from, err = cursor.Parse(q.After)
	return list, from, err
}

// records is messages for the records of purged ones.
func (t *Tracker) records(ctx context.Context, f *Filter, before int64, limit int) (list []Operation, from int64, err error) {
	if t.Past == nil {
		return nil, 0, nil
	}
	for read := 0; read < looked; read += pageOf {
		page, err := t.Past.PastOperations(ctx, top(before), pageOf)
		if err != nil {
			return nil, 0, err
		}
		for i := range page {
			o := &page[i]
			o.Node, before = t.Node, o.Seq
			if f.shows(o) {
				list = append(list, *o)
			}
			if len(list) == limit {
				return list, before, nil
			}
			if o.Created.Before(f.From.Add(-unordered)) && !f.From.IsZero() {
				return list, 0, nil
			}
		}
		if len(page) < pageOf {
			return list, 0, nil
		}
	}
	return list, before, nil
}

// unordered is how far the order of numbers may differ from that of time: several nodes that share a database
// take their numbers before they commit.
const unordered = time.Minute

// at returns a number below which all operations were created before then. It looks at one row for each
// step, so that a list of last year begins as fast as one of today.
func (t *Tracker) at(ctx context.Context, then time.Time) (before int64, err error) {
	newest, err := t.newest(ctx, 0)
	if err != nil || newest == nil || newest.Created.Before(then) {
		return 0, err
	}
	low, high := int64(1), newest.Seq
	for low < high {
		middle := low + (high-low)/2 + 1
		o, err := t.newest(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case o == nil || o.Created.Before(then):
			low = middle
		default:
			high = o.Seq
		}
	}
	return low, nil
}

// newest returns the newest row below a number, operation or not. Nil: there is none.
func (t *Tracker) newest(ctx context.Context, before int64) (*Operation, error) {
	page, err := t.Outbox.List(ctx, holdfast.Query{Limit: 1, After: cursor.Format(before)})
	if err != nil {
		return nil, err
	}
	var found *Operation
	if len(page.Records) > 0 {
		o := Of(&page.Records[0])
		found = &o
	}
	if t.Past == nil {
		return found, nil
	}
	past, err := t.Past.PastOperations(ctx, top(before), 1)
	if len(past) > 0 && (found == nil || past[0].Seq > found.Seq) {
		found = &past[0]
	}
	return found, err
}

// top returns a number above all, for 0.
func top(before int64) int64 {
	if before == 0 {
		return 1<<63 - 1
	}
	return before
}
