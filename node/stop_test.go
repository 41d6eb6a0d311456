package node_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-37, F1-53: whatever hangs, a stop takes the grace and two seconds more at
// most; only a mail whose answer is awaited is waited for, half a minute.
func TestAStopIsBounded(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second
	for name, c := range map[string]struct {
		answer time.Duration // of a mail, after the stop; 0: there is none
		end    time.Duration // of what hangs; 0: never
		least  time.Duration
		most   time.Duration
		cut    bool
	}{
		"nothing hangs":            {end: 3 * time.Second, least: 3 * time.Second, most: 3 * time.Second},
		"something hangs":          {least: grace, most: grace + 2*time.Second, cut: true},
		"a mail is answered":       {answer: 25 * time.Second, end: 26 * time.Second, least: 26 * time.Second, most: 26 * time.Second},
		"a mail is never answered": {answer: time.Hour, least: grace + notify.LastAnswer, most: grace + notify.LastAnswer + 5*time.Second, cut: true},
		"something hangs besides":  {answer: 20 * time.Second, least: 20 * time.Second, most: 25 * time.Second, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				over, done := make(chan struct{}), make(chan struct{})
				began := time.Now()
				cancel()
				err := node.Bounded(ctx, &config.Config{Stop: grace, Drain: time.Second}, func(a *notify.Answers) error {
					defer close(done)
					if c.answer > 0 {
						answered := notify.Await(a.With(ctx))
						timer := time.AfterFunc(c.answer, answered)
						defer timer.Stop()
					}
					var ends <-chan time.Time
					if c.end > 0 {
						ends = time.After(c.end)
					}
					select {
					case <-ends:
					case <-over:
					}
					return nil
				})
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("took %v, want %v to %v", took, c.least, c.most)
				}
				if errors.Is(err, node.ErrCutOff) != c.cut {
					t.Errorf("got %v", err)
				}
				close(over)
				<-done
			})
		})
	}
}
