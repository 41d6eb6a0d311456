package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A store that is closed while somebody reads has no connection left: the last one would delete the log of whoever
// opens the file next.
func TestCloseLeavesNoConnection(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	for range 20 {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, db, message(""))
		var reads sync.WaitGroup
		some := make(chan struct{}, 8)
		for range 8 {
			reads.Go(func() {
				for _, err := db.List(t.Context(), holdfast.Query{}); err == nil; _, err = db.List(t.Context(), holdfast.Query{}) {
					select {
					case some <- struct{}{}:
					default:
					}
				}
			})
		}
		<-some
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if n := db.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		reads.Wait()
	}
}
