package postgres

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/rows"
)

// A follower of the journal may return any row: none becomes another statement.
func TestOnlyPlainRowsArePut(t *testing.T) {
	t.Parallel()
	for _, table := range rows.Tables() {
		if !table.Split {
			continue
		}
		tx := &ownTx{}
		_, added := tx.add(table.New())
		if put := tx.put(&rows.Token{}, table.New()); !errors.Is(put, rows.ErrNotPlain) || !errors.Is(added, rows.ErrNotPlain) {
			t.Errorf("%s: put %v, add %v", table.Name, put, added)
		}
	}
}

// The caller's row stays as it is; what is put are texts that PostgreSQL keeps.
func TestTextsAreCleanedInACopy(t *testing.T) {
	t.Parallel()
	r := &rows.Target{Seq: 7, Text: "a\x00b"}
	for table, list := range byTable([]rows.Row{r}) {
		if len(list) != 1 || cmp.Equal(list[0], rows.Row(r)) || table.Place(list[0]) != table.Place(r) {
			t.Errorf("%v", list)
		}
	}
	if r.Text != "a\x00b" {
		t.Errorf("the caller's row has %q", r.Text)
	}
}
