package move_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/move"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// some are rows of a table: with everything, with nothing but the key, and again
// with everything under another key.
func some(table *rows.Table) (list []rows.Row) {
	for n := range int64(3) {
		r := table.New()
		for i, f := range table.Fields(r) {
			null := n == 1 && i >= len(table.Key)
			switch f := f.(type) {
			case *string:
				if !null {
					*f = fmt.Sprint(`Ü "' \`, i, n)
				}
			case *[]byte:
				if !null {
					*f = fmt.Appendf(nil, "%032d", 100*n+int64(i))
				}
			case *int64:
				if !null {
					*f = 100*n + int64(i) + 2
				}
			case *bool:
				*f = n != 1
			case *rows.Instant:
				*f = rows.Instant(1000*n + int64(i))
				if n == 1 && table.Columns[i].Null || n == 2 && i%2 == 0 {
					*f = rows.None
				}
			case *holdfast.ID:
				*f = holdfast.ID(fmt.Sprint("id-", n))
			}
		}
		list = append(list, r)
	}
	return list
}

// Whatever a description says is kept, by either store, and found behind any place.
func TestRowsOfEachTableAreKept(t *testing.T) {
	t.Parallel()
	const there, here = 17_000_000, 1_700_000_000_000_000
	file, err := sqlite.OpenTarget(t.Context(), newFile(t), sqlite.Options{Reserve: -1})
	must(t, err)
	defer shut(t, file)
	database, err := postgres.OpenTarget(t.Context(), pgtest.Shared(t).Database(t), move.Origin{})
	must(t, err)
	defer shut(t, database)
	for name, store := range map[string]move.Importer{"sqlite": file, "postgres": database} {
		for _, table := range rows.Plain() {
			want := some(table)
			must(t, store.Write(t.Context(), want, move.Progress{Base: there, HereNow: here}))
			must(t, store.Write(t.Context(), want[:1], move.Progress{Base: there, HereNow: here})) // it takes its own place
			var got []rows.Row
			for w := (rows.Range{Table: table, Base: here, Limit: 1, Bytes: 1 << 20}); ; {
				page, err := store.Read(t.Context(), w)
				must(t, err)
				if len(page) == 0 {
					break
				}
				got, w.After = append(got, page...), table.Place(page[0])
			}
			want = some(table)
			for i, c := range table.Columns { // the first row was put twice
				if at, ok := table.Field(want[0], i).(*rows.Instant); ok && c.Grows && *at != rows.None {
					*at++
				}
			}
			if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, table.Name, diff)
			}
		}
	}
}
