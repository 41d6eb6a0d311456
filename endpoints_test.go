package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func arriving(id, endpoint string) holdfast.Message {
	return holdfast.Message{
		ID: holdfast.ID(id), Source: "shop", Destination: "here", Endpoint: endpoint, Kind: holdfast.Signal,
		Payload: []byte(`{"n":  1}`), Attempt: holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: time.Hour},
	}
}

// program is a local program that answers with the number of its calls.
type program struct {
	calls atomic.Int64
	fail  atomic.Pointer[error]
	slow  time.Duration
}

func (p *program) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	n := p.calls.Add(1)
	if p.slow > 0 {
		select {
		case <-time.After(p.slow):
		case <-ctx.Done():
			return holdfast.Receipt{}, ctx.Err()
		}
	}
	if err := p.fail.Load(); err != nil {
		return holdfast.Receipt{}, *err
	}
	return holdfast.Receipt{ID: m.ID, Response: []byte(fmt.Sprintf(`{"call":%d}`, n))}, nil
}

// Design 8: a forward is called once per id at a time; two that arrive at
// once run once, and the second gets the stored response.
func TestConcurrentDuplicatesForwardOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		p := &program{slow: time.Second}
		e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: p}}}
		results := make(chan holdfast.Receipt, 8)
		for range 8 {
			go func() {
				r, err := e.Receive(t.Context(), arriving("m-1", "Book"))
				if err != nil {
					t.Error(err)
				}
				results <- r
			}()
		}
		duplicates := 0
		for range 8 {
			r := <-results
			if string(r.Response) != `{"call":1}` {
				t.Errorf("got response %s, want that of the one call", r.Response)
			}
			if r.Duplicate {
				duplicates++
			}
		}
		if p.calls.Load() != 1 || duplicates != 7 {
			t.Errorf("%d calls, %d duplicates; want 1 and 7", p.calls.Load(), duplicates)
		}
	})
}

// OI-07, OI-20: a failed call keeps nothing; the sender learns whether to try
// again, and the next one is a first one.
func TestAFailedForwardKeepsNothing(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	p := &program{}
	e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: p}}}
	for _, c := range []struct {
		err  error
		want holdfast.Outcome
	}{
		{errors.New("boom"), holdfast.Transient},
		{&holdfast.Failure{Outcome: holdfast.Unreachable, Code: "unreachable"}, holdfast.Transient},
		{&holdfast.Failure{Outcome: holdfast.Permanent, Code: "http_422"}, holdfast.Permanent},
	} {
		p.fail.Store(&c.err)
		_, err := e.Receive(t.Context(), arriving("m-1", "Book"))
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != c.want {
			t.Errorf("program failed with %v: got %v, want %s", c.err, err, c.want)
		}
	}
	p.fail.Store(nil)
	r, err := e.Receive(t.Context(), arriving("m-1", "Book"))
	if err != nil || r.Duplicate || string(r.Response) != `{"call":4}` {
		t.Errorf("got %+v, %v; want a first success", r, err)
	}
}

// A panic of a handler is its own affair.
func TestAPanickingForwardIsTransient(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	boom := holdfast.DelivererFunc(func(context.Context, holdfast.Message) (holdfast.Receipt, error) { panic("boom") })
	e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: boom}, "Keep": {Keep: true}}}
	results := e.ReceiveBatch(t.Context(), []holdfast.Message{arriving("a", "Book"), arriving("b", "Keep"), arriving("c", "Nowhere")})
	if f := holdfast.AsFailure(results[0].Err); f.Code != "panic" || f.Outcome != holdfast.Transient {
		t.Errorf("got %+v, want a transient panic", results[0])
	}
	if results[1].Err != nil {
		t.Errorf("its neighbour got %v", results[1].Err)
	}
	if f := holdfast.AsFailure(results[2].Err); f.Outcome != holdfast.Permanent || f.Reason != holdfast.ReasonNoEndpoint {
		t.Errorf("unknown endpoint: got %+v", results[2])
	}
}

// The response of a call whose sender has hung up is recorded all the same:
// the effect has happened.
func TestTheEffectIsRecordedWhenTheSenderHangsUp(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	ctx, hangUp := context.WithCancel(t.Context())
	var n atomic.Int64
	e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: holdfast.DelivererFunc(
		func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			n.Add(1)
			hangUp()
			return holdfast.Receipt{ID: m.ID, Response: []byte(`1`)}, nil
		})}}}
	if _, err := e.Receive(ctx, arriving("m", "Book")); err != nil && !holdfast.AsFailure(err).MaybeDelivered {
		t.Fatal(err)
	}
	if err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := e.Receive(t.Context(), arriving("m", "Book"))
	if err != nil || !r.Duplicate || n.Load() != 1 {
		t.Errorf("got %+v, %v after %d calls; want the duplicate of one call", r, err, n.Load())
	}
}

func TestKeptMessagesConflictByContent(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Keep": {Keep: true}}}
	other := arriving("m", "Keep")
	other.Payload = []byte(`2`)
	foreign := arriving("m", "Keep")
	foreign.Source = "another shop" // the key is (source, id)
	results := e.ReceiveBatch(t.Context(), []holdfast.Message{arriving("m", "Keep"), arriving("m", "Keep"), other, foreign})
	if results[0].Err != nil || results[0].Receipt.Duplicate {
		t.Errorf("first: %+v", results[0])
	}
	if results[1].Err != nil || !results[1].Receipt.Duplicate {
		t.Errorf("repeat: %+v", results[1])
	}
	if f := holdfast.AsFailure(results[2].Err); f.Reason != holdfast.ReasonConflict {
		t.Errorf("other content: %+v", results[2])
	}
	if results[3].Err != nil || results[3].Receipt.Duplicate {
		t.Errorf("other source: %+v", results[3])
	}
	if c := db.Counts(); c.Kept != 2 {
		t.Errorf("%d kept, want 2", c.Kept)
	}
}

// What the sender's patience leaves no time for is not begun.
func TestNothingIsBegunAfterTheDeadline(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	p := &program{}
	e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: p}, "Keep": {Keep: true}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, r := range e.ReceiveBatch(ctx, []holdfast.Message{arriving("a", "Book"), arriving("b", "Keep")}) {
		if f := holdfast.AsFailure(r.Err); r.Err == nil || f.Outcome != holdfast.NotStarted {
			t.Errorf("message %d: got %+v, want not started", i, r)
		}
	}
	if p.calls.Load() != 0 || db.Counts().Kept != 0 {
		t.Error("something was begun")
	}
}

// What a handler meets inside its own transaction is not the message's fault:
// it is tried again, unless the handler says that it should not be.
func TestAHandlersErrorsAreItsOwn(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	for name, c := range map[string]struct {
		err  error
		want holdfast.Outcome
	}{
		"a conflict of its own": {fmt.Errorf("enqueue: %w", holdfast.ErrConflict), holdfast.Transient},
		"its own bad message":   {fmt.Errorf("enqueue: %w", holdfast.ErrInvalid), holdfast.Transient},
		"a permanent failure":   {&holdfast.Failure{Outcome: holdfast.Permanent, Err: errors.New("no")}, holdfast.Permanent},
	} {
		_, err := db.Inbox().Process(t.Context(), arriving("m-"+strconv.Itoa(len(name)), "Book"),
			func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, c.err })
		if f := holdfast.AsFailure(holdfast.ReceiveFailure(err)); f.Outcome != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %s, %v", name, f.Outcome, err)
		}
	}
}

// keeper notes for how long an inbox is asked to remember.
type keeper struct {
	holdfast.InboxLog
	holdfast.InboxStore[any]
	mu    sync.Mutex // forwards run side by side
	asked []time.Duration
}

func (k *keeper) ask(retention time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, retention)
}

func (k *keeper) Known(_ context.Context, retention time.Duration, ms ...holdfast.Message) ([]bool, []holdfast.Result, error) {
	k.ask(retention)
	return make([]bool, len(ms)), make([]holdfast.Result, len(ms)), nil
}

func (k *keeper) Record(_ context.Context, retention time.Duration, done ...holdfast.Processed) ([]holdfast.Result, error) {
	k.ask(retention)
	return make([]holdfast.Result, len(done)), nil
}

func (k *keeper) Keep(_ context.Context, retention time.Duration, ms ...holdfast.Message) ([]holdfast.Result, error) {
	k.ask(retention)
	return make([]holdfast.Result, len(ms)), nil
}

func (k *keeper) Process(_ context.Context, _ holdfast.Message, retention time.Duration, _ holdfast.Handler[any]) (holdfast.Receipt, error) {
	k.ask(retention)
	return holdfast.Receipt{}, nil
}

// OI-10: whoever does not say how long ids are remembered has them remembered
// for seven days (F1-99).
func TestDefaultsOfTheInbox(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	e := &holdfast.Endpoints{Log: k, Map: map[string]holdfast.Endpoint{"Book": {Forward: &program{}}, "Keep": {Keep: true}}}
	for _, r := range e.ReceiveBatch(t.Context(), []holdfast.Message{arriving("a", "Book"), arriving("b", "Keep")}) {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if _, err := (&holdfast.Inbox[any]{Store: k}).Process(t.Context(), arriving("c", "Book"), nil); err != nil {
		t.Error(err)
	}
	if week := 7 * 24 * time.Hour; !slices.Equal(k.asked, []time.Duration{week, week, week, week}) {
		t.Errorf("asked to remember for %v, want %s each", k.asked, week)
	}
}
