package storecopy_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// What is in the way is said, and nothing is changed.
func TestWhatIsInTheWayIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	file, dsn := newFile(t), pgtest.Shared(t).Database(t)
	filled(t, file)
	try := func(from, to string) error { return copyStore(ctx, from, to, nil) }

	db := open(t, file)
	refused(t, try(file, dsn), sqlite.ErrOwned, "stop it")
	shut(t, db)
	refused(t, try(newFile(t), dsn), os.ErrNotExist, "")

	other := open(t, dsn)
	refused(t, try(file, dsn), storecopy.ErrInUse, "process ")
	put(t, other, holdfast.Message{ID: "mine"})
	shut(t, other)
	refused(t, try(file, dsn), storecopy.ErrNotEmpty, "messages")
	refused(t, try(dsn, dsn), storecopy.ErrSame, "")
	filled(t, filepath.Join(t.TempDir(), "other.db"))

	// A source that is used in between is another one.
	empty := pgtest.Shared(t).Database(t)
	stop, cancel := context.WithCancel(ctx)
	if err := copyStore(stop, file, empty, func(s storecopy.Status) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("a copy that is cancelled: %v", err)
	}
	_, err := tryOpen(ctx, empty)
	refused(t, err, storecopy.ErrUnfinished, "holdfast copy again")
	shut(t, open(t, file)) // it is not marked as moved
	refused(t, try(file, empty), storecopy.ErrChanged, "begin again")
	run(t, empty, "UPDATE hf_meta SET value = '99' WHERE key = 'schema'")
	refused(t, try(file, empty), postgres.ErrNewer, "")
}

// A row that is not what it was is found before anything is let go.
func TestATamperedRowIsFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"payload":  {"UPDATE hf_message SET payload = 'y' WHERE id = '\\x02' || 'delivered'::bytea", "message delivered"},
		"state":    {"UPDATE hf_final SET state = 5 WHERE state = 3", "the state differs"},
		"inbox":    {"DELETE FROM hf_inbox WHERE NOT kept AND response = 'ok'", "incoming message processed"},
		"history":  {"UPDATE hf_entry SET actor = 'eve' WHERE actor = 'mo'", "the actor differs"},
		"counters": {"UPDATE hf_tally SET pending = pending + 1 WHERE pending > 0", "counts"},
		"site":     {"UPDATE hf_site SET hash = NULL WHERE name = 'plant-7'", "site \"plant-7\" the credential differs"},
		"token":    {"UPDATE hf_token SET role = 'admin'", "token \"ops\" the role differs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := newFile(t), pgtest.Shared(t).Database(t)
			filled(t, from)
			err := copyStore(t.Context(), from, to, func(s storecopy.Status) {
				if s.Phase == "inbox" && s.Done == s.All {
					run(t, to, change[0])
				}
			})
			refused(t, err, storecopy.ErrDiffers, change[1])
			_, err = tryOpen(t.Context(), to)
			refused(t, err, storecopy.ErrUnfinished, "")
			shut(t, open(t, from))
		})
	}
}

// What was in hand of a process that died is pending after the move, and has
// been tried once more.
func TestClaimsOfTheDeadArePending(t *testing.T) {
	t.Parallel()
	file, dsn, back := newFile(t), pgtest.Shared(t).Database(t), newFile(t)
	db := open(t, file)
	put(t, db, holdfast.Message{ID: "in-hand"}, holdfast.Message{ID: "second"})
	shut(t, db)
	handle, err := sql.Open("sqlite", file)
	must(t, err)
	_, err = handle.ExecContext(t.Context(), "UPDATE hf_message SET state = 1 WHERE id = 'in-hand'")
	must(t, errors.Join(err, handle.Close()))
	tried := func(id string, tries int) {
		t.Helper()
		db := open(t, dsn)
		defer shut(t, db)
		r, err := db.Get(t.Context(), holdfast.ID(id))
		if err != nil || r.State != holdfast.Pending || r.Tries != tries {
			t.Errorf("%s is %s after %d tries, %v; want pending after %d", id, r.State, r.Tries, err, tries)
		}
	}
	copied(t, file, dsn)
	tried("in-hand", 1)
	tried("second", 0)
	run(t, dsn, "UPDATE hf_queue SET owner = 999, claim = 1 WHERE seq = (SELECT max(seq) FROM hf_queue)")
	copied(t, dsn, back)
	dsn = back
	tried("in-hand", 1)
	tried("second", 1)
}

// What is damaged, and what PostgreSQL cannot keep, is named.
func TestWhatCannotBeMovedIsNamed(t *testing.T) {
	t.Parallel()
	file, dsn := newFile(t), pgtest.Shared(t).Database(t)
	db := open(t, file)
	put(t, db, holdfast.Message{ID: "odd", CorrelationID: "a"})
	shut(t, db)
	handle, err := sql.Open("sqlite", file)
	must(t, err)
	_, err = handle.ExecContext(t.Context(), "UPDATE hf_body SET corr = 'b'")
	must(t, errors.Join(err, handle.Close()))
	refused(t, copyStore(t.Context(), file, dsn, nil), storecopy.ErrContent, "odd to a is damaged")

	file, dsn = newFile(t), pgtest.Shared(t).Database(t)
	db = open(t, file)
	m := arrival("nul")
	m.CorrelationID = "a\x00b"
	_, err = db.Keep(t.Context(), time.Hour, m)
	must(t, err)
	shut(t, db)
	refused(t, copyStore(t.Context(), file, dsn, nil), storecopy.ErrContent, "incoming message nul: ")
	copied(t, file, newFile(t))

	file, dsn = newFile(t), pgtest.Shared(t).Database(t)
	db = open(t, file)
	must(t, db.PauseLane(t.Context(), "a\x00b", "mo"))
	shut(t, db)
	refused(t, copyStore(t.Context(), file, dsn, nil), storecopy.ErrContent, "hf_lane")
}

// A store that a release of before tables has filled opens, and is no target; a copy of that one that has not
// ended begins again.
func TestACopyOfAnEarlierReleaseIsNotGoneOnWith(t *testing.T) {
	t.Parallel()
	const before = `{"from":"a","store":"s","use":"u","base":1,"here_now":2,"part":"compare","after":17,"copied":{"messages":1,"history":0,"inbox":0,"notifications":0}`
	const ended, cut = before + `,"done":true,"ended":"e"}`, before + `,"done":false}`
	must(t, storecopy.Refusal("", ended))
	refused(t, storecopy.Refusal("", cut), storecopy.ErrUnfinished, "start over")
	file, dsn := newFile(t), pgtest.Shared(t).Database(t)
	filled(t, file)
	source, err := sqlite.OpenSource(t.Context(), file)
	must(t, err)
	o, err := source.Origin(t.Context())
	must(t, errors.Join(err, source.Close()))
	shut(t, open(t, dsn))
	run(t, dsn, "INSERT INTO hf_meta (key, value) VALUES ('copy', '"+strings.Replace(cut, `"store":"s"`, `"store":"`+o.Store+`"`, 1)+"')")
	refused(t, copyStore(t.Context(), file, dsn, nil), storecopy.ErrUnfinished, "empty ")
	_, err = tryOpen(t.Context(), dsn)
	refused(t, err, storecopy.ErrUnfinished, "start over")
	run(t, dsn, "UPDATE hf_meta SET value = '"+ended+"' WHERE key = 'copy'")
	shut(t, open(t, dsn))
	refused(t, copyStore(t.Context(), file, dsn, nil), storecopy.ErrNotEmpty, "copied from a")
}

// dying is a target whose last step fails.
type dying struct{ storecopy.Importer }

var errDied = errors.New("died")

func (dying) End(context.Context, storecopy.Progress) error { return errDied }

// Between the mark of the source and the end of the copy no store can be
// opened, and the same copy ends it.
func TestDeathBeforeTheLastStep(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	file, dsn := newFile(t), pgtest.Shared(t).Database(t)
	filled(t, file)
	source, err := sqlite.OpenSource(ctx, file)
	must(t, err)
	o, err := source.Origin(ctx)
	must(t, err)
	target, err := postgres.OpenTarget(ctx, dsn, o)
	must(t, err)
	_, err = postgres.Open(ctx, dsn, postgres.Options{Timeout: 5 * time.Second})
	refused(t, err, holdfast.ErrUnavailable, "lock") // nodes are kept out
	_, err = storecopy.Copy(ctx, source, dying{target}, storecopy.Options{From: file, To: dsn})
	refused(t, err, errDied, "run the same command again")
	shut(t, source)
	shut(t, target)
	_, err = tryOpen(ctx, file)
	refused(t, err, storecopy.ErrMoved, dsn)
	_, err = tryOpen(ctx, dsn)
	refused(t, err, storecopy.ErrUnfinished, file)
	refused(t, copyStore(ctx, file, newFile(t), nil), storecopy.ErrMoved, dsn) // not elsewhere

	// F1-113: nobody has used the target, so the move can be taken back here, and
	// made again.
	must(t, undo(t, file, dsn, false))
	_, err = tryOpen(ctx, dsn)
	refused(t, err, storecopy.ErrUnfinished, file)
	copied(t, file, dsn)
	must(t, copyStore(ctx, file, dsn, nil)) // an end that is reached twice is one
	shut(t, open(t, dsn))
	_, err = tryOpen(ctx, file)
	refused(t, err, storecopy.ErrMoved, dsn)
}
