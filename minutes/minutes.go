// Package minutes keeps what a node did in each minute of the last day, for charts.
//
// A row has what happened in one minute and how things stood at its end. A minute without a row is a gap: the node
// did not run, or its store took nothing. What happened in the minute in which a node stops is in no row. The numbers
// are for people who look at a line; counts to rely on are those of the store and of the metrics.
package minutes

import (
	"context"
	"log/slog"
	"time"
)

// Keep is how long a minute is kept: a day, and the hour that a clock may be put back.
const Keep = 25 * time.Hour

// Numbers are what a row counts.
type Numbers struct {
	// Of the minute.
	Delivered int64 `json:"delivered,omitempty"`
	Failed    int64 `json:"failed,omitempty"`   // attempts
	Parked    int64 `json:"parked,omitempty"`   // messages that were parked
	Expired   int64 `json:"expired,omitempty"`  // messages whose time to live ended
	Notified  int64 `json:"notified,omitempty"` // of Delivered, copies of notifications
	Received  int64 `json:"received,omitempty"` // messages that came in

	// At its end. Nodes that share a store see the same.
	Waiting         int64         `json:"waiting,omitempty"`
	ParkedNow       int64         `json:"parkedNow,omitempty"`
	Oldest          time.Duration `json:"oldest,omitempty"` // how long the oldest due message has waited
	NotifyWaiting   int64         `json:"notifyWaiting,omitempty"`
	NotifyParkedNow int64         `json:"notifyParkedNow,omitempty"`
}

// since returns what happened between two readings, and how things stood at the later one.
func (n Numbers) since(before *Numbers) Numbers {
	for _, c := range []struct{ now, then *int64 }{
		{&n.Delivered, &before.Delivered},
		{&n.Failed, &before.Failed},
		{&n.Parked, &before.Parked},
		{&n.Expired, &before.Expired},
		{&n.Notified, &before.Notified},
		{&n.Received, &before.Received},
	} {
		*c.now = max(*c.now-*c.then, 0) // a store that was lost for a while counts anew
	}
	return n
}

// Minute is a row.
type Minute struct {
	At   time.Time     // its beginning by the node's clock, a whole minute in UTC
	Node string        // that counted
	Took time.Duration // the time that it covers, in whole seconds: less than a minute after a start
	Numbers
}

// Store keeps minutes. Its methods may be called concurrently.
type Store interface {
	// KeepMinute writes a row in place of the one of the same minute and node: the clock was put back.
	KeepMinute(ctx context.Context, m *Minute) error
	// Minutes returns the rows that begin at since or later, by time and node. It leaves out what begins after
	// the store's now: it is of a clock that was wrong.
	Minutes(ctx context.Context, since time.Time) ([]Minute, error)
	// PurgeMinutes deletes the rows that were written so long ago.
	PurgeMinutes(ctx context.Context, keep time.Duration) error
}

// Recorder writes the minutes of a node. Its fields are set before Run and not changed afterwards.
type Recorder struct {
	Store Store
	Node  string
	// Read returns what happened since the start, and how things stand. It must not block.
	Read   func() Numbers
	Logger *slog.Logger
}

// Run writes a row at the end of each minute until ctx ends. A row that cannot be written is a gap. No error ends it.
func (r *Recorder) Run(ctx context.Context) error {
	began, before := time.Now(), r.Read()
	for {
		now := time.Now()
		timer := time.NewTimer(now.Truncate(time.Minute).Add(time.Minute).Sub(now))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		now = time.Now()
		if minute(now).Equal(minute(began)) { // a timer is not as exact as the clock, or the clock was put back
			continue
		}
		read := r.Read()
		m := Minute{At: minute(began), Node: r.Node, Took: now.Sub(began).Round(time.Second), Numbers: read.since(&before)}
		began, before = now, read
		err := r.Store.KeepMinute(ctx, &m)
		if err == nil {
			err = r.Store.PurgeMinutes(ctx, Keep)
		}
		if err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "no counts of this minute", slog.Any("error", err))
		}
	}
}

func minute(t time.Time) time.Time { return t.Round(0).UTC().Truncate(time.Minute) }
