package sqlite

import (
	"errors"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// oldRowOf is a row of a damaged file, whole.
func oldRowOf(table *rows.Table) (r sqlitefile.Row) {
	for i, f := range table.Fields(table.New()) {
		var v any
		switch f.(type) {
		case *string:
			v = "text"
		case *[]byte:
			v = make([]byte, 32)
		case *holdfast.ID:
			v = idValue(holdfast.NewID())
		default:
			v = int64(i + 1)
		}
		if table.Columns[i].Name == "leaf" {
			v = []byte("{}")
		}
		r.Values = append(r.Values, v)
	}
	return r
}

// Whatever a column that nobody needs reads as, its row stays: a credential is not lost with
// the version of a site's program, nor valid again with the time at which it was revoked.
func TestAValueThatIsLostCostsNoRow(t *testing.T) {
	t.Parallel()
	needed := map[string]bool{"hf_token.role": true, "hf_person.role": true, "hf_channel.kind": true, "hf_bundle.kind": true, "hf_bundle.id": true, "hf_audit.leaf": true}
	for _, table := range rows.Plain() {
		if _, mended, ok := describedRow(table, oldRowOf(table)); !ok || len(mended) > 0 {
			t.Errorf("%s: %v of a whole row are lost, %v", table.Name, mended, ok)
		}
		for i, c := range table.Columns {
			want := i >= len(table.Key) && !c.Secret && c.Final == 0 && !needed[table.Name+"."+c.Name]
			r := oldRowOf(table)
			r.Values[i] = 1.5
			row, mended, ok := describedRow(table, r)
			if ok != want || ok && (len(mended) != 1 || mended[0] != c.Name) {
				t.Errorf("%s.%s: kept: %v, lost of it: %v", table.Name, c.Name, ok, mended)
			}
			if s, is := row.(*rows.Site); is && c.Name == "revoked" && s.Revoked == rows.None {
				t.Error("a site that was revoked is not any more")
			}
		}
	}
}

func TestAnIDIsSalvaged(t *testing.T) {
	t.Parallel()
	for _, want := range []holdfast.ID{holdfast.NewID(), "order-7"} {
		var got holdfast.ID
		if !describedField(&rows.Column{}, &got, idValue(want)) || got != want {
			t.Errorf("%s is %s", want, got)
		}
	}
	if describedField(&rows.Column{}, new(holdfast.ID), int64(7)) {
		t.Error("a number is no id")
	}
}

// A follower of the journal may return any row: none becomes another statement.
func TestOnlyPlainRowsArePut(t *testing.T) {
	t.Parallel()
	for _, table := range rows.Tables() {
		if !table.Split {
			continue
		}
		tx := &writeTx{}
		_, added := tx.add(table.New())
		if put := tx.put(&rows.Token{}, table.New()); !errors.Is(put, rows.ErrNotPlain) || !errors.Is(added, rows.ErrNotPlain) {
			t.Errorf("%s: put %v, add %v", table.Name, put, added)
		}
	}
}
