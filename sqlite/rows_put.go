package sqlite

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/rowsql"
	"github.com/holdfast-mq/holdfast/rows"
)

// rowVerb is a way of writing a row of package rows.
type rowVerb int

const (
	replaceRow rowVerb = iota // replaces the row with the same key
	addRow                    // adds the row, unless a row has the same key or the same secret
	keepRow                   // is addRow that also needs the parent row, if the table has one
	rowVerbs
)

// statementOf returns the statement of a verb for a table. These statements follow all others.
func statementOf(t *rows.Table, verb rowVerb) statement {
	return statementCount + statement(slices.Index(rows.Plain(), t)*int(rowVerbs)+int(verb))
}

// rowTexts returns the texts of those statements.
func rowTexts() (list []string) {
	for _, t := range rows.Plain() {
		insert, n := `INSERT INTO `+t.Name+` AS o (`+rowsql.Names(t.Columns)+`)`, len(t.Columns)
		add := insert + ` VALUES (` + strings.Repeat("?, ", n-1) + `?)`
		keep := add
		if len(t.Of) > 0 {
			keep = insert + ` SELECT ` + rowsql.Numbers("?", 1, n) + ` WHERE ` + rowsql.Stands(t, "?1")
		}
		list = append(list, add+rowsql.Replace(t, "max"), add+` ON CONFLICT DO NOTHING`, keep+` ON CONFLICT DO NOTHING`)
	}
	return list
}

// put writes rows with the file's own instants. Each replaces the row with the same key.
func (tx *writeTx) put(list ...rows.Row) error {
	_, err := tx.write(0, replaceRow, list)
	return err
}

// add writes the rows that are new, and returns how many were.
func (tx *writeTx) add(list ...rows.Row) (int64, error) { return tx.write(0, addRow, list) }

// write returns how many rows it wrote. The rows' instants are distances from base.
func (tx *writeTx) write(base int64, verb rowVerb, list []rows.Row) (changed int64, err error) {
	if err := rows.CheckPlain(list...); err != nil {
		return 0, err
	}
	now := int64(0)
	for _, r := range list {
		t := rows.Of(r)
		args := make([]driver.Value, len(t.Columns))
		for i, f := range t.Fields(r) {
			args[i] = rowValue(&t.Columns[i], f, base)
			if args[i] == driver.Value(int64(rows.Now)) {
				if now == 0 {
					now = tx.tick()
				}
				args[i] = now
			}
		}
		n, err := tx.putRow(t, verb, args)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// putRow writes a row. Rows that never change are new, but for those of a page that is put again: while a
// trigger watches a table's updates, SQLite takes twice as long for a statement that could be one.
func (tx *writeTx) putRow(t *rows.Table, verb rowVerb, args []driver.Value) (changed int64, err error) {
	if verb == replaceRow && t.Fixed {
		if changed, err = tx.exec(statementOf(t, addRow), args...); changed > 0 || err != nil {
			return changed, err
		}
	}
	return tx.exec(statementOf(t, verb), args...)
}

// rowValue binds a field of a row.
func rowValue(c *rows.Column, field any, base int64) driver.Value {
	switch v := rowsql.Value(c, field, base).(type) {
	case *bool:
		return asBit(*v)
	case *holdfast.ID:
		return idValue(*v)
	default:
		return v
	}
}
