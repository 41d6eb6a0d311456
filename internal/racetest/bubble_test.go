package racetest_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// Timers of one bubble that fire at one instant, while others are looked at: under the
// race detector of Go 1.26 this crashes within a second on two processors.
func TestBubbleOfManyTimers(t *testing.T) {
	t.Parallel()
	for range 20 {
		racetest.Bubble(t, func(*testing.T) {
			var looking sync.WaitGroup
			for range 16 {
				looking.Go(lookAtTimers)
			}
			looking.Wait()
		})
	}
}

func lookAtTimers() {
	for range 60 {
		first, second := time.NewTimer(time.Second), time.NewTimer(time.Second)
		work := time.AfterFunc(time.Second, func() { <-time.After(0) })
		<-first.C
		select {
		case <-second.C:
		default:
		}
		second.Reset(0)
		<-second.C
		work.Stop()
	}
}

// Two bubbles at once, the first of which ends first: the processors come back after both.
func TestBubblesGiveTheProcessorsBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var both sync.WaitGroup
	first, second := make(chan bool), make(chan bool)
	for _, end := range []chan bool{first, second} {
		both.Go(func() { racetest.Bubble(t, func(*testing.T) { <-end }) })
	}
	first <- true
	close(second)
	both.Wait()
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("%d processors after the bubbles, %d before", after, before)
	}
}
