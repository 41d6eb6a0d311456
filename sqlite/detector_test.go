package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// The race detector is switched off for SQLite as it was translated from C
// (scripts/test): it sees all the same what races with our own code and with the
// driver's, and raises no alarm where the store itself puts things in order.
func TestTheDetectorWatches(t *testing.T) {
	t.Parallel()
	if !racetest.On() {
		t.Skip("it is the race detector that is tested")
	}
	for what, want := range map[string]bool{"payload": true, "parameter": true, "result": true, "order": false} {
		c := exec.Command(os.Args[0], what, t.TempDir())
		c.Env = append(os.Environ(), childEnv+"=race")
		out, _ := c.CombinedOutput()
		lines := string(out)
		if got := strings.Contains(lines, "WARNING: DATA RACE"); got != want || !strings.Contains(lines, "ended") {
			t.Errorf("%s: a race was reported: %t, want %t\n%s", what, got, want, lines)
		}
	}
}

// raceChild does what races, or does not, and says what the detector says.
func raceChild(what, folder string) {
	ctx := context.Background()
	open := func() *sqlite.DB {
		db, err := sqlite.Open(ctx, filepath.Join(folder, "holdfast.db"), sqlite.Options{})
		must(err)
		return db
	}
	payload := []byte(`{"n":1}`)
	switch what {
	case "payload": // changed by the caller while the store reads it
		db := open()
		beside(func() { payload[5]++ }, func() {
			_, err := db.Enqueue(ctx, holdfast.Message{Destination: "a", Endpoint: "E", Payload: payload})
			must(err)
		})
		must(db.Close())
	case "parameter", "result": // and while the driver does, or writes it
		db, err := sql.Open("sqlite", filepath.Join(folder, "plain.db"))
		must(err)
		_, err = db.ExecContext(ctx, "CREATE TABLE t (b BLOB); INSERT INTO t VALUES (x'00')")
		must(err)
		beside(func() { payload[5]++ }, func() {
			if what == "parameter" {
				_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (?)", payload)
				must(err)
				return
			}
			rows, err := db.QueryContext(ctx, "SELECT zeroblob(100)")
			must(err)
			for rows.Next() {
				var b sql.RawBytes
				must(rows.Scan(&b))
				payload[5] = b[0]
			}
			must(rows.Err())
			must(rows.Close())
		})
		must(db.Close())
	case "order": // what was written before Enqueue is read after Claim
		db := open()
		seen, sum := map[holdfast.ID]int{}, 0
		var both sync.WaitGroup
		both.Go(func() {
			for i := range 50 {
				id := holdfast.NewID()
				payload[5] = byte('0' + i%10)
				_, err := db.Enqueue(ctx, holdfast.Message{ID: id, Destination: "a", Endpoint: "E", Payload: payload})
				must(err)
			}
		})
		both.Go(func() {
			for len(seen) < 50 {
				b, err := db.Claim(ctx, map[string]int{"a": 10})
				must(err)
				for _, c := range b.Claims {
					seen[c.Message.ID]++
					sum += len(c.Message.Payload)
				}
			}
		})
		both.Wait()
		must(db.Close())
	}
	say("ended")
}

// beside does both again and again, with nothing that puts them in order.
func beside(one, other func()) {
	var both sync.WaitGroup
	for _, do := range []func(){one, other} {
		both.Go(func() {
			for range 100 {
				do()
			}
		})
	}
	both.Wait()
}
