package keyring

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Value is one sealed value of a Holder.
type Value struct {
	Place  string // key of its row within the holder, without "/"; values are sorted by it
	At     Context
	Sealed string
	Err    error // why At is not known; nil: it is
}

// Change replaces a sealed value by another one.
type Change struct {
	Value

	New string
}

// Holder is a feature that stores sealed values. Its methods may be called concurrently.
type Holder interface {
	// Table returns the table in the Context of all its values.
	Table() string
	// Values returns the sealed values of the next rows behind a place ("" is the beginning), sorted by
	// place, those of about limit rows. All values of a row are on one page. None: there are no more.
	Values(ctx context.Context, after string, limit int) ([]Value, error)
	// Replace makes changes, those of a row in one transaction. A value that is not Sealed any more, or
	// is gone, is left alone: somebody has given another secret meanwhile.
	Replace(ctx context.Context, changes []Change) error
}

// Problem is a sealed value that does not open.
type Problem struct {
	Where string // table and place
	Why   string
}

// Page is what Rotate has done.
type Page struct {
	Looked, Resealed int
	Next             string // where to go on; empty: all values were looked at
	Problems         []Problem
}

// Rotate seals the values of about limit rows with the newest key, those behind a place that an
// earlier page has returned. A value that does not open is left as it is, and reported. A page may be
// repeated; values under the newest key are not touched. The error may be ErrNoKey.
func (r *Ring) Rotate(ctx context.Context, holders []Holder, after string, limit int) (p Page, err error) {
	if r.Newest() == "" {
		return p, ErrNoKey
	}
	h, values, err := next(ctx, holders, after, limit)
	if err != nil || len(values) == 0 {
		return p, err
	}
	var changes []Change
	for _, v := range values {
		plain, err := r.openValue(v)
		switch {
		case err != nil:
			p.Problems = append(p.Problems, v.problem(err))
		case KeyOf(v.Sealed) != r.Newest():
			sealed, err := r.Seal(v.At, plain)
			if err != nil {
				return p, err
			}
			changes = append(changes, Change{v, sealed})
		}
	}
	if len(changes) > 0 {
		if err := h.Replace(ctx, changes); err != nil {
			return p, fmt.Errorf("replace secrets of table %s behind %q: %w", h.Table(), after, err)
		}
	}
	p.Looked, p.Resealed, p.Next = len(values), len(changes), values[len(values)-1].after()
	return p, nil
}

// Census is what is sealed with which key.
type Census struct {
	Values   map[string]int // by id of the key
	Broken   int            // values that do not open
	Problems []Problem      // the first of them
}

const (
	pageRows     = 200 // of a census
	mostProblems = 100 // that a census lists
)

// Count opens each value.
func (r *Ring) Count(ctx context.Context, holders []Holder) (Census, error) {
	c, after := Census{Values: map[string]int{}}, ""
	for {
		_, values, err := next(ctx, holders, after, pageRows)
		if err != nil || len(values) == 0 {
			return c, err
		}
		for _, v := range values {
			c.Values[KeyOf(v.Sealed)]++
			if _, err := r.openValue(v); err != nil {
				if c.Broken++; len(c.Problems) < mostProblems {
					c.Problems = append(c.Problems, v.problem(err))
				}
			}
		}
		after = values[len(values)-1].after()
	}
}

// next reads the values behind a place, from the first holder that has some.
func next(ctx context.Context, holders []Holder, after string, limit int) (h Holder, values []Value, err error) {
	table, place, _ := strings.Cut(after, "/")
	begin := 0
	if after != "" {
		if begin = slices.IndexFunc(holders, func(h Holder) bool { return h.Table() == table }); begin < 0 {
			return nil, nil, ErrPlace
		}
	}
	for _, h := range holders[begin:] {
		values, err := h.Values(ctx, place, limit)
		if err != nil {
			return nil, nil, fmt.Errorf("read secrets of table %s: %w", h.Table(), err)
		}
		if len(values) > 0 {
			return h, values, nil
		}
		place = ""
	}
	return nil, nil, nil
}

func (r *Ring) openValue(v Value) ([]byte, error) {
	if v.Err != nil {
		return nil, v.Err
	}
	return r.Open(v.At, v.Sealed)
}

func (v Value) after() string { return v.At.Table + "/" + v.Place }

func (v Value) problem(err error) Problem { return Problem{Where: v.after(), Why: err.Error()} }
