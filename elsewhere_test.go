package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// common is a store that other processes have, too. Its settlements are on disk
// for a while before the dispatcher hears of it.
type common struct {
	*sqlite.DB
	before, after time.Duration
	looks         func(ctx context.Context)
}

var _ holdfast.Shared = (*common)(nil)

func (s *common) Share(_ string, limit int) int { return limit }
func (s *common) Holds(holdfast.Claim) bool     { return true }
func (s *common) Alone() bool                   { return false }
func (s *common) Leave(string)                  {}

func (s *common) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	<-time.After(s.before)
	won, err := s.DB.Settle(ctx, list...)
	<-time.After(s.after)
	return won, err
}

func (s *common) Standing(ctx context.Context, id holdfast.ID) (holdfast.Standing, error) {
	if s.looks != nil {
		s.looks(ctx)
	}
	r, err := s.Get(ctx, id)
	return holdfast.Standing{State: r.State, Tries: r.Tries, Cycle: r.Cycle}, err
}

var call = holdfast.Message{ID: "m", Destination: "erp", Endpoint: "Book", Payload: []byte("{}")}

// answering is a destination that answers after a second.
func answering(err error) holdfast.Deliverer {
	return holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		time.Sleep(time.Second)
		return holdfast.Receipt{ID: m.ID, Response: []byte("seat 7")}, err
	})
}

// F1-129: what a call is told of an attempt of its own process is all that it
// brought, also while the row says already that it was made, and also where the
// call came while that was recorded.
func TestAnOutcomeOfOursIsToldWithAllThatItBrought(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"delivered": nil, "failed": errTransient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				store, waiters := &common{DB: db, before: 10 * time.Second, after: 10 * time.Second}, &holdfast.Waiters{}
				to := holdfast.Route{Deliverer: answering(answer), Retry: holdfast.RetryPolicy{First: time.Hour}}
				d := &holdfast.Dispatcher{Store: store, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": to}}
				stop := dispatch(t, d)
				s := &holdfast.Submitter{Enqueuer: db, Outbox: store, Waiters: waiters, Lane: d.Lane}
				ended := make(chan struct{})
				for _, comes := range []time.Duration{0, 5 * time.Second} {
					go func() {
						time.Sleep(comes)
						got, err := s.Submit(t.Context(), call, time.Minute)
						switch {
						case err != nil || got.Attempt == nil:
							t.Errorf("who came after %s got %+v, %v", comes, got, err)
						case string(got.Attempt.Response) != "seat 7" || (got.Attempt.Failure != nil) != (answer != nil):
							t.Errorf("who came after %s was told %+v", comes, got.Attempt)
						}
						ended <- struct{}{}
					}()
				}
				<-ended
				<-ended
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// F1-129: a repeat waits for the next attempt, and is not answered by those that
// were made before.
func TestARepeatWaitsForWhatAnotherProcessDoesNext(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errTransient)}
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"erp": {Deliverer: to, Retry: holdfast.RetryPolicy{First: 10 * time.Minute}}}}
		stop := dispatch(t, d)
		enqueue(t, db, call)
		synctest.Wait()
		s := &holdfast.Submitter{Enqueuer: db, Outbox: &common{DB: db}, Waiters: &holdfast.Waiters{}}
		began := time.Now()
		got, err := s.Submit(t.Context(), call, 30*time.Second)
		if took := time.Since(began); err != nil || !got.Duplicate || got.State != holdfast.Pending || got.Attempt != nil || took != 30*time.Second {
			t.Errorf("got %+v, %v after %s, want it pending after 30 s", got, err, took)
		}
		to.become(nil)
		got, err = s.Submit(t.Context(), call, time.Hour)
		if err != nil || !got.Duplicate || got.State != holdfast.Delivered || got.Attempt == nil || got.Attempt.Retries != 1 {
			t.Errorf("got %+v, %v, want it delivered by the second try", got, err)
		}
		if took := time.Since(began); took > 12*time.Minute {
			t.Errorf("told after %s", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// F1-129: a message that another process ends is told as it has ended: a refusal
// as one, and all else by its state.
func TestWhatAnotherProcessEndsIsToldAsItEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  error
		ttl     time.Duration
		discard bool
		want    holdfast.State
		refused bool
	}{
		"refused":                 {answer: errPermanent, want: holdfast.Parked, refused: true},
		"its retries are used up": {answer: errTransient, want: holdfast.Parked},
		"a person gives it up":    {discard: true, want: holdfast.Discarded},
		"its time is over":        {ttl: time.Minute, want: holdfast.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				stop := func() error { return nil }
				if c.answer != nil {
					to := holdfast.Route{Deliverer: answering(c.answer), Retry: holdfast.RetryPolicy{Attempts: 1}}
					stop = dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"erp": to}})
				}
				others := make(chan struct{})
				go func() {
					defer close(others)
					time.Sleep(2 * time.Minute)
					if c.discard {
						_, _ = db.Discard(t.Context(), call.ID, "anna") // the state tells
					}
					_, _, _ = db.Expire(t.Context())
				}()
				m := call
				m.TTL = c.ttl
				s := &holdfast.Submitter{Enqueuer: db, Outbox: &common{DB: db}, Waiters: &holdfast.Waiters{}}
				began := time.Now()
				got, err := s.Submit(t.Context(), m, time.Hour)
				refused, is := errors.AsType[*holdfast.RefusedError](err)
				if is != c.refused || !is && err != nil || is && (refused.ID != "m" || refused.Code != errPermanent.Code) {
					t.Errorf("the caller got %v, want a refusal: %v", err, c.refused)
				}
				if took := time.Since(began); got.State != c.want || took > 3*time.Minute {
					t.Errorf("got %+v after %s, want %s", got, took, c.want)
				}
				<-others
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// F1-129: an answer of our own waits for no look at the row, and cuts none off,
// which may cost the store a connection.
func TestALookIsNeitherWaitedForNorCutOff(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var cut error
		looks := 0
		store, waiters := &common{DB: db}, &holdfast.Waiters{}
		store.looks = func(ctx context.Context) {
			looks++
			time.Sleep(3 * time.Second)
			cut = ctx.Err()
		}
		d := &holdfast.Dispatcher{Store: store, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": {Deliverer: answering(nil)}}}
		stop := dispatch(t, d)
		s := &holdfast.Submitter{Enqueuer: db, Outbox: store, Waiters: waiters, Lane: d.Lane}
		began := time.Now()
		got, err := s.Submit(t.Context(), call, time.Hour)
		if took := time.Since(began); err != nil || got.Attempt == nil || took > 2*time.Second {
			t.Errorf("got %+v, %v after %s", got, err, took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if looks != 1 || cut != nil {
			t.Errorf("%d looks, the last one ended by %v", looks, cut)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
