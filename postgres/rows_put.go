package postgres

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// rowTexts are the statements for the rows of one table. Parameters of those that write
// are arrays, one for each column.
type rowTexts struct {
	put   string // each row in the place of the one with its key
	add   string // unless one of the same key, or of the same secret, is there
	first string // rows from the first
	later string // rows behind one
}

var rowStatements = sync.OnceValue(func() map[*rows.Table]rowTexts { //nolint:gochecknoglobals // made once, of constant texts
	all := map[*rows.Table]rowTexts{}
	for _, t := range rows.Tables() {
		insert := insertInto(t)
		all[t] = rowTexts{insert + replaces(t), insert + ` ON CONFLICT DO NOTHING RETURNING 1`, selectRows(t, false), selectRows(t, true)}
	}
	return all
})

// arrayOf is the type of the array in which a statement gets the values of a column.
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
	names := strings.Join(columnsOf(t.Columns), ", ")
	return `WITH now AS MATERIALIZED (SELECT hf_now() AS t)
		INSERT INTO ` + t.Name + ` AS o (` + names + `) SELECT ` + strings.Join(values, ", ") + ` FROM now, unnest(` + strings.Join(arrays, ", ") + `) AS i (` + names + `)`
}

func replaces(t *rows.Table) string {
	var sets []string
	where := ""
	for _, c := range t.Columns[len(t.Key):] {
		value := "excluded." + c.Name
		if c.Grows {
			value = "greatest(" + value + ", o." + c.Name + " + 1)"
		}
		sets = append(sets, c.Name+" = "+value)
		if c.Final != 0 {
			where = " WHERE o." + c.Name + " <> " + strconv.FormatInt(c.Final, 10)
		}
	}
	if len(sets) == 0 {
		return " ON CONFLICT DO NOTHING RETURNING 1"
	}
	return " ON CONFLICT (" + strings.Join(columnsOf(t.Key), ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ") + where + " RETURNING 1"
}

func columnsOf(columns []rows.Column) []string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
	}
	return names
}

// put writes rows whose instants are the database's own, each in the place of the one with
// its key; of several of one key the last is written, or the first that is final.
func (tx *ownTx) put(list ...rows.Row) error {
	for t, some := range byTable(list) {
		if err := tx.exec(rowStatements()[t].put, columnArrays(t, 0, some)...); err != nil {
			return err
		}
	}
	return nil
}

// add is put for rows that are new, and tells how many were.
func (tx *ownTx) add(list ...rows.Row) (added int64, err error) {
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

// byTable yields the rows of each table, in the order of the list of tables. They are in the order
// of their keys, so that no two transactions wait for each other, and of one key there is one.
func byTable(list []rows.Row) func(yield func(t *rows.Table, some []rows.Row) bool) {
	return func(yield func(t *rows.Table, some []rows.Row) bool) {
		of := map[*rows.Table]map[string]rows.Row{}
		for _, r := range list {
			t := rows.Of(r)
			if of[t] == nil {
				of[t] = map[string]rows.Row{}
			}
			cleanTexts(t, r)
			if place := t.Place(r); of[t][place] == nil || !t.Final(of[t][place]) {
				of[t][place] = r
			}
		}
		for _, t := range rows.Tables() {
			if len(of[t]) > 0 && !yield(t, inOrder(of[t])) {
				return
			}
		}
	}
}

func inOrder(of map[string]rows.Row) []rows.Row {
	places := make([]string, 0, len(of))
	for p := range of {
		places = append(places, p)
	}
	slices.Sort(places)
	some := make([]rows.Row, len(places))
	for i, p := range places {
		some[i] = of[p]
	}
	return some
}

// cleanTexts replaces what PostgreSQL cannot keep.
func cleanTexts(t *rows.Table, r rows.Row) {
	for _, f := range t.Fields(r) {
		if s, ok := f.(*string); ok {
			*s = cleanText(*s)
		}
	}
}

// columnArrays are the parameters of a statement that writes rows.
func columnArrays(t *rows.Table, base int64, list []rows.Row) []any {
	arrays := make([]any, len(t.Columns))
	for _, r := range list {
		for i, f := range t.Fields(r) {
			null := t.Columns[i].Null
			switch f := f.(type) {
			case *string:
				v := f
				if null && *f == "" {
					v = nil
				}
				arrays[i] = with(arrays[i], v)
			case *[]byte:
				arrays[i] = with(arrays[i], bytesValue(*f, null))
			case *holdfast.ID:
				arrays[i] = with(arrays[i], idBytes(*f))
			case *bool:
				arrays[i] = with(arrays[i], *f)
			case *rows.Instant:
				arrays[i] = with(arrays[i], instantValue(*f, base, null))
			case *int64:
				v := f
				if null && *f == 0 {
					v = nil
				}
				arrays[i] = with(arrays[i], v)
			}
		}
	}
	return arrays
}

// with appends to an array that is perhaps not there yet.
func with[T any](array any, value T) any {
	list, _ := array.([]T)
	return append(list, value)
}

func bytesValue(b []byte, null bool) []byte {
	if b == nil && !null {
		return []byte{}
	}
	return b
}

func instantValue(at rows.Instant, base int64, null bool) *int64 {
	v := int64(at)
	switch {
	case at == rows.None && null:
		return nil
	case at != rows.Now:
		v = at.From(base, never)
	}
	return &v
}
