// Package search bounds what one page of a list costs if no index leads to the rows that its filter
// selects. The rows are read in steps, newest first, and the filter looks at each of them. A page
// ends when it is full, or when it has cost enough: then it says how far it looked, and the next
// one goes on from there.
package search

import "time"

// A page costs at most about so much. The time is looked at after each step.
const (
	Step = 250       // rows of a step
	Rows = 20 * Step // read in a page
	Time = 50 * time.Millisecond
)

// Bound is what a page may still cost.
type Bound struct {
	began time.Time
	rows  int
}

// Over notes that a step has read so many rows, and reports whether the page has cost enough.
func (b *Bound) Over(rows int) bool {
	b.rows += rows
	return b.rows >= Rows || time.Since(b.began) >= Time
}

// Begin returns the bound of a page.
func Begin() Bound { return Bound{began: time.Now()} }
