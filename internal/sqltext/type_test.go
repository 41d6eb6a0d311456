package sqltext_test

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// F1-102: a type is read as it is written, and what no driver binds exactly is
// cast.
func TestTypes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[sqltext.Dialect]string{ // the placeholder of each dialect; none: it has no such type
		"text":           {sqltext.SQLite: "?", sqltext.MySQL: "?", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "@p1"},
		"integer":        {sqltext.SQLite: "?", sqltext.MySQL: "?", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "@p1"},
		"base64":         {sqltext.SQLite: "?", sqltext.MySQL: "?", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "@p1"},
		"decimal(12,2)":  {sqltext.SQLite: "?", sqltext.MySQL: "cast(? as decimal(12,2))", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "cast(@p1 as decimal(12,2))"},
		"Decimal(38, 9)": {sqltext.MySQL: "cast(? as decimal(38,9))", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "cast(@p1 as decimal(38,9))"},
		"decimal(65)":    {sqltext.MySQL: "cast(? as decimal(65,0))", sqltext.PostgreSQL: "$1"},
		"date":           {sqltext.MySQL: "cast(? as date)", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "cast(@p1 as date)"},
		"time(3)":        {sqltext.MySQL: "cast(? as time(3))", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "cast(@p1 as time(3))"},
		"timestamp":      {sqltext.MySQL: "cast(? as datetime(0))", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "cast(@p1 as datetime2(0))"},
		"timestamp(6)":   {sqltext.MySQL: "cast(? as datetime(6))", sqltext.PostgreSQL: "$1", sqltext.SQLServer: "cast(@p1 as datetime2(6))"},
		"decimal":        {}, "decimal(20": {}, "decimal(2,3)": {}, "decimal(0)": {}, "decimal(1001)": {}, "timestamp(7)": {}, "timestamp(1,2)": {}, "text(10)": {}, "integer(4)": {},
		"number": {}, "": {}, "varchar(10)": {}, "text) or (1": {},
	} {
		for _, d := range sqltext.Dialects() {
			placeholder, has := want[d]
			is, err := sqltext.ParseType(d, text)
			if has != (err == nil) {
				t.Errorf("%s, %q: got %v, %v", d, text, is, err)
			}
			if !has {
				continue
			}
			s, err := sqltext.Parse(d, "select :a, :_id, :b, :b", map[string]sqltext.Type{"a": is})
			if err != nil || !strings.HasPrefix(s.Text, "select "+placeholder+",") || s.Types[0] != is {
				t.Errorf("%s, %q: got %+v, %v", d, text, s, err)
			}
			if again, err := sqltext.ParseType(d, is.String()); again != is || err != nil {
				t.Errorf("%s, %q: it is written as %s, which is %v, %v", d, text, is, again, err)
			}
			if missing := s.Untyped(); len(missing) != 1 || missing[0] != "b" {
				t.Errorf("%s: got %v without a type, want b", d, missing)
			}
		}
	}
}
