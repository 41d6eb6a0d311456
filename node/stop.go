package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/notify"
)

// How a node stops:
//
//	told ──► draining: served as before, only /readyz says 503
//	     ──► grace: nothing more is taken, work in hand may end
//	     ──► last words: what was cut off returns, the store closes; what waits for
//	         a store that hangs is given up
//	     ──► cut off: whatever still hangs is left behind, and ends with the process
//
// Drain and grace together are Config.Stop. A mail whose answer is still expected is waited for (NO-12), up
// to notify.LastAnswer.
const (
	lastWords = time.Second             // for cut-off attempts to return
	allWords  = 1500 * time.Millisecond // for everything after the grace; with the log's last lines it is 2 s
	lookAgain = 100 * time.Millisecond  // after the grace: interval of checks whether the store hangs and whether all requests are answered
)

// ErrCutOff says that a node was told to stop, but some of its parts did not end in time. The next start
// finds what they had in hand.
var ErrCutOff = errors.New("the stop was cut off")

// halt is the stop of a node.
type halt struct {
	stop  context.Context //nolint:containedctx // of the parts: ends when nothing more is taken
	begin context.CancelFunc
	fails chan struct{} // closed when a part has ended by itself
	once  sync.Once
	until atomic.Pointer[time.Time] // when the grace is over; nil: nobody has told it to stop

	mu   sync.Mutex
	live map[string]bool // parts that run
}

func newHalt(ctx context.Context) *halt {
	h := &halt{fails: make(chan struct{}), live: map[string]bool{}}
	h.stop, h.begin = context.WithCancel(context.WithoutCancel(ctx))
	return h
}

// watch records which parts run, and when one fails.
func (h *halt) watch(parts []run.Part) []run.Part {
	for i, p := range parts {
		parts[i].Run = func(ctx context.Context) error {
			h.note(p.Name, true)
			err := p.Run(ctx)
			h.note(p.Name, false)
			if err != nil || ctx.Err() == nil {
				h.once.Do(func() { close(h.fails) })
			}
			return err
		}
	}
	return parts
}

func (h *halt) note(part string, runs bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if runs {
		h.live[part] = true
	} else {
		delete(h.live, part)
	}
}

// hanging names the parts that have not ended.
func (h *halt) hanging() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.live) == 0 {
		return "the store"
	}
	return strings.Join(slices.Sorted(maps.Keys(h.live)), ", ")
}

// left returns how much time a part may still take at a stop.
func (h *halt) left(grace time.Duration) time.Duration {
	if until := h.until.Load(); until != nil {
		return max(time.Until(*until), time.Millisecond)
	}
	return grace
}

// bounded runs f until it returns. Once the node is told to stop, it waits only as long as a stop may take.
func (n *Node) bounded(ctx context.Context, f func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	told := time.Now()
	select {
	case err := <-ended:
		return err
	case <-n.halt.fails:
		n.halt.begin()
	case <-ctx.Done():
		told = time.Now()
		n.log.InfoContext(ctx, "stopping", slog.Any("reason", context.Cause(ctx)), slog.String("drain", n.cfg.Drain.String()), slog.String("grace", n.grace().String()))
	}
	was := n.state.Swap(stopping)
	drain := time.NewTimer(n.cfg.Drain)
	defer drain.Stop()
	if was != ready || ctx.Err() == nil {
		drain.Reset(0) // nobody is served
	}
	until := told.Add(n.cfg.Stop)
	n.halt.until.Store(&until)
	last := time.NewTimer(time.Until(until) + allWords)
	defer last.Stop()
	awaited := false
	for {
		select {
		case err := <-ended:
			return err
		case <-drain.C:
			n.halt.begin()
		case <-last.C:
			if now := n.answers.Awaited(); (now || awaited) && time.Since(until) < notify.LastAnswer+2*allWords {
				if !awaited {
					n.log.WarnContext(ctx, "the stop waits for the answer to a mail that has left", slog.String("at_most", notify.LastAnswer.String()))
				}
				awaited = now
				last.Reset(allWords) // for the answer, and then for the record of it
				continue
			}
			return fmt.Errorf("%w %s after the node was told to: %s had not ended; the next start takes care of what was in hand",
				ErrCutOff, time.Since(told).Round(100*time.Millisecond), n.halt.hanging())
		}
	}
}

// letGo breaks off what waits for the store, once the grace of a stop is over and as long as the store hangs.
// A store that takes commits still gets the outcomes of cut-off attempts. A mail whose answer is still
// expected must be recorded too. The returned function ends letGo.
func (n *Node) letGo(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var looks sync.WaitGroup
	if n.special.giveUp != nil {
		looks.Go(func() { n.giveUp(ctx) })
	}
	return func() {
		cancel()
		looks.Wait()
	}
}

func (n *Node) giveUp(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-n.halt.stop.Done():
	}
	next := time.NewTimer(n.halt.left(n.grace()))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if !n.answers.Awaited() && n.special.hangs(ctx) && !n.answers.Awaited() {
			n.gaveUp.Store(true) // set first: errors come at once
			n.special.giveUp()
			return
		}
		next.Reset(lookAgain)
	}
}

// grace is how long work in hand may take at a stop, after the drain.
func (n *Node) grace() time.Duration { return max(n.cfg.Stop-n.cfg.Drain, time.Millisecond) }
