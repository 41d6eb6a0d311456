package logs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast/internal/logs"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

func TestLinesComeOutWholeAndInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := logs.New(&out)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 1000 {
				_, _ = fmt.Fprintf(w, "%d %d\n", n, i)
			}
		})
	}
	all.Wait()
	w.Close(time.Minute)
	next := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var who string
		var i int
		if _, err := fmt.Sscanf(line, "%s %d\n", &who, &i); err != nil || i != next[who] {
			t.Fatalf("line %q: %v, want number %d", line, err, next[who])
		}
		next[who]++
	}
	if lost, _ := w.Lost(); lost != 0 || len(next) != 8 {
		t.Errorf("%d lost, of %d writers", lost, len(next))
	}
}

// gate is a reader that takes its time: each write says that it has begun, and
// the lines are read when it may end.
type gate struct {
	begun chan struct{}
	read  chan struct{}
	out   strings.Builder
}

func (g *gate) Write(p []byte) (int, error) {
	g.begun <- struct{}{}
	<-g.read
	return g.out.Write(p)
}

// F1-53: what is being written is not written over by what comes meanwhile,
// also after the writer had nothing to do.
func TestLinesThatComeDuringAWriteLeaveItAlone(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		g := &gate{begun: make(chan struct{}), read: make(chan struct{})}
		w := logs.New(g)
		var want strings.Builder
		for round := range 5 {
			for _, s := range []string{"during\n", "meanwhile\n"} {
				line := fmt.Sprintf("%d %s", round, s)
				want.WriteString(line)
				_, _ = io.WriteString(w, line)
				if s == "during\n" {
					<-g.begun
				}
			}
			g.read <- struct{}{}
			<-g.begun
			g.read <- struct{}{}
			synctest.Wait() // it has nothing to do
		}
		w.Close(time.Minute)
		if got := g.out.String(); got != want.String() {
			t.Errorf("got\n%swant\n%s", got, want.String())
		}
	})
}

// F1-53: a reader that stands costs lines, which are counted, and nobody waits
// for it; once it reads again, lines come out again.
func TestAReaderThatStandsCostsLinesAndNothingElse(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		from, to := io.Pipe()
		w := logs.New(to)
		line := strings.Repeat("x", 1023) + "\n"
		const sent = 5000 // more than there is room for
		for range sent {
			if n, err := io.WriteString(w, line); n != len(line) || err != nil {
				t.Fatalf("got %d, %v", n, err)
			}
		}
		lost, last := w.Lost()
		if lost == 0 || lost >= sent || time.Since(last) != 0 {
			t.Errorf("%d lost at %v", lost, last)
		}
		got := make(chan int64, 1)
		go func() {
			n, _ := io.Copy(io.Discard, from)
			got <- n / int64(len(line))
		}()
		synctest.Wait()
		_, _ = io.WriteString(w, line)
		w.Close(time.Minute)
		_ = to.Close()
		if read := <-got; read != sent+1-lost {
			t.Errorf("%d lines were read, %d were lost, of %d", read, lost, sent+1)
		}
	})
}

// A writer that is closed gives a reader that stands a moment, and no more.
func TestCloseWaitsForABoundedTime(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		from, to := io.Pipe()
		w := logs.New(to)
		_, _ = io.WriteString(w, "a\n")
		began := time.Now()
		w.Close(time.Second)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v", took)
		}
		_ = from.Close() // ends the write that stands
	})
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("nobody reads")
	}
	return len(p), nil
}

func TestWhatCannotBeWrittenIsCounted(t *testing.T) {
	t.Parallel()
	w := logs.New(&failing{})
	for range 7 {
		_, _ = io.WriteString(w, "a\n")
	}
	w.Close(time.Minute)
	_, _ = io.WriteString(w, "after the end\n")
	if lost, _ := w.Lost(); lost != 8 {
		t.Errorf("%d lost, want 8", lost)
	}
}
