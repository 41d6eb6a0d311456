package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A file of the first release is brought up to date with all that is in it, in
// a file of its own and in a caller's. SF-16.
func TestAFileOfTheFirstReleaseIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("waits"), message("delivered"))
	if _, err := db.Settle(t.Context(), settlement(claim(t, db, 2)[1], holdfast.Delivered)); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	old := raw(t, path)
	for _, table := range []string{"hf_notification", "hf_notification_body", "hf_target", "hf_channel", "hf_list", "hf_recipient"} {
		run(t, old, "DROP TABLE "+table)
	}
	run(t, old, "UPDATE hf_meta SET value = 1 WHERE key IN ('schema', 'schema_again')")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	from, to, err := sqlite.Migrate(t.Context(), path, sqlite.Options{})
	if err != nil || from != 1 || to < 2 {
		t.Fatalf("from %d to %d, %v", from, to, err)
	}
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	for id, want := range map[holdfast.ID]string{"waits": "pending", "delivered": "delivered"} {
		if got := stateOf(t, db, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	ingest(t, db, notification("n", "plant-1"))
	if err := db.PutList(t.Context(), notify.List{Name: "ops"}); err != nil {
		t.Error(err)
	}
	audit(t, db)
}
