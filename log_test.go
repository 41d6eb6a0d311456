package holdfast_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// journal keeps the lines of a log as "LEVEL text key=value".
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	parts := []string{r.Level.String(), r.Message}
	r.Attrs(func(a slog.Attr) bool {
		parts = append(parts, a.String())
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, strings.Join(parts, " "))
	return nil
}

// of returns the lines about one message, or all, in order.
func (j *journal) of(id string) (list []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if id == "" || strings.Contains(line, "message_id="+id+" ") {
			list = append(list, strings.Replace(line, "message_id="+id+" ", "", 1))
		}
	}
	return list
}

// OI-18: sent with duration at Info, failed with count and error at Warn,
// permanently failed at Error (F1-99).
func TestLogLinesOfAttempts(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		log := &journal{}
		answer := func(ctx context.Context, m holdfast.Message) error {
			if m.ID != "refused" && m.Attempt.Number == 1 {
				time.Sleep(2 * time.Second)
				return errTransient
			}
			if m.ID == "sent" {
				return nil
			}
			return errPermanent
		}
		enqueue(t, db, holdfast.Message{ID: "sent", Destination: "a"}, holdfast.Message{ID: "spent", Destination: "b"}, holdfast.Message{ID: "refused", Destination: "c"})
		policy := holdfast.RetryPolicy{First: time.Minute, Factor: 1, Jitter: -1, Attempts: 3}
		once := policy
		once.Attempts = 1
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Logger: slog.New(log), Routes: map[string]holdfast.Route{
			"a": {Deliverer: &script{answer: answer}, Retry: policy},
			"b": {Deliverer: &script{answer: answer}, Retry: once},
			"c": {Deliverer: &script{answer: answer}, Retry: policy},
		}})
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for id, want := range map[string][]string{
			"sent": {
				"WARN attempt failed destination=a attempt=1 outcome=transient charged=true retry_in=1m0s error=busy",
				"INFO message sent destination=a endpoint=E took=0s duplicate=false",
			},
			"spent":   {"ERROR message parked destination=b reason=exhausted attempts=1 error=busy"},
			"refused": {"ERROR message parked destination=c reason=permanent attempts=1 error=refused"},
		} {
			if diff := cmp.Diff(log.of(id), want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", id, diff)
			}
		}
	})
}

// losing is a store in which somebody else has always decided before.
type losing struct{ holdfast.Store }

func (l losing) Settle(_ context.Context, list ...holdfast.Settlement) ([]bool, error) {
	return make([]bool, len(list)), nil
}

// OI-18: an outcome that came too late is a Warn (F1-99).
func TestLogLinesOfLateOutcomes(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		log := &journal{}
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: losing{db}, Logger: slog.New(log), Routes: map[string]holdfast.Route{"a": {Deliverer: &script{}}}})
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(log.of("m"), []string{"WARN late outcome changed nothing outcome=delivered"}); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
}

// OI-18: processed at Info, a duplicate and what is not taken at Warn.
func TestLogLinesOfIncomingMessages(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	log := &journal{}
	e := &holdfast.Endpoints{Log: db, Logger: slog.New(log), Map: map[string]holdfast.Endpoint{"Book": {Keep: true}}}
	for _, m := range []holdfast.Message{arriving("m", "Book"), arriving("m", "Book"), arriving("lost", "Nowhere")} {
		_, _ = e.Receive(t.Context(), m)
	}
	for id, want := range map[string][]string{
		"m":    {"INFO message processed source=shop endpoint=Book", "WARN duplicate received source=shop endpoint=Book"},
		"lost": {`WARN message not taken source=shop endpoint=Nowhere`},
	} {
		got := log.of(id)
		for i := range got {
			before, after, _ := strings.Cut(got[i], " took=")
			if took, _, _ := strings.Cut(after, " "); took == "" {
				t.Errorf("%s: no duration in %q", id, got[i])
			}
			got[i] = before
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", id, diff)
		}
	}
}

// failing is a store whose claims or settlements fail for a while.
type failing struct {
	holdfast.Store
	mu            sync.Mutex
	claim, settle error
}

func (f *failing) now(claim, settle error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claim, f.settle = claim, settle
}

func (f *failing) Claim(ctx context.Context, want map[string]int) (holdfast.Batch, error) {
	f.mu.Lock()
	err := f.claim
	f.mu.Unlock()
	if err != nil {
		return holdfast.Batch{}, err
	}
	return f.Store.Claim(ctx, want)
}

func (f *failing) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	f.mu.Lock()
	err := f.settle
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Store.Settle(ctx, list...)
}

// NO-21: a pass that failed is an Error; a lane that goes down is a Warn, one
// whose credentials are refused an Error, one that is up again an Info.
func TestLogLinesOfPassesAndLanes(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		log, store := &journal{}, &failing{Store: db}
		down, held := &script{answer: always(errUnreachable)}, &script{answer: always(errLaneFault)}
		stop := dispatch(t, &holdfast.Dispatcher{Store: store, Logger: slog.New(log), Routes: map[string]holdfast.Route{
			"down": {Deliverer: down}, "held": {Deliverer: held}, "good": {Deliverer: &script{}},
		}})
		said := func(want string) {
			t.Helper()
			if !slices.ContainsFunc(log.of(""), func(line string) bool { return strings.HasPrefix(line, want) }) {
				t.Errorf("the log lacks %q; it has\n%s", want, strings.Join(log.of(""), "\n"))
			}
		}
		enqueue(t, db, numbered(10, "down")...)
		enqueue(t, db, numbered(1, "held")...)
		time.Sleep(time.Minute)
		said("WARN destination is down destination=down error=connection refused")
		said("ERROR destination held destination=held code=unauthorized error=credentials refused")
		down.become(nil)
		time.Sleep(10 * time.Minute)
		said("INFO destination is up destination=down")
		broken := errors.New("input/output error")
		store.now(broken, nil)
		enqueue(t, db, numbered(1, "good")...)
		time.Sleep(time.Minute)
		said("ERROR claim failed error=input/output error")
		store.now(nil, broken)
		time.Sleep(time.Minute)
		said("ERROR outcomes not recorded, trying again count=1 error=input/output error")
		store.now(nil, nil)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// sick is an upkeep that fails, or has work for two pages.
type sick struct {
	upkeep
	err   error
	pages int
}

func (s *sick) Purge(context.Context, holdfast.Retention) (int, bool, error) {
	s.pages++
	return 7, s.pages%2 == 1, s.err
}

// NO-21: a purge is an Info with its count, a sweep that failed an Error.
func TestLogLinesOfSweeps(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			err  error
			want []string
		}{
			{nil, []string{"INFO swept what=messages purged count=14"}},
			{errors.New("disk"), []string{"ERROR sweep failed error=disk", "INFO swept what=messages purged count=7"}},
		} {
			log := &journal{}
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			err := (&holdfast.Sweeper{Outbox: &sick{err: c.err}, Logger: slog.New(log)}).Run(ctx)
			cancel()
			if diff := cmp.Diff(log.of(""), c.want); err != nil || diff != "" {
				t.Errorf("%v (-got +want):\n%s", err, diff)
			}
		}
	})
}
