package storecopy_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// F1-51: what is held in the source because its clock is doubted is held in the copy.
func TestACopyDoubtsWhatItsSourceDoubts(t *testing.T) {
	t.Parallel()
	from := newFile(t)
	db := open(t, from)
	put(t, db, holdfast.Message{ID: "held", TTL: 24 * time.Hour})
	shut(t, db)
	handle, err := sql.Open("sqlite", from)
	must(t, err)
	const ago = 48 * time.Hour // since then nobody has seen time pass
	for _, s := range []string{
		"UPDATE hf_meta SET value = value - %d WHERE key IN ('clock', 'wall', 'wall_high')",
		"UPDATE hf_message SET created = created - %[1]d, due = due - %[1]d, expires = expires - %[1]d",
		"UPDATE hf_entry SET at = at - %d",
	} {
		_, err := handle.ExecContext(t.Context(), fmt.Sprintf(s, ago.Microseconds()))
		must(t, err)
	}
	must(t, handle.Close())
	file, database := newFile(t), pgtest.Shared(t).Database(t)
	copied(t, from, database)
	heldIn(t, database)
	unused(t, database)
	copied(t, database, file)
	heldIn(t, file)
}

func heldIn(t *testing.T, at string) {
	t.Helper()
	db := open(t, at)
	defer shut(t, db)
	for more := true; more; {
		var err error
		_, more, err = db.Expire(t.Context())
		must(t, err)
	}
	r, err := db.Get(t.Context(), "held")
	must(t, err)
	if r.State != holdfast.Pending || r.HeldUntil.IsZero() {
		t.Errorf("%s: it is %s, and held until %s", at, r.State, r.HeldUntil)
	}
}
