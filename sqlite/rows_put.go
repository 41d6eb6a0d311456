package sqlite

import (
	"database/sql/driver"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// rowVerb is what is done with a row of package rows.
type rowVerb int

const (
	replaceRow rowVerb = iota // of the same key
	addRow                    // unless one of the same key, or of the same secret, is there
	rowVerbs
)

// statementOf is the statement of a verb for a table: they come behind all others.
func statementOf(t *rows.Table, verb rowVerb) statement {
	return statementCount + statement(slices.Index(rows.Tables(), t)*int(rowVerbs)+int(verb))
}

// rowTexts are the texts of those statements.
func rowTexts() (list []string) {
	for _, t := range rows.Tables() {
		list = append(list, insertRow(t)+` ON CONFLICT`+replaces(t), insertRow(t)+` ON CONFLICT DO NOTHING`)
	}
	return list
}

func insertRow(t *rows.Table) string {
	return `INSERT INTO ` + t.Name + ` (` + strings.Join(columnsOf(t.Columns), ", ") + `) VALUES (` + strings.Repeat("?, ", len(t.Columns)-1) + `?)`
}

func replaces(t *rows.Table) string {
	var sets []string
	where := ""
	for _, c := range t.Columns[len(t.Key):] {
		switch {
		case c.Grows:
			sets = append(sets, c.Name+" = max(excluded."+c.Name+", "+c.Name+" + 1)")
		default:
			sets = append(sets, c.Name+" = excluded."+c.Name)
		}
		if c.Final != 0 {
			where = " WHERE " + c.Name + " != " + strconv.FormatInt(c.Final, 10)
		}
	}
	if len(sets) == 0 {
		return " DO NOTHING"
	}
	return " (" + strings.Join(columnsOf(t.Key), ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ") + where
}

func columnsOf(columns []rows.Column) []string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
	}
	return names
}

// put writes rows whose instants are the file's own, each in the place of the one with its key.
func (tx *writeTx) put(list ...rows.Row) error {
	_, err := tx.write(0, replaceRow, list)
	return err
}

// add is put for rows that are new, and tells how many were.
func (tx *writeTx) add(list ...rows.Row) (int64, error) { return tx.write(0, addRow, list) }

// write returns how many rows it wrote, of which instants are distances from base.
func (tx *writeTx) write(base int64, verb rowVerb, list []rows.Row) (changed int64, err error) {
	now := int64(0)
	for _, r := range list {
		t := rows.Of(r)
		args := make([]driver.Value, len(t.Columns))
		for i, f := range t.Fields(r) {
			if at, ok := f.(*rows.Instant); ok && *at == rows.Now {
				if now == 0 {
					now = tx.tick()
				}
				args[i] = now
				continue
			}
			args[i] = rowValue(&t.Columns[i], f, base)
		}
		n, err := tx.exec(statementOf(t, verb), args...)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// rowValue binds a field of a row.
func rowValue(c *rows.Column, field any, base int64) driver.Value {
	switch f := field.(type) {
	case *string:
		if c.Null {
			return nullText(*f)
		}
		return *f
	case *[]byte:
		if c.Null {
			return nullBytes(*f)
		}
		return payload(*f)
	case *bool:
		return asBit(*f)
	case *rows.Instant:
		if c.Null {
			return nullInstant(f.From(base, never))
		}
		return f.From(base, never)
	case *holdfast.ID:
		return idValue(*f)
	case *int64:
		if c.Null && *f == 0 {
			return nil
		}
		return *f
	}
	return nil // no field is of another type: TestTables
}
