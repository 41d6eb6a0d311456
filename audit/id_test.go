package audit_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
)

// The id of an event has its time, and ids are in the order of time.
func TestAnEventIDHasItsTime(t *testing.T) {
	t.Parallel()
	last := holdfast.ID("")
	for _, micros := range []int64{0, 1, 4095, 4096, 1_796_000_000_123_456, 1_796_000_000_123_457, 1<<59 - 1} {
		id := audit.EventID(time.UnixMicro(micros), []byte("a"))
		if got, ok := audit.TimeOf(id); !ok || got != micros {
			t.Errorf("%s has the time %d, %t; want %d", id, got, ok, micros)
		}
		if id <= last {
			t.Errorf("%s does not follow %s", id, last)
		}
		last = id
	}
	before := audit.EventID(time.UnixMicro(-1), []byte("a"))
	if got, ok := audit.TimeOf(before); !ok || got != -1 {
		t.Errorf("%s has the time %d, %t; want -1", before, got, ok)
	}
	at := time.UnixMicro(1_796_000_000_123_456)
	if a, again, b := audit.EventID(at, []byte("a")), audit.EventID(at, []byte("a")), audit.EventID(at, []byte("b")); a != again || a == b {
		t.Errorf("one event has the ids %s and %s, and another one %s", a, again, b)
	}
	for _, id := range []holdfast.ID{holdfast.NewID(), "call-7", ""} {
		if _, ok := audit.TimeOf(id); ok {
			t.Errorf("%q has the time of an event", id)
		}
	}
}
