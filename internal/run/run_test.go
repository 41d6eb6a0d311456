package run_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/run"
)

var errDisk = errors.New("disk full")

// journal is what happened, in order. Its methods are safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// steady runs until it is stopped, then takes the time that finishing needs and returns err.
func (j *journal) steady(name string, finishing time.Duration, err error) run.Part {
	return run.Part{Name: name, Run: func(ctx context.Context) error {
		<-ctx.Done()
		j.add("stop " + name)
		time.Sleep(finishing)
		j.add("end " + name)
		return err
	}}
}

// brief ends by itself after the given time.
func (j *journal) brief(name string, after time.Duration, err error) run.Part {
	return run.Part{Name: name, Run: func(context.Context) error {
		time.Sleep(after)
		j.add("end " + name)
		return err
	}}
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: got %v, want %v (-want +got):\n%s", what, got, want, diff)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPartsStopOneByOneLastFirst(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var j journal
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		err := run.All(ctx,
			j.steady("store", time.Second, nil),
			j.steady("dispatcher", 10*time.Second, nil),
			j.steady("server", 5*time.Second, nil),
		)
		check(t, "error", text(err), "")
		check(t, "journal", j.read(), []string{
			"stop server", "end server",
			"stop dispatcher", "end dispatcher",
			"stop store", "end store",
		})
		check(t, "time", time.Since(began), time.Hour+16*time.Second)
	})
}

func TestAPartThatFailsStopsTheOthers(t *testing.T) {
	t.Parallel()
	// The failing part stands first, between and last: the rest stops in the same order.
	cases := map[string]struct {
		parts func(j *journal) []run.Part
		want  []string
	}{
		"first": {
			func(j *journal) []run.Part {
				return []run.Part{j.brief("bad", time.Minute, errDisk), j.steady("b", 0, nil), j.steady("c", 0, nil)}
			},
			[]string{"end bad", "stop c", "end c", "stop b", "end b"},
		},
		"between": {
			func(j *journal) []run.Part {
				return []run.Part{j.steady("a", 0, nil), j.brief("bad", time.Minute, errDisk), j.steady("c", 0, nil)}
			},
			[]string{"end bad", "stop c", "end c", "stop a", "end a"},
		},
		"last": {
			func(j *journal) []run.Part {
				return []run.Part{j.steady("a", 0, nil), j.steady("b", 0, nil), j.brief("bad", time.Minute, errDisk)}
			},
			[]string{"end bad", "stop b", "end b", "stop a", "end a"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				var j journal
				err := run.All(t.Context(), c.parts(&j)...)
				if !errors.Is(err, errDisk) {
					t.Errorf("got error %v, want one that is %v", err, errDisk)
				}
				check(t, "error", text(err), "bad: disk full")
				check(t, "journal", j.read(), c.want)
			})
		})
	}
}

func TestAPartThatEndsEarlyIsAFault(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var j journal
		err := run.All(t.Context(), j.steady("store", 0, nil), j.brief("server", time.Second, nil))
		if !errors.Is(err, run.ErrEarly) {
			t.Errorf("got error %v, want one that is ErrEarly", err)
		}
		check(t, "error", text(err), "server: ended before it was stopped")
		check(t, "journal", j.read(), []string{"end server", "stop store", "end store"})
	})
}

func TestAPartThatIsStoppedMayReturnNil(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var j journal
		err := run.All(t.Context(), j.steady("store", 0, nil), j.brief("server", time.Second, errDisk))
		if errors.Is(err, run.ErrEarly) {
			t.Errorf("got error %v, want none that is ErrEarly", err)
		}
		check(t, "error", text(err), "server: disk full")
	})
}

func TestEveryErrorIsReported(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		errFlush := errors.New("flush: short write")
		var j journal
		err := run.All(t.Context(),
			j.steady("store", 0, errFlush),
			j.steady("inbox", 0, nil),
			j.brief("server", time.Second, errDisk),
		)
		for _, want := range []error{errDisk, errFlush} {
			if !errors.Is(err, want) {
				t.Errorf("got error %v, want one that is %v", err, want)
			}
		}
		check(t, "error", text(err), "server: disk full\nstore: flush: short write")
	})
}

func TestAPartMayFailWhileAnotherIsBeingStopped(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var j journal
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		// The group waits for the dispatcher from 1m00 to 1m10; both others end in that time,
		// before their own turn comes.
		err := run.All(ctx,
			j.brief("store", time.Minute+3*time.Second, errDisk),
			j.brief("inbox", time.Minute+6*time.Second, nil),
			j.steady("dispatcher", 10*time.Second, nil),
		)
		check(t, "error", text(err), "store: disk full\ninbox: ended before it was stopped")
		check(t, "journal", j.read(), []string{"stop dispatcher", "end store", "end inbox", "end dispatcher"})
		check(t, "time", time.Since(began), time.Minute+10*time.Second)
	})
}

func TestAPartKnowsTheGroupsValuesButNotItsEnd(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "site-7"), time.Second)
		defer cancel()
		var j journal
		err := run.All(ctx,
			run.Part{Name: "store", Run: func(partCtx context.Context) error {
				check(t, "value", partCtx.Value(key{}), any("site-7"))
				if at, ok := partCtx.Deadline(); ok {
					t.Errorf("got deadline %v, want none", at)
				}
				<-ctx.Done()
				synctest.Wait() // the group is now waiting for the server
				check(t, "own context while the server ends", text(partCtx.Err()), "")
				<-partCtx.Done()
				return nil
			}},
			j.steady("server", time.Minute, nil),
		)
		check(t, "error", text(err), "")
	})
}

func TestAGroupWithoutPartsWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		check(t, "error", text(run.All(ctx)), "")
		check(t, "time", time.Since(began), time.Hour)
	})
}

func TestPartsAreRunThoughTheGroupHasEnded(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var j journal
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, "error", text(run.All(ctx, j.steady("store", 0, nil), j.steady("server", 0, nil))), "")
		check(t, "journal", j.read(), []string{"stop server", "end server", "stop store", "end store"})
	})
}
