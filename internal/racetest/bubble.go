package racetest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Bubble runs f like [synctest.Test], in virtual time. Under the race detector it runs on one
// processor meanwhile. All timers of a bubble share one context of the detector, and Go 1.26 lets
// two processors use it at once: one that fires a timer, and one that reads another timer's
// channel. Then the detector crashes (golang/go#78156). One processor finds the same races, since
// the detector looks at order, not at time. Tests may call it concurrently.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if On() {
		processors.narrow()
		defer processors.widen()
	}
	synctest.Test(t, f)
}

var processors width

// A width counts the running bubbles, and restores the number of processors after the last.
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
