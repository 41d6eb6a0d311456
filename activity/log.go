package activity

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/rows"
)

// Follower is the name by which the log follows the journal.
const Follower = "activity"

// Log writes what happens to messages into a store. Its fields are set before Run and not changed
// afterwards.
type Log struct {
	Journal holdfast.Journal
	Store   Store
	Off     bool          // nothing is written; what is kept ages
	Keep    time.Duration // how long an act is kept
	Every   time.Duration // between two purges
	Logger  *slog.Logger

	last int64 // number of the newest act; Project's only
}

// pauseAfter is how long the log waits after an error until it follows again.
const pauseAfter = 10 * time.Second

// Run follows the journal, and purges, until ctx ends or the store is closed. No other error ends
// it. Several nodes may run a log over one store: each act is written once.
func (l *Log) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { l.sweeps(ctx) })
	for l.follow(ctx) && rest(ctx, pauseAfter) {
	}
	parts.Wait()
	return nil
}

// follow follows until something fails. It returns false if there is no more to do.
func (l *Log) follow(ctx context.Context) (again bool) {
	var err error
	if l.Off {
		if err = l.Journal.Forget(ctx, Follower); errors.Is(err, holdfast.ErrNotFound) {
			err = nil
		}
	} else {
		err = l.Journal.Project(ctx, holdfast.Follower{Name: Follower, Resume: l.resume}, l.project)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, holdfast.ErrClosed) {
		return false
	}
	l.Logger.LogAttrs(ctx, slog.LevelError, "activity is not written", slog.Any("error", err))
	return true
}

func (l *Log) resume(ctx context.Context) (err error) {
	_, l.last, err = l.Store.Ends(ctx)
	return err
}

// project makes acts of entries.
func (l *Log) project(_ context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
	for i := range page {
		e := &page[i]
		kind := kindOf(e)
		if kind == 0 {
			continue
		}
		l.last++
		r := &rows.Activity{
			Seq: l.last, At: e.At.UnixMicro(), Noted: rows.Now, Kind: int64(kind), Message: Key(e.ID), Destination: e.Destination,
			Cycle: int64(e.Cycle), Actor: shown.Clip(e.Actor, most), Reason: string(e.Reason),
		}
		if kind == Disabled {
			r.Destination, r.Error = fanout.Lane(e.Subject), shown.Clip(e.Error, most)
		}
		if e.Kind == holdfast.Attempted {
			r.Attempt, r.Code, r.Error = int64(e.Attempt), shown.Clip(e.Code, most), shown.Clip(e.Error, most)
		}
		list = append(list, r)
	}
	return list, nil
}

// most is how many bytes of each text an act keeps. The message's own history has all.
const most = 500

// kindOf returns the kind of act that an entry is; zero: none.
func kindOf(e *holdfast.Entry) Kind {
	switch e.Kind { //nolint:exhaustive // the others are no acts
	case holdfast.Enqueued:
		return Queued
	case holdfast.Requeued:
		return Retry
	case holdfast.GivenUp:
		return Discard
	case holdfast.Attempted, holdfast.Reclaimed:
		return ended(e)
	case holdfast.SubscriptionPut:
		if e.Code == fanout.Disabled.String() && strings.HasPrefix(e.Actor, fanout.ByNode) {
			return Disabled
		}
		return 0
	default:
		return 0
	}
}

// ended returns the kind of act that the end of an attempt is.
func ended(e *holdfast.Entry) Kind {
	switch e.State { //nolint:exhaustive // no attempt ends in the others
	case holdfast.Delivered:
		return Delivered
	case holdfast.Parked:
		return Parked
	case holdfast.Pending:
		if e.Kind == holdfast.Attempted && e.Outcome != holdfast.NotStarted {
			return Retried
		}
	case holdfast.Discarded:
		if e.Reason == holdfast.ReasonRejected { // else a person's Discard stands there already
			return Discard
		}
	default:
	}
	return 0
}

// sweeps purges at once and then again and again.
func (l *Log) sweeps(ctx context.Context) {
	for {
		if err := l.sweep(ctx); errors.Is(err, holdfast.ErrClosed) {
			return
		} else if err != nil && ctx.Err() == nil && !errors.Is(err, holdfast.ErrDiskFull) {
			l.Logger.LogAttrs(ctx, slog.LevelWarn, "activity not purged", slog.Any("error", err))
		}
		if !rest(ctx, l.Every) {
			return
		}
	}
}

func (l *Log) sweep(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = l.Store.Purge(ctx, l.Keep); err != nil {
			return err
		}
	}
	return nil
}

// rest waits. It returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
