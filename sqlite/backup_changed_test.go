package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// OI-14: whether a backup is needed survives a restart, and follows every
// change that a restore would undo.
func TestOI14WhetherABackupIsNeeded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("first"), message("parked"), message("sent"))
	var n int
	copied := ""
	changed := func(what string, want bool) {
		t.Helper()
		got, err := db.ChangedSince(t.Context(), copied)
		if err != nil || got != want {
			t.Errorf("%s: changed %t, %v; want %t", what, got, err, want)
		}
		n++
		copied = filepath.Join(filepath.Dir(path), "copy"+string(rune('a'+n))+".db")
		if err := db.Backup(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	ok := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	changed("no copy yet", true)
	changed("nothing", false)
	claims := claim(t, db, 3)
	changed("a claim", false)
	ok(db.Settle(ctx, settlement(claims[0], holdfast.Pending)))
	changed("a failed attempt", true)
	ok(db.Settle(ctx, settlement(claims[1], holdfast.Parked)))
	changed("parked", true)
	ok(db.Settle(ctx, settlement(claims[2], holdfast.Delivered)))
	changed("delivered", true)
	ok(db.Discard(ctx, "parked", ""))
	changed("discarded", true)
	ok(db.Keep(ctx, time.Hour, holdfast.Message{ID: "i", Source: "s", Endpoint: "E"}))
	changed("received", true)
	ok(nil, db.Done(ctx, "s", "i", nil))
	changed("done", true)
	ok(db.Process(ctx, holdfast.Message{ID: "j", Source: "s", Endpoint: "E"}, time.Hour,
		func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, nil }))
	changed("processed", true)
	ok(nil, nodestore.New(db, nil).Tokens.CreateToken(ctx, "t", "admin", 0, [32]byte{1}, ""))
	changed("a token", true)
	ok(nil, db.PauseLane(ctx, "somewhere", ""))
	changed("a pause", true)
	shut(t, db)
	db = open(t, path, sqlite.Options{})
	changed("a restart", false)
	if err := os.WriteFile(copied, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed("a copy that cannot be read", true)
	shut(t, db)
}
