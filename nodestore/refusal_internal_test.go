package nodestore

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// known is a store whose channels and lists have the version 7. A test may not write to it.
type known struct {
	side.Store

	t *testing.T
}

func (k known) Change(_ context.Context, _ side.Cost, f func(tx side.Tx) error) error {
	return f(knownTx{t: k.t})
}

type knownTx struct {
	side.Tx

	t *testing.T
}

func (x knownTx) Read(_ string, _ []any, row func(scan side.Scan) error) error {
	return row(func(dest ...any) error {
		*dest[0].(*int64) = 7 //nolint:forcetypeassert // a version is read
		return nil
	})
}

func (x knownTx) Exec(sql string, _ ...any) (int64, error) {
	x.t.Errorf("a change that is refused has run %s", sql)
	return 0, nil
}

func (x knownTx) Put(list ...rows.Row) error {
	x.t.Errorf("a change that is refused has put %v", list)
	return nil
}

func (x knownTx) Note(e *holdfast.Entry) error {
	x.t.Errorf("a change that is refused has noted %v", e)
	return nil
}

// Calls share a transaction in SQLite. A refusal after a write undoes what all of them wrote, and each runs
// again alone, with a sync of its own: a few refusals took most of the speed from those who enqueue.
func TestARefusedChangeWritesNothing(t *testing.T) {
	t.Parallel()
	d := &Directory{known{t: t}}
	for what, err := range map[string]error{
		"a channel that is there already": d.PutChannel(t.Context(), notify.Channel{Name: "c", Kind: "email"}, ""),
		"a channel that has changed":      d.PutChannel(t.Context(), notify.Channel{Name: "c", Kind: "email", Version: 6}, ""),
		"an older channel":                d.DeleteChannel(t.Context(), "c", 6, ""),
		"a list that has changed":         d.PutList(t.Context(), notify.List{Name: "l", Version: 6}, ""),
		"an older list":                   d.DeleteList(t.Context(), "l", 6, ""),
	} {
		if !errors.Is(err, holdfast.ErrState) {
			t.Errorf("%s: %v, want ErrState", what, err)
		}
	}
}
