package fanout

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Failing is a subscription whose attempts fail, and of which none has succeeded since.
type Failing struct {
	Subscription string
	Since        time.Time // of the first of these failures
	Row          int64     // the store's own
	Long         bool      // longer than was asked; a clock that is doubted never says so
}

// FailingStore keeps since when subscriptions fail. One that works has no row.
type FailingStore interface {
	// Failing returns them by id, those behind after, at most limit.
	Failing(ctx context.Context, long time.Duration, after string, limit int) ([]Failing, error)
	// NoteFailing adds the subscriptions of failed that are not known to fail yet, with how long ago that began, and
	// removes those rows of over that are still as they were read. Neither has more than a few hundred.
	NoteFailing(ctx context.Context, failed map[string]time.Duration, over []Failing) error
}

// Disabler disables a subscription when an attempt fails and none has succeeded for a time. Its messages stay and wait
// until somebody resumes it. Its fields are set before Run.
//
// A delivery costs no write. What comes of attempts is in memory. Once a minute the store gets which have begun to fail
// and done so for a minute, and at once which work again. So a subscription costs two writes a minute at most, and none
// while nothing changes. Nodes of one store see each other's successes there.
type Disabler struct {
	Book   *Book
	After  time.Duration // without success while attempts fail; zero: nothing is disabled
	Node   string        // its name: who disables is ByNode and this
	Logger *slog.Logger  // nil: nothing is logged

	mu    sync.Mutex
	fates map[string]*fate
	ring  chan struct{}
}

// ByNode begins the actor of what a node does about subscriptions.
const ByNode = "node "

// fate is what attempts of a subscription have come to, in this process.
type fate struct {
	mu     sync.Mutex
	first  time.Time // failure since the last success; zero: there is none
	last   time.Time // failure
	worked int       // successes
	told   int       // of worked, those that the store knows of
	known  bool      // that it fails is in the store
}

const (
	// lookEvery is how often a Disabler looks.
	lookEvery = time.Minute
	// notesAtOnce is how many subscriptions are noted in one transaction.
	notesAtOnce = 200
)

// fate returns that of a subscription. A nil Disabler has none.
func (d *Disabler) fate(id string) *fate {
	if d == nil || d.After <= 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fates == nil {
		d.fates, d.ring = map[string]*fate{}, make(chan struct{}, 1)
	}
	f := d.fates[id]
	if f == nil {
		f = &fate{}
		d.fates[id] = f
	}
	return f
}

// forget drops what is known of a subscription that is no more.
func (d *Disabler) forget(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.fates, id)
}

// note notes the end of an attempt. What never reached the subscriber says nothing about it.
func (d *Disabler) note(f *fate, err error) {
	if f == nil {
		return
	}
	if e, ok := errors.AsType[*holdfast.Failure](err); ok && (e.Outcome == holdfast.NotStarted || e.Outcome == holdfast.LaneFault) {
		return
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if f.last = now; f.first.IsZero() {
			f.first = now
		}
		return
	}
	f.first = time.Time{}
	f.worked++
	if f.known {
		select {
		case d.ring <- struct{}{}: // it must not be forgotten that it works
		default:
		}
	}
}

// Run looks until ctx ends. It returns an error when the store has stopped.
func (d *Disabler) Run(ctx context.Context) error {
	if d.After <= 0 {
		<-ctx.Done()
		return nil
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	d.fate("") // makes the bell
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-d.ring:
			if !rest(ctx, time.Second) { // for others that work again
				return nil
			}
		}
		if err := d.look(ctx); errors.Is(err, holdfast.ErrClosed) {
			return err
		} else if err != nil && ctx.Err() == nil {
			d.Logger.ErrorContext(ctx, "subscriptions that fail not looked at", slog.Any("error", err))
		}
	}
}

// rest waits, and reports whether ctx lives.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// look compares what has come of attempts with the store, and disables what has failed for too long.
func (d *Disabler) look(ctx context.Context) error {
	if _, err := d.Book.Version(ctx); err != nil { // what the book lacks would count as deleted
		return err
	}
	stored, err := d.stored(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	fates := maps.Clone(d.fates)
	d.mu.Unlock()
	failed, worked := map[string]time.Duration{}, map[*fate]int{}
	var over []Failing
	for id, row := range stored {
		if s, found := d.Book.Known(id); !found || s.Changed.After(row.Since) {
			over = append(over, row) // it is gone, or another one since it was changed or resumed
			delete(stored, id)
		}
	}
	for id, f := range fates {
		s, found := d.Book.Known(id)
		row, known := stored[id]
		if !found {
			continue
		}
		ago, fails, works, n := f.compare(&s, known)
		switch worked[f] = n; {
		case works && known:
			over = append(over, row)
		case fails:
			failed[id] = ago
		case known && row.Long && s.State == Active && f.failedLately():
			d.disable(ctx, s, &row)
		}
	}
	if err := d.save(ctx, failed, over); err != nil {
		return err
	}
	for f, n := range worked {
		f.tell(n)
	}
	return nil
}

// stored returns the subscriptions that are known to fail.
func (d *Disabler) stored(ctx context.Context) (map[string]Failing, error) {
	all := map[string]Failing{}
	for after := ""; ; {
		list, err := d.Book.store.Failing(ctx, d.After, after, page)
		if err != nil {
			return nil, err
		}
		for _, row := range list {
			all[row.Subscription], after = row, row.Subscription
		}
		if len(list) < page {
			return all, nil
		}
	}
}

// compare compares a fate with the store, which may know that the subscription fails. It reports whether that is to be noted,
// and how long ago it began; and whether an attempt has succeeded of which the store has not been told, and how many have.
func (f *fate) compare(s *Subscription, known bool) (ago time.Duration, fails, works bool, worked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	works, worked = f.worked > f.told, f.worked
	if f.known && !known { // another node has seen it work, or it was changed: the next failure is the first
		f.first = time.Time{}
	}
	if f.known = known; known || f.first.IsZero() {
		return 0, false, works, worked
	}
	ago = min(time.Since(f.first), max(time.Since(s.Changed), 0))
	return ago, ago >= lookEvery, works, worked
}

// tell notes that the store has been told of successes.
func (f *fate) tell(worked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = worked
}

// failedLately reports whether an attempt has failed about since the last look, and none has succeeded since.
func (f *fate) failedLately() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.first.IsZero() && time.Since(f.last) <= lookEvery
}

func (d *Disabler) save(ctx context.Context, failed map[string]time.Duration, over []Failing) error {
	for list := range slices.Chunk(over, notesAtOnce) {
		if err := d.Book.store.NoteFailing(ctx, nil, list); err != nil {
			return err
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(failed)), notesAtOnce) {
		part := map[string]time.Duration{}
		for _, id := range ids {
			part[id] = failed[id]
		}
		if err := d.Book.store.NoteFailing(ctx, part, nil); err != nil {
			return err
		}
	}
	return nil
}

// disable disables a subscription, unless it was changed meanwhile.
func (d *Disabler) disable(ctx context.Context, s Subscription, row *Failing) {
	s.State, s.Actor = Disabled, ByNode+d.Node
	s.Why = "each attempt has failed since " + row.Since.UTC().Format(time.RFC3339)
	_, err := d.Book.Store().PutSubscription(ctx, s, s.Actor)
	switch {
	case err == nil:
		d.Logger.ErrorContext(ctx, "a subscription is disabled: each attempt fails", slog.String("subscription", s.ID), slog.Time("since", row.Since))
	case !errors.Is(err, holdfast.ErrState) && ctx.Err() == nil:
		d.Logger.ErrorContext(ctx, "subscription not disabled", slog.String("subscription", s.ID), slog.Any("error", err))
	}
}
