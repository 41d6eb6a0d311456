package racetest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Bubble runs f as [synctest.Test] does: in virtual time. Under the race detector it
// runs on one processor meanwhile. All timers of a bubble share one context of the
// detector, and Go 1.26 lets two processors use it at once: one that fires a timer,
// and one that looks at another timer's channel. Then the detector crashes
// (golang/go#78156). One processor finds the same races, since what the detector
// looks for is an order, not an instant. It may be called by several tests at once.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if On() {
		processors.narrow()
		defer processors.widen()
	}
	synctest.Test(t, f)
}

var processors width

// A width counts the bubbles that run, and gives the processors back after the last.
type width struct {
	mu      sync.Mutex
	bubbles int
	before  int
}

func (w *width) narrow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bubbles++; w.bubbles == 1 {
		w.before = runtime.GOMAXPROCS(1)
	}
}

func (w *width) widen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bubbles--; w.bubbles == 0 {
		runtime.GOMAXPROCS(w.before)
	}
}
