package rows_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Stores make their statements from the tags, and cannot make them of anything else.
func TestTables(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, table := range rows.Tables() {
		if seen[table.Name] || rows.Of(table.New()) != table {
			t.Errorf("%s is listed twice, or its row names another table", table.Name)
		}
		if len(table.Key) == 0 || !cmp.Equal(table.Key, table.Columns[:len(table.Key)], cmp.AllowUnexported(rows.Column{})) {
			t.Errorf("%s has no key, or it does not stand first", table.Name)
		}
		for _, f := range table.KeyFields(table.New()) {
			switch f.(type) {
			case *string, *int64:
			default:
				t.Errorf("%s has a %T in its key, which the two stores do not order alike", table.Name, f)
			}
		}
		for i, f := range table.Fields(table.New()) {
			switch f.(type) {
			case *string, *[]byte, *int64, *bool, *rows.Instant, *holdfast.ID:
			default:
				if _, state := f.(*holdfast.State); state && table.Split {
					continue
				}
				t.Errorf("%s.%s is a %T, which no store keeps", table.Name, table.Columns[i].Name, f)
			}
		}
		for _, of := range table.Of {
			if !seen[of] {
				t.Errorf("%s goes with %s, which does not come before it", table.Name, of)
			}
		}
		seen[table.Name] = true
	}
}

// A copy that was cut off goes on behind a place, whatever the key holds.
func TestPlaces(t *testing.T) {
	t.Parallel()
	want := &rows.Target{Seq: -7, Channel: "a \"b\"\\ \x00\xff", Address: ""}
	table := rows.Of(want)
	got, err := table.At(table.Place(want))
	if diff := cmp.Diff(rows.Row(want), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, place := range []string{"x", "7", `7 "a`, `7 "a" b`} {
		if r, err := table.At(place); err == nil {
			t.Errorf("%s is %v, want an error", place, r)
		}
	}
	if a, b := table.Place(&rows.Target{Channel: "a", Address: "b"}), table.Place(&rows.Target{Channel: `a" "b`}); a == b {
		t.Errorf("two rows have the place %s", a)
	}
}

// An instant is the same moment on two clocks.
func TestInstants(t *testing.T) {
	t.Parallel()
	const never = 1<<63 - 1
	for _, at := range []int64{never, 0, 17, -3} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			there := rows.Distance(at, 100, never).From(5000, never)
			if want := at - 100 + 5000; at != never && there != want || at == never && there != never {
				t.Errorf("%d became %d", at, there)
			}
		})
	}
}
