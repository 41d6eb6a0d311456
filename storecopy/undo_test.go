package storecopy_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
)

var errCut = errors.New("cut off")

// closable is a source that is open.
type closable interface {
	storecopy.Source
	io.Closer
}

func tryOpenSource(ctx context.Context, at string) (closable, error) {
	if isDSN(at) {
		return postgres.OpenSource(ctx, at)
	}
	return sqlite.OpenSource(ctx, at)
}

func openSource(t testing.TB, at string) closable {
	t.Helper()
	s, err := tryOpenSource(t.Context(), at)
	must(t, err)
	return s
}

// stuck dies before its mark is taken away.
type stuck struct{ storecopy.Source }

func (stuck) Unmark(context.Context) error { return errCut }

// undo takes back what was moved; to: none is lost.
func undo(t testing.TB, from, to string, cut bool) error {
	t.Helper()
	s := openSource(t, from)
	defer shut(t, s)
	source, target := storecopy.Source(s), storecopy.Source(nil)
	if cut {
		source = stuck{s}
	}
	if to != "" {
		other := openSource(t, to)
		defer shut(t, other)
		target = other
	}
	_, err := storecopy.Undo(t.Context(), source, target, from)
	return err
}

// A move that is taken back lets the source be used again, and not the target;
// only while no node has used that, and wherever it is cut off.
func TestUndo(t *testing.T) {
	t.Parallel()
	file, dsn := newFile(t), pgtest.Shared(t).Database(t)
	filled(t, file)
	t.Run("a file", func(t *testing.T) { undone(t, file, func() string { return pgtest.Shared(t).Database(t) }) })
	copied(t, file, dsn)
	t.Run("a database", func(t *testing.T) { undone(t, dsn, func() string { return newFile(t) }) })
}

func undone(t *testing.T, from string, target func() string) {
	t.Helper()
	opens := func(at string, want error, text string) {
		t.Helper()
		db, err := tryOpen(t.Context(), at)
		if want != nil {
			refused(t, err, want, text)
			return
		}
		must(t, err)
		shut(t, db)
	}
	to, other := target(), target()
	refused(t, undo(t, from, "", false), holdfast.ErrNotFound, "was not moved")
	copied(t, from, to)
	opens(other, nil, "")
	refused(t, undo(t, from, other, false), storecopy.ErrElsewhere, "but to "+to)

	// Between the two marks neither can be used, and the next call ends it.
	refused(t, undo(t, from, to, true), errCut, "")
	opens(from, storecopy.ErrMoved, "to "+to)
	opens(to, storecopy.ErrMoved, "to "+from)
	must(t, undo(t, from, to, false))
	opens(to, storecopy.ErrMoved, "to "+from)
	opens(from, nil, "")
	refused(t, undo(t, from, to, false), holdfast.ErrNotFound, "was not moved")

	// Into one that nodes then use.
	to = target()
	copied(t, from, to)
	opens(to, nil, "")
	refused(t, undo(t, from, to, false), storecopy.ErrUsed, "the way back is a copy")
	opens(from, storecopy.ErrMoved, "to "+to)

	// And as if it were lost.
	must(t, undo(t, from, "", false))
	opens(from, nil, "")
}
