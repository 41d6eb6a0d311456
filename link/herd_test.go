package link_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// quiet is the outbox of a site whose messages the test itself hands to the
// link: five hundred stores would be too dear.
type quiet struct{ holdfast.Outbox }

func (quiet) Counts() holdfast.Counts { return holdfast.Counts{} }

func (quiet) List(context.Context, holdfast.Query) (holdfast.Page, error) {
	return holdfast.Page{}, nil
}

// counting is central's receiver, and counts how many calls are under way.
type counting struct {
	takes time.Duration

	atWork, most, messages atomic.Int64
}

func (c *counting) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r := c.ReceiveBatch(ctx, []holdfast.Message{m})[0]
	return r.Receipt, r.Err
}

func (c *counting) ReceiveBatch(_ context.Context, ms []holdfast.Message) []holdfast.Result {
	peak(&c.most, c.atWork.Add(1))
	defer c.atWork.Add(-1)
	time.Sleep(c.takes)
	c.messages.Add(int64(len(ms)))
	results := make([]holdfast.Result, len(ms))
	for i := range ms {
		results[i].Receipt.ID = ms[i].ID
	}
	return results
}

func peak(most *atomic.Int64, n int64) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}

// greeted is a store that is asked for its incarnation when a poll begins.
type greeted struct {
	sites.Store
	atOnce, most atomic.Int64
}

func (g *greeted) Incarnation(ctx context.Context) (string, error) {
	peak(&g.most, g.atOnce.Add(1))
	defer g.atOnce.Add(-1)
	time.Sleep(100 * time.Millisecond)
	return g.Store.Incarnation(ctx)
}

// forward hands over so many messages as a lane does, and waits after what fails.
func forward(ctx context.Context, t *testing.T, s *link.Site, n int) {
	t.Helper()
	retry := holdfast.RetryPolicy{First: time.Second, Factor: 2, Max: 30 * time.Second, Jitter: time.Second, Attempts: holdfast.Unlimited}
	var ms []holdfast.Message
	for i := range n {
		m := message(i)
		m.Kind = holdfast.Signal
		ms = append(ms, m)
	}
	for failures := 0; len(ms) > 0 && ctx.Err() == nil; {
		size := min(s.BatchSize(), len(ms))
		results := s.DeliverBatch(ctx, ms[:size])
		var left []holdfast.Message
		var worst *holdfast.Failure
		for i, r := range results {
			if r.Err == nil {
				continue
			}
			left, worst = append(left, ms[i]), holdfast.AsFailure(r.Err)
			if worst.Outcome == holdfast.Permanent {
				t.Errorf("got %v", r.Err)
			}
		}
		ms = slices.Concat(left, ms[size:])
		if worst == nil {
			failures = 0
			continue
		}
		time.Sleep(retry.Next(failures, worst.RetryAfter))
		failures++
	}
}

// Central was away, and all its sites come back with a backlog: polls and
// batches are let in a few at a time, and within two minutes every site is
// connected and has nothing left.
func TestSitesComeBackTogether(t *testing.T) {
	t.Parallel()
	t.Run("50", func(t *testing.T) { t.Parallel(); comeBack(t, 50) })
	t.Run("500", func(t *testing.T) {
		t.Parallel()
		racetest.Without(t, "thousands of goroutines")
		comeBack(t, 500)
	})
}

func comeBack(t *testing.T, herd int) {
	t.Helper()
	const each = 20 // messages of a site
	receiver := &counting{takes: 250 * time.Millisecond}
	var polls *greeted
	within(t, func(w *world) {
		t := w.t
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		sites := make([]*link.Site, herd)
		for n := range sites {
			s, err := link.NewSite(link.SiteConfig{URL: address, File: w.enroll(fmt.Sprint("plant-", n)), Outbox: quiet{}, Dial: w.connect})
			if err != nil {
				t.Fatal(err)
			}
			sites[n] = s
			all.Go(func() { _ = s.Run(ctx) })
		}
		connected := func() (n int) {
			for _, s := range sites {
				if s.Status().Connected {
					n++
				}
			}
			return n
		}
		w.eventually(2*time.Minute, "all connected at first", func() bool { return connected() == herd })
		w.away()
		var forwarding sync.WaitGroup
		for _, s := range sites {
			forwarding.Go(func() { forward(ctx, t, s, each) })
		}
		time.Sleep(10 * time.Minute)
		if n := connected(); n != 0 || receiver.messages.Load() != 0 {
			t.Fatalf("%d sites are connected to a central that is away", n)
		}
		began := time.Now()
		w.start()
		forwarding.Wait()
		drained := time.Since(began)
		w.eventually(2*time.Minute, "all connected again", func() bool { return connected() == herd })
		back := time.Since(began)
		if drained > 2*time.Minute || back > 2*time.Minute {
			t.Errorf("the last site was through after %s and connected after %s, want two minutes at most", drained, back)
		}
		if got := receiver.messages.Load(); got != int64(herd*each) {
			t.Errorf("central got %d messages, want %d", got, herd*each)
		}
		if receiver.most.Load() > 16 || polls.most.Load() != 32 { // all said hello together at first
			t.Errorf("%d requests and %d polls at once, want at most 16, and 32", receiver.most.Load(), polls.most.Load())
		}
		cancel()
		all.Wait()
		for _, s := range sites {
			s.Close()
		}
	}, func(c *link.CentralConfig) {
		polls = &greeted{Store: c.Store}
		c.AtWork, c.Receiver, c.Store = 1, receiver, polls
	})
}
