package bulk

import (
	"context"
	"errors"
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
	Holder string        // unlike that of any other Runner over the store, also of this one after a restart
	Every  time.Duration // between two looks for actions; zero: a second
	Logger *slog.Logger
}

const (
	// atOnce is how many rows are done between two records: so many are done again after a crash.
	atOnce = 50
	// lease is how long an action waits for a node that does not record. It is longer than a few rows take.
	lease = 30 * time.Second
	// kept is how long an action is kept after its end.
	kept = 30 * 24 * time.Hour
)

// Run runs actions, the oldest first and one at a time, until ctx ends. No error ends it.
func (r *Runner) Run(ctx context.Context) error {
	every := r.Every
	if every == 0 {
		every = time.Second
	}
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
			wait = max(wait, every)
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

// pass does the next rows of an action, and returns how long its rate asks to wait; zero: there was
// nothing to do.
func (r *Runner) pass(ctx context.Context) (time.Duration, error) {
	a, some, err := r.Store.ClaimBulk(ctx, r.Holder, lease)
	if err != nil || !some {
		return 0, err
	}
	limit := atOnce
	if a.Rate > 0 {
		limit = int(min(a.Rate, atOnce))
	}
	rows, err := r.Store.BulkRows(ctx, a.ID, a.Next-1, limit)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	did, failed := r.rows(ctx, &a, rows)
	if len(did) > 0 || len(rows) == 0 {
		// What is done is recorded, also when the node stops.
		if err := r.Store.RecordBulk(context.WithoutCancel(ctx), &a, r.Holder, lease, did); err != nil {
			return 0, err
		}
	}
	wait := time.Nanosecond
	if a.Rate > 0 {
		wait = max(wait, time.Duration(len(did))*time.Second/time.Duration(a.Rate)-time.Since(began))
	}
	return wait, failed
}

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
