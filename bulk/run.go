package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Do does the verb of an action to one row. A refusal is a text that says why the row's state does
// not allow it. An error says that nobody knows yet, as if the store is not there: the row is done
// again later.
type Do func(ctx context.Context, a *Action, item string) (refusal string, err error)

// Runner runs the actions of a store. Its fields are set before Run and not changed afterwards.
type Runner struct {
	Store  Store
	Do     Do
	Holder string        // the node's name, unlike that of any other over the store: after a restart it goes on at once
	Every  time.Duration // between two looks for actions; zero: a second
	Logger *slog.Logger

	turns map[string]turn // of the actions that this Runner works on
}

// turn says when an action goes on, and how its next row fares.
type turn struct {
	at    time.Time
	row   int64 // that failed
	times int   // in a row
}

const (
	// atOnce is how many rows are done between two records: so many are done again after a crash.
	atOnce = 50
	// lease is how long an action waits for another node that does not record. It is longer than a few rows take.
	lease = 30 * time.Second
	// kept is how long an action is kept after its end.
	kept = 30 * 24 * time.Hour
	// mostFailures is how often a row may fail in a row while the store is well. Then it is refused, so that
	// the others come to their turn.
	mostFailures = 60
)

// Run runs actions until ctx ends: they take turns, and one that waits holds up none. No error ends it.
func (r *Runner) Run(ctx context.Context) error {
	every := r.every()
	var purged time.Time
	for {
		wait, err := r.pass(ctx)
		if err == nil && wait == 0 {
			if wait = every; time.Since(purged) > time.Hour {
				_, err = r.Store.PurgeBulks(ctx, kept)
				purged = time.Now()
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, holdfast.ErrClosed) {
			r.Logger.WarnContext(ctx, "bulk actions wait", slog.Any("error", err))
			wait = cmp.Or(wait, every)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// pass does the next rows of each action that is not waiting, the oldest first, and returns how long it
// is until the next one goes on; zero: there is none.
func (r *Runner) pass(ctx context.Context) (next time.Duration, err error) {
	turns := map[string]turn{}
	for id := ""; ctx.Err() == nil; {
		a, some, claimed := r.Store.ClaimBulk(ctx, r.Holder, lease, id)
		if err = errors.Join(err, claimed); claimed != nil || !some {
			break
		}
		id = a.ID
		t := r.turns[id]
		if t.at.Before(time.Now()) {
			err = errors.Join(err, r.step(ctx, &a, &t))
		}
		wait := max(time.Until(t.at), time.Nanosecond)
		if turns[id] = t; next == 0 || wait < next {
			next = wait
		}
	}
	r.turns = turns
	return next, err
}

// step does the next rows of an action, and sets when it goes on.
func (r *Runner) step(ctx context.Context, a *Action, t *turn) error {
	began, limit := time.Now(), atOnce
	t.at = began.Add(r.every())
	if a.Rate > 0 {
		limit = int(min(a.Rate, atOnce))
	}
	rows, err := r.Store.BulkRows(ctx, a.ID, a.Next-1, limit)
	if err != nil {
		return err
	}
	did, failed := r.rows(ctx, a, rows)
	if failed != nil && ctx.Err() == nil {
		if row := rows[len(did)]; t.fails(row.Seq, failed) {
			row.Outcome, row.Detail = Refused, fmt.Sprintf("it failed %d times: %v", t.times, failed)
			did = append(did, row)
		}
	}
	if len(did) > 0 || len(rows) == 0 {
		// What is done is recorded, also when the node stops.
		if err := r.Store.RecordBulk(context.WithoutCancel(ctx), a, r.Holder, lease, did); err != nil {
			return err
		}
	}
	if failed == nil {
		t.at = began
		if a.Rate > 0 {
			t.at = began.Add(time.Duration(len(did)) * time.Second / time.Duration(a.Rate))
		}
	}
	return failed
}

// fails notes that a row has failed, and reports whether that was too often. A store that is away is not
// the row's fault.
func (t *turn) fails(row int64, err error) bool {
	if t.row != row {
		t.row, t.times = row, 0
	}
	if !errors.Is(err, holdfast.ErrUnavailable) {
		t.times++
	}
	return t.times >= mostFailures
}

func (r *Runner) every() time.Duration { return cmp.Or(r.Every, time.Second) }

// rows does rows until one fails, and returns those that are done or refused.
func (r *Runner) rows(ctx context.Context, a *Action, rows []Row) (did []Row, err error) {
	for _, row := range rows {
		if ctx.Err() != nil {
			return did, ctx.Err()
		}
		refusal, err := r.Do(ctx, a, row.Item)
		if err != nil {
			return did, err
		}
		if row.Outcome = DoneRow; refusal != "" {
			row.Outcome, row.Detail = Refused, refusal
		}
		did = append(did, row)
	}
	return did, nil
}
