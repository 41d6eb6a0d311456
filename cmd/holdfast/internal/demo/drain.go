package demo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// drain waits until every accepted thing has arrived or was refused, and nothing waits at the
// sites. It waits as long as there is progress.
func (d *demo) drain(ctx context.Context) error {
	seen, since := Counts{}, time.Now()
	for {
		left := d.book.unanswered()
		idle := left == 0 && d.sitesAreEmpty(ctx)
		if err := d.look(ctx, idle); err != nil {
			return err
		}
		c := d.book.now()
		if idle && c.waiting() == 0 {
			return nil
		}
		if c != seen {
			seen, since = c, time.Now()
		}
		if time.Since(since) > d.o.Wait {
			return fmt.Errorf("after %s without progress these wait: %s; and %d sent ones for an answer%s",
				d.o.Wait, waiting(c), left, d.lastProblem(left))
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// waiting says what waits, by sort.
func waiting(c Counts) string {
	var all []string
	for _, t := range append([]named{{"orders", &Tally{Waiting: c.Waiting}}}, c.tallies()...) {
		if t.tally.Waiting > 0 {
			all = append(all, fmt.Sprintf("%d %s", t.tally.Waiting, t.name))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// look books what only the database and the nodes show. If a node does not answer now, look asks again later.
func (d *demo) look(ctx context.Context, all bool) error {
	_ = d.lookParked(ctx, all)
	return d.database.look(ctx, all)
}

func (d *demo) lastProblem(left int) string {
	for _, p := range d.plants {
		if text := p.problem.Load(); text != nil && left > 0 {
			return ": " + *text
		}
	}
	return ""
}

// sitesAreEmpty reports whether nothing waits at the sites.
func (d *demo) sitesAreEmpty(ctx context.Context) bool {
	for _, p := range d.plants {
		var stats struct {
			Pending *int `json:"pending"`
		}
		if err := d.get(ctx, *p.url.Load()+"/_rf/outbox/stats", &stats); err != nil || stats.Pending == nil || *stats.Pending != 0 {
			return false
		}
	}
	return true
}
