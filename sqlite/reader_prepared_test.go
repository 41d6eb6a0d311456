package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// More callers than the store has connections ask for the first time at once. None has a connection
// while it waits for another one to prepare its query.
func TestTheFirstQuestionsComeAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Reserve: -1})
		if err != nil {
			t.Fatal(err)
		}
		known, err := db.Enqueue(t.Context(), holdfast.Message{Destination: "d", Endpoint: "E", Payload: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if r, err := db.Get(ctx, known[0].ID); err != nil || r.Message.ID != known[0].ID || len(r.History) != 1 {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		all.Wait()
		cancel()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
