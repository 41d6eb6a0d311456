package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// stalling is a store whose settlements take a while, or fail.
type stalling struct {
	holdfast.Store
	takes time.Duration
	fails int
}

func (s *stalling) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	time.Sleep(s.takes)
	if s.fails--; s.fails >= 0 {
		return nil, errors.New("the disk is full")
	}
	return s.Store.Settle(ctx, list...)
}

// F1-94, SF-03, SF-25: what is refused for good at its first try has ended once
// its caller was told, and is no work for people; what nobody was told of parks.
func TestARefusalThatWasToldHasEnded(t *testing.T) {
	t.Parallel()
	const takes = 2 * time.Second // the attempt
	for name, c := range map[string]struct {
		wait, settles time.Duration
		leaves        time.Duration // the caller's context ends; 0: not
		fails         int
		busy          bool // the first try only finds the other side busy
		told          bool
		state         holdfast.State
		reason        holdfast.Reason
	}{
		"told":                               {wait: 10 * time.Second, told: true, state: holdfast.Discarded, reason: holdfast.ReasonRejected},
		"nobody waits":                       {state: holdfast.Parked, reason: holdfast.ReasonPermanent},
		"stopped waiting before the outcome": {wait: time.Second, state: holdfast.Parked, reason: holdfast.ReasonPermanent},
		"would stop while it is recorded":    {wait: 3 * time.Second, settles: 5 * time.Second, told: true, state: holdfast.Discarded, reason: holdfast.ReasonRejected},
		"it cannot be recorded":              {wait: 10 * time.Second, fails: 1, state: holdfast.Parked, reason: holdfast.ReasonPermanent},
		"gone before the outcome":            {wait: 10 * time.Second, leaves: time.Second, state: holdfast.Parked, reason: holdfast.ReasonPermanent},
		"only the second try is refused":     {wait: 10 * time.Second, busy: true, state: holdfast.Parked, reason: holdfast.ReasonPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				waiters := &holdfast.Waiters{}
				to := &script{}
				to.become(func(context.Context, holdfast.Message) error {
					time.Sleep(takes)
					if c.busy && to.count() == 1 {
						return errTransient
					}
					return &holdfast.Failure{Outcome: holdfast.Permanent, Code: "http_422", Err: errors.New("no such plant")}
				})
				parked := 0
				d := &holdfast.Dispatcher{
					Store: &stalling{Store: db, takes: c.settles, fails: c.fails}, Waiters: waiters,
					Routes:   map[string]holdfast.Route{"erp": {Deliverer: to}},
					OnParked: func(context.Context, holdfast.Ended) error { parked++; return nil },
				}
				stop := dispatch(t, d)
				s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, cancel)
				}
				m := holdfast.Message{ID: "m", Destination: "erp", Endpoint: "Book", Payload: []byte("{}")}
				_, err := s.Submit(ctx, m, c.wait)
				refused, told := errors.AsType[*holdfast.RefusedError](err)
				if told != c.told || told && (refused.Code != "http_422" || refused.ID != "m") || !told && err != nil {
					t.Errorf("the caller got %v, want a refusal: %v", err, c.told)
				}
				time.Sleep(time.Minute)
				r := wantState(t, db, "m", c.state)
				if want := 1; r.Reason != c.reason || r.LastError != "no such plant" || db.Counts().Parked != map[bool]int64{true: 0, false: int64(want)}[told] {
					t.Errorf("got %+v, %d parked", r, db.Counts().Parked)
				}
				if told == (parked > 0) {
					t.Errorf("told %v, and %d notices of parking", told, parked)
				}
				// A repeat is told the same, and does not ask the other side.
				tries := to.count()
				if _, err := s.Submit(t.Context(), m, 10*time.Second); !errors.As(err, &refused) || *refused != (holdfast.RefusedError{ID: "m", Code: "http_422", Text: "no such plant"}) {
					t.Errorf("a repeat got %v", err)
				}
				if to.count() != tries {
					t.Errorf("a repeat asked again")
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// F1-44: an id that was discarded or has expired is not accepted again, until a
// person retries it.
func TestWhatHasEndedIsNotAcceptedAgain(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db}
		given := holdfast.Message{ID: "given-up", Destination: "erp", Endpoint: "Book", Payload: []byte("{}")}
		late := holdfast.Message{ID: "late", Destination: "erp", Endpoint: "Book", Payload: []byte("{}"), TTL: time.Minute}
		enqueue(t, db, given, late)
		if _, err := db.Discard(t.Context(), "given-up", "anna"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n, _, err := db.Expire(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d expired, %v", n, err)
		}
		for want, m := range map[holdfast.State]holdfast.Message{holdfast.Discarded: given, holdfast.Expired: late} {
			sub, err := s.Submit(t.Context(), m, 0)
			ended, ok := errors.AsType[*holdfast.EndedError](err)
			if !ok || ended.State != want || ended.ID != m.ID || !errors.Is(err, holdfast.ErrState) || !sub.Duplicate {
				t.Errorf("%s: got %+v, %v", m.ID, sub, err)
			}
			if _, err := db.Requeue(t.Context(), m.ID, holdfast.Requeue{Actor: "anna"}); err != nil {
				t.Fatal(err)
			}
			if sub, err := s.Submit(t.Context(), m, 0); err != nil || sub.State != holdfast.Pending || !sub.Duplicate {
				t.Errorf("%s after a retry: got %+v, %v", m.ID, sub, err)
			}
		}
	})
}

// meanwhile is an outbox in which something happens just before it is read.
type meanwhile struct {
	holdfast.Outbox
	happens func() error
}

func (m meanwhile) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	if err := m.happens(); err != nil {
		return holdfast.Record{}, fmt.Errorf("get: %w", err)
	}
	return m.Outbox.Get(ctx, id)
}

// F1-44, F1-94: what a repeat meets may have changed by the time that it is looked
// at: then its caller hears how it stands, and is refused nothing.
func TestARepeatOfWhatChangesThisMoment(t *testing.T) {
	t.Parallel()
	m := holdfast.Message{ID: "m", Destination: "erp", Endpoint: "Book", Payload: []byte("{}")}
	for name, c := range map[string]struct {
		parkedBy *holdfast.Failure // nil: a person discards it
		happens  func(db *sqlite.DB) error
		want     error
		state    holdfast.State
	}{
		"nothing happens":         {nil, nil, holdfast.ErrState, holdfast.Discarded},
		"a person retries it":     {nil, retried, nil, holdfast.Discarded},
		"it is purged":            {nil, func(*sqlite.DB) error { return holdfast.ErrNotFound }, nil, holdfast.Discarded},
		"it cannot be read":       {nil, func(*sqlite.DB) error { return holdfast.ErrUnavailable }, holdfast.ErrUnavailable, holdfast.Discarded},
		"a parked one is retried": {errPermanent, retried, nil, holdfast.Parked},
		"its retries are used up": {errTransient, nil, nil, holdfast.Parked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				enqueue(t, db, m)
				if c.parkedBy == nil {
					if _, err := db.Discard(t.Context(), "m", "anna"); err != nil {
						t.Fatal(err)
					}
				} else {
					to := holdfast.Route{Deliverer: &script{answer: always(c.parkedBy)}, Retry: holdfast.RetryPolicy{Attempts: 1}}
					stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"erp": to}})
					synctest.Wait()
					if err := stop(); err != nil {
						t.Fatal(err)
					}
				}
				s := &holdfast.Submitter{Enqueuer: db, Waiters: &holdfast.Waiters{}, Outbox: meanwhile{db, func() error {
					if c.happens == nil {
						return nil
					}
					return c.happens(db)
				}}}
				began := time.Now()
				sub, err := s.Submit(t.Context(), m, time.Minute)
				if !errors.Is(err, c.want) || sub.State != c.state || !sub.Duplicate || time.Since(began) > 0 {
					t.Errorf("got %+v, %v after %s; want %s, %v at once", sub, err, time.Since(began), c.state, c.want)
				}
			})
		})
	}
}

func retried(db *sqlite.DB) error {
	_, err := db.Requeue(context.Background(), "m", holdfast.Requeue{Actor: "anna"})
	return err
}

// A refusal keeps the code that came last: a later one may have none.
func TestARefusalIsToldWithTheLastCode(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		waiters := &holdfast.Waiters{}
		to := &script{answer: always(errPermanent)}
		d := &holdfast.Dispatcher{Store: db, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": {Deliverer: to}}}
		stop := dispatch(t, d)
		m := holdfast.Message{ID: "m", Destination: "erp"}
		enqueue(t, db, m)
		synctest.Wait()
		to.become(always(&holdfast.Failure{Outcome: holdfast.Permanent, Err: errors.New("still not")}))
		if _, err := db.Requeue(t.Context(), "m", holdfast.Requeue{Actor: "anna"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
		m.Endpoint, m.Payload = "E", []byte("{}")
		_, err := s.Submit(t.Context(), m, time.Minute)
		if refused, ok := errors.AsType[*holdfast.RefusedError](err); !ok || refused.Code != errPermanent.Code || refused.Text != "still not" {
			t.Errorf("got %+v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
