package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Undescribed lists the parts of a store's tables that package rows does not describe, with the
// reasons.
type Undescribed struct {
	// Parts are tables that belong to the row of another table.
	Parts map[string]string
	// Own are tables and columns ("table.column") that no other store understands.
	Own map[string]string
}

// Described fails for a table or column that a copy of the store would silently leave out. columns
// lists the columns of each table, in order. A row that is kept in one table must have all of them
// and, if ordered, in that order.
func Described(t *testing.T, columns map[string][]string, ordered bool, but Undescribed) {
	t.Helper()
	used := map[string]bool{}
	own := func(name string) bool {
		_, is := but.Own[name]
		used[name] = used[name] || is
		return is
	}
	for name, have := range columns {
		if own(name) {
			continue
		}
		of, said := name, []string(nil)
		if whole := but.Parts[name]; whole != "" {
			of, used[name] = whole, true
		}
		plain := false
		for _, table := range rows.Tables() {
			if table.Name != of {
				continue
			}
			plain = !table.Split
			for _, c := range table.Columns {
				said = append(said, c.Name)
			}
		}
		if said == nil {
			t.Errorf("package rows says nothing of %s", name)
			continue
		}
		have = slices.DeleteFunc(slices.Clone(have), func(c string) bool { return own(name + "." + c) })
		for _, c := range have {
			if !slices.Contains(said, c) {
				t.Errorf("the row of %s has no %s, a column of %s", of, c, name)
			}
		}
		if !ordered {
			slices.Sort(have)
			slices.Sort(said)
		}
		if plain && !slices.Equal(have, said) {
			t.Errorf("%s has the columns %q, its row %q", name, have, said)
		}
	}
	for _, table := range rows.Tables() {
		if columns[table.Name] == nil {
			t.Errorf("there is no table %s", table.Name)
		}
	}
	for _, list := range []map[string]string{but.Parts, but.Own} {
		for name := range list {
			if !used[name] {
				t.Errorf("%s is described by now, or is gone: take it from the list", name)
			}
		}
	}
}

// FilledRow returns a row of a table in which no column is zero. n makes rows differ.
func FilledRow(table *rows.Table, n int64) rows.Row {
	r := table.New()
	for i, f := range table.Fields(r) {
		switch f := f.(type) {
		case *string:
			*f = fmt.Sprint(`Ü "' \`, i, n)
		case *[]byte:
			*f = fmt.Appendf(nil, "%032d", 100*n+int64(i))
		case *int64:
			*f = 100*n + int64(i) + 2
		case *bool:
			*f = true
		case *rows.Instant:
			*f = rows.Instant(1000*n + int64(i) + 1)
		case *holdfast.ID:
			*f = holdfast.ID(fmt.Sprint("id-", i, "-", n))
		}
	}
	return r
}
