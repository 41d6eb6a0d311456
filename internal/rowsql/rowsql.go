// Package rowsql makes the SQL that both stores have in common from a table's description.
package rowsql

import (
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Names returns the names of columns, separated by commas.
func Names(columns []rows.Column) string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
	}
	return strings.Join(names, ", ")
}

// Numbers returns n numbered parameters, separated by commas. The first number is from; sign begins
// each.
func Numbers(sign string, from, n int) string {
	numbers := make([]string, n)
	for i := range numbers {
		numbers[i] = sign + strconv.Itoa(from+i)
	}
	return strings.Join(numbers, ", ")
}

// Values returns the columns of a table for reading. Each NULL is replaced by a value, except for
// bytes.
func Values(t *rows.Table) string {
	columns := make([]string, len(t.Columns))
	for i, f := range t.Fields(t.New()) {
		c := t.Columns[i]
		columns[i] = c.Name
		if !c.Null {
			continue
		}
		switch f.(type) {
		case *string:
			columns[i] = "coalesce(" + c.Name + ", '')"
		case *int64:
			columns[i] = "coalesce(" + c.Name + ", 0)"
		case *rows.Instant:
			columns[i] = "coalesce(" + c.Name + ", -9223372036854775807 - 1)" // rows.None, as a 64-bit number
		}
	}
	return strings.Join(columns, ", ")
}

// Stands returns the condition that the row to which a row belongs exists; seq is its number. Each
// table is queried for one row. PostgreSQL would read a whole table for EXISTS OR EXISTS.
func Stands(t *rows.Table, seq string) string {
	var asked strings.Builder
	for _, of := range t.Of {
		asked.WriteString("(SELECT p.seq FROM " + of + " AS p WHERE p.seq = " + seq + "), ")
	}
	return "coalesce(" + asked.String() + "NULL) IS NOT NULL"
}

// Replace returns the end of an INSERT INTO the table AS o by which a row replaces the one with its
// key. greater is the name of the function that returns the greater of two.
func Replace(t *rows.Table, greater string) string {
	var sets []string
	where := ""
	for _, c := range t.Columns[len(t.Key):] {
		value := "excluded." + c.Name
		if c.Stays {
			continue
		}
		if c.Grows {
			value = greater + "(" + value + ", o." + c.Name + " + 1)"
		}
		if c.Fixed {
			sets, where = []string{c.Name + " = " + value}, " WHERE o."+c.Name+" <> "+value
			break
		}
		sets = append(sets, c.Name+" = "+value)
		if c.Final != 0 {
			where = " WHERE o." + c.Name + " <> " + strconv.FormatInt(c.Final, 10)
		}
	}
	if len(sets) == 0 {
		return " ON CONFLICT DO NOTHING"
	}
	return " ON CONFLICT (" + Names(t.Key) + ") DO UPDATE SET " + strings.Join(sets, ", ") + where
}

// never is an instant that does not come, in both stores.
const never = math.MaxInt64

// Value converts a field to the value of its column: nil for NULL, a string, bytes or a number. A
// *bool or a *holdfast.ID is returned unchanged, since each store keeps it in its own way. rows.Now
// is also unchanged.
func Value(c *rows.Column, field any, base int64) any {
	switch f := field.(type) {
	case *string:
		if !c.Null || *f != "" {
			return *f
		}
	case *[]byte:
		if *f != nil {
			return *f
		}
		if !c.Null {
			return []byte{}
		}
	case *int64:
		if !c.Null || *f != 0 {
			return *f
		}
	case *rows.Instant:
		switch {
		case *f == rows.Now:
			return int64(*f)
		case !c.Null || *f != rows.None:
			return f.From(base, never)
		}
	default:
		return field
	}
	return nil
}

// Scan reads a row that was selected with Values.
func Scan(scan func(dest ...any) error, t *rows.Table, base int64, id func(v any) holdfast.ID) (rows.Row, error) {
	r := t.New()
	fields := t.Fields(r)
	into := make([]any, len(fields))
	for i, f := range fields {
		switch f.(type) {
		case *bool, *holdfast.ID:
			into[i] = new(any)
		default:
			into[i] = f
		}
	}
	if err := scan(into...); err != nil {
		return nil, err
	}
	for i, f := range fields {
		switch f := f.(type) {
		case *rows.Instant:
			*f = rows.Distance(int64(*f), base, never)
		case *bool:
			v := *into[i].(*any) //nolint:forcetypeassert // made above
			*f = v == true || v == int64(1)
		case *holdfast.ID:
			*f = id(*into[i].(*any)) //nolint:forcetypeassert // made above
		}
	}
	return r, nil
}
