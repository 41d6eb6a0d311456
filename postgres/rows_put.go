package postgres

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/rowsql"
	"github.com/holdfast-mq/holdfast/rows"
)

// rowTexts are the statements for the rows of one table. Those that write take one array per
// column.
type rowTexts struct {
	put   string // replaces the row with the same key
	add   string // unless a row with the same key, or the same secret, exists
	first string // from the first row
	later string // from the row after a key
}

var rowStatements = sync.OnceValue(func() map[*rows.Table]rowTexts { //nolint:gochecknoglobals // made once, of constant texts
	all := map[*rows.Table]rowTexts{}
	for _, t := range rows.Plain() {
		insert := insertInto(t)
		all[t] = rowTexts{insert + rowsql.Replace(t, "greatest") + ` RETURNING 1`, insert + ` ON CONFLICT DO NOTHING RETURNING 1`, selectRows(t, false), selectRows(t, true)}
	}
	return all
})

// arrayOf returns the type of the array that passes the values of a column to a statement.
func arrayOf(field any) string {
	switch field.(type) {
	case *string:
		return "text[]"
	case *[]byte, *holdfast.ID:
		return "bytea[]"
	case *bool:
		return "boolean[]"
	}
	return "bigint[]"
}

func insertInto(t *rows.Table) string {
	var arrays, values []string
	for i, f := range t.Fields(t.New()) {
		name := t.Columns[i].Name
		arrays = append(arrays, "$"+strconv.Itoa(i+1)+"::"+arrayOf(f))
		value := "i." + name
		if _, ok := f.(*rows.Instant); ok {
			value = "CASE i." + name + " WHEN -9223372036854775807 THEN now.t ELSE i." + name + " END" // rows.Now
		}
		values = append(values, value)
	}
	names := rowsql.Names(t.Columns)
	return `WITH now AS MATERIALIZED (SELECT hf_now() AS t)
		INSERT INTO ` + t.Name + ` AS o (` + names + `) SELECT ` + strings.Join(values, ", ") + ` FROM now, unnest(` + strings.Join(arrays, ", ") + `) AS i (` + names + `)`
}

// put writes rows whose instants are by the database's clock. Each replaces the row with its key.
// Of several rows with one key, it writes the last, or the first final one.
func (tx *ownTx) put(list ...rows.Row) error {
	if err := rows.CheckPlain(list...); err != nil {
		return err
	}
	for t, some := range byTable(list) {
		if err := tx.exec(rowStatements()[t].put, columnArrays(t, 0, some)...); err != nil {
			return err
		}
	}
	return nil
}

// add inserts rows that are new, and returns how many were.
func (tx *ownTx) add(list ...rows.Row) (added int64, err error) {
	if err := rows.CheckPlain(list...); err != nil {
		return 0, err
	}
	for t, some := range byTable(list) {
		if err := tx.query(rowStatements()[t].add, columnArrays(t, 0, some), func(pgx.Rows) error {
			added++
			return nil
		}); err != nil {
			return added, err
		}
	}
	return added, nil
}

// byTable yields the rows of each table, in the order of the list of tables. Rows come in the order
// of their keys, so that no two transactions wait for each other, and each key comes once.
func byTable(list []rows.Row) func(yield func(t *rows.Table, some []rows.Row) bool) {
	return func(yield func(t *rows.Table, some []rows.Row) bool) {
		of := map[*rows.Table]map[string]rows.Row{}
		for _, r := range list {
			t := rows.Of(r)
			if of[t] == nil {
				of[t] = map[string]rows.Row{}
			}
			r = cleanTexts(t, r)
			if place := t.Place(r); of[t][place] == nil || !t.Final(of[t][place]) {
				of[t][place] = r
			}
		}
		for _, t := range rows.Plain() {
			var some []rows.Row
			for _, place := range slices.Sorted(maps.Keys(of[t])) {
				some = append(some, of[t][place])
			}
			if len(some) > 0 && !yield(t, some) {
				return
			}
		}
	}
}

// cleanTexts returns the row with its texts in a form that PostgreSQL can store.
func cleanTexts(t *rows.Table, r rows.Row) rows.Row {
	r = t.Clone(r)
	for _, f := range t.Fields(r) {
		if s, ok := f.(*string); ok {
			*s = cleanText(*s)
		}
	}
	return r
}

// columnArrays returns the parameters of a statement that writes rows.
func columnArrays(t *rows.Table, base int64, list []rows.Row) []any {
	arrays := make([]any, len(t.Columns))
	for i := range t.Columns {
		values := make([]any, len(list))
		for n, r := range list {
			values[n] = rowsql.Value(&t.Columns[i], t.Field(r, i), base)
			if id, ok := values[n].(*holdfast.ID); ok {
				values[n] = idBytes(*id)
			}
		}
		arrays[i] = values
	}
	return arrays
}
