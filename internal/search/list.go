package search

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

// Source is where messages are looked for. Numbers follow the order in which messages were accepted,
// but for Late.
type Source interface {
	// Find returns the numbers of up to limit messages before a number, newest first, that have the
	// destination and a state of the query. It returns where to go on, or 0 at the end, and how many
	// rows it has read.
	Find(ctx context.Context, before int64, limit int) (found []int64, next int64, read int, err error)
	// Records reads messages, newest first, and leaves out those that have another state by now.
	Records(ctx context.Context, seqs []int64) ([]holdfast.Record, error)
	// Texts returns the first holdfast.SearchedBytes of payloads.
	Texts(ctx context.Context, seqs []int64) (map[int64][]byte, error)
	// From returns the first message with that number or a higher one; 0: there is none.
	From(ctx context.Context, seq int64) (first int64, created time.Time, err error)
}

// Late is how much later than its number says a row may be there, and an older one before it.
const Late = time.Minute

const (
	textStep  = 50   // rows of a step if texts are read
	countStep = 2000 // numbers of a step if nothing else is read
)

// List returns a page of messages that the query selects.
func List(ctx context.Context, q *holdfast.Query, in Source) (p holdfast.Page, err error) {
	before := int64(math.MaxInt64)
	switch {
	case q.After != "":
		before, err = cursor.Parse(q.After)
	case !q.Until.IsZero():
		before, err = SeqAt(ctx, q.Until.Add(Late), in.From)
	}
	l := lister{q: q, in: in, page: &p, left: min(max(cmp.Or(q.Limit, 50), 1), 500)}
	if q.Count > 0 {
		l.left = q.Count
	}
	for bound := Begin(); err == nil; {
		var next int64
		var read int
		if next, read, err = l.step(ctx, before); err != nil || next == 0 {
			break
		}
		if before = next; l.left > 0 && !bound.Over(read) {
			continue
		}
		if p.Next = cursor.Format(next); l.left > 0 {
			_, p.LookedUntil, err = in.From(ctx, next)
		}
		break
	}
	return p, err
}

// lister fills a page.
type lister struct {
	q    *holdfast.Query
	in   Source
	page *holdfast.Page
	left int // messages that the page still takes
}

// step looks at some messages before a number, and returns where to go on, or 0 at the end.
func (l *lister) step(ctx context.Context, before int64) (next int64, read int, err error) {
	limit, counts := l.left, l.q.Count > 0
	switch {
	case l.q.Text != nil:
		limit = textStep
	case l.q.Searches():
		limit = Step
	case counts:
		limit = min(limit, countStep)
	}
	found, next, read, err := l.in.Find(ctx, before, limit)
	if err != nil {
		return 0, read, err
	}
	if counts && !l.q.Searches() {
		l.page.Count += len(found)
		l.left -= len(found)
		return next, read, nil
	}
	records, err := l.in.Records(ctx, found)
	if err != nil {
		return 0, read, err
	}
	texts, err := l.texts(ctx, records)
	for i := range records {
		r := &records[i]
		if !l.q.Since.IsZero() && r.Created.Before(l.q.Since.Add(-Late)) {
			return 0, read, err // all that follow are older, too
		}
		if !l.q.Selects(r) || l.q.Text != nil && !l.q.Text(r, texts[r.Seq]) {
			continue
		}
		if counts {
			l.page.Count++
		} else {
			l.page.Records = append(l.page.Records, *r)
		}
		if l.left--; l.left == 0 {
			return r.Seq, read, err
		}
	}
	return next, read, err
}

// texts reads the payloads of those that the rest of the query selects.
func (l *lister) texts(ctx context.Context, records []holdfast.Record) (map[int64][]byte, error) {
	if l.q.Text == nil {
		return nil, nil
	}
	var seqs []int64
	for i := range records {
		if l.q.Selects(&records[i]) {
			seqs = append(seqs, records[i].Seq)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	return l.in.Texts(ctx, seqs)
}

// SeqAt returns the first number of a row that was created then or later.
func SeqAt(ctx context.Context, at time.Time, from func(ctx context.Context, seq int64) (first int64, created time.Time, err error)) (int64, error) {
	low, high := int64(0), int64(math.MaxInt64)
	for low < high {
		middle := low + (high-low)/2
		switch seq, created, err := from(ctx, middle); {
		case err != nil:
			return 0, err
		case seq != 0 && created.Before(at):
			low = seq + 1
		default:
			high = middle
		}
	}
	return low, nil
}
