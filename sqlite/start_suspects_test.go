package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// After a crash claims are written down before they are handed out. Whatever
// statement of such a claim fails, the caller is told, and nothing is handed out
// that is not written down.
func TestNoErrorOfACarefulClaimIsSwallowed(t *testing.T) {
	t.Parallel()
	before := fresh(t, sqlite.Options{})
	enqueue(t, before, message("a"), message("b"), message("c"))
	claim(t, before, 1)
	crashed := copyOf(t, before.Path())
	shut(t, before)
	for n := 1; ; n++ {
		p := &tap{}
		db := open(t, copyOf(t, crashed), sqlite.Options{}.With(p.wrap))
		if db.Careful() == 0 {
			t.Fatal("claims are not written down")
		}
		failed := p.fail(n)
		b, err := db.Claim(t.Context(), map[string]int{"a": 3})
		p.set(nil, nil)
		_ = db.Close() // it may have stopped itself
		if !failed.Load() {
			if n < 5 || err != nil || len(b.Claims) == 0 {
				t.Errorf("without a fault %d are claimed, %v, after %d statements", len(b.Claims), err, n-1)
			}
			return
		}
		if err == nil || len(b.Claims) > 0 {
			t.Errorf("statement %d failed: %d are claimed, %v", n, len(b.Claims), err)
		}
	}
}

// The answer of a handler is part of what Process did. Whatever statement of it
// fails, the caller is told.
func TestNoErrorOfProcessIsSwallowed(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		p := &tap{}
		db := fresh(t, sqlite.Options{}.With(p.wrap))
		failed := p.fail(n)
		r, err := db.Process(t.Context(), holdfast.Message{ID: "m", Source: "web", Endpoint: "Book"}, time.Hour,
			func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return []byte("booked"), nil })
		p.set(nil, nil)
		_ = db.Close()
		if !failed.Load() {
			if n < 4 || err != nil || r.Duplicate {
				t.Errorf("without a fault: %+v, %v, after %d statements", r, err, n-1)
			}
			return
		}
		if err == nil {
			t.Errorf("statement %d failed: %+v", n, r)
		}
	}
}
