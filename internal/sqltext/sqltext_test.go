package sqltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// SF-02: what is a parameter and what only looks like one, in each dialect.
func TestParametersAreToldFromTheRest(t *testing.T) {
	t.Parallel()
	all := sqltext.Dialects()
	for name, c := range map[string]struct {
		in    string
		of    []sqltext.Dialect
		want  string // with § for each placeholder
		names []string
	}{
		"names":                   {"insert into t values (:a, :b_2, :_id, :größe)", all, "insert into t values (§, §, §, §)", []string{"a", "b_2", "_id", "größe"}},
		"dots":                    {"update t set x = :order.id.no where y = :a.", all, "update t set x = § where y = §.", []string{"order.id.no", "a"}},
		"the same twice":          {"select :a, :a", all, "select §, §", []string{"a", "a"}},
		"strings":                 {"select ':a', 'it''s :b', :c", all, "select ':a', 'it''s :b', §", []string{"c"}},
		"quoted names":            {`select ":a" from ":b" where x=:c`, all, `select ":a" from ":b" where x=§`, []string{"c"}},
		"line comments":           {"select 1 -- :a; 'x\n, :b", all, "select 1 -- :a; 'x\n, §", []string{"b"}},
		"block comments":          {"select /* :a ' */ :b", all, "select /* :a ' */ §", []string{"b"}},
		"a semicolon at the end":  {"select :a ; -- done\n ;", all, "select § ; -- done\n ;", []string{"a"}},
		"numbers":                 {"select 1e5, 0x1F, :a", all, "select 1e5, 0x1F, §", []string{"a"}},
		"a lone colon":            {"select a : b, :1", all, "select a : b, :1", nil},
		"casts":                   {"select :a::int, b::text[1:2]", []sqltext.Dialect{sqltext.PostgreSQL}, "select §::int, b::text[1:2]", []string{"a"}},
		"escapes":                 {`select E'\':a', 'x\', :b`, []sqltext.Dialect{sqltext.PostgreSQL}, `select E'\':a', 'x\', §`, []string{"b"}},
		"dollar quotes":           {"select $$:a;$$, $f$ $$ :b $f$, x$y$z, :c", []sqltext.Dialect{sqltext.PostgreSQL}, "select $$:a;$$, $f$ $$ :b $f$, x$y$z, §", []string{"c"}},
		"nested comments":         {"select /* /* */ :a */ :b", []sqltext.Dialect{sqltext.PostgreSQL, sqltext.SQLServer}, "select /* /* */ :a */ §", []string{"b"}},
		"comments that end":       {"select /* /* */ :a", []sqltext.Dialect{sqltext.SQLite, sqltext.MySQL}, "select /* /* */ §", []string{"a"}},
		"operators of JSON":       {"update t set j = j - 'a' where j ? 'b' and c = :c", []sqltext.Dialect{sqltext.PostgreSQL}, "update t set j = j - 'a' where j ? 'b' and c = §", []string{"c"}},
		"backslashes":             {`select '\':a', "\":b", :c`, []sqltext.Dialect{sqltext.MySQL}, `select '\':a', "\":b", §`, []string{"c"}},
		"backticks":               {"select `:a` from t where b = :b", []sqltext.Dialect{sqltext.MySQL, sqltext.SQLite}, "select `:a` from t where b = §", []string{"b"}},
		"variables":               {"update t set a = @x := :a # :b", []sqltext.Dialect{sqltext.MySQL}, "update t set a = @x := § # :b", []string{"a"}},
		"dashes that subtract":    {"select 1--:a", []sqltext.Dialect{sqltext.MySQL}, "select 1--§", []string{"a"}},
		"brackets":                {"insert into [:a]]b] values (:c)", []sqltext.Dialect{sqltext.SQLServer}, "insert into [:a]]b] values (§)", []string{"c"}},
		"brackets of SQLite":      {"insert into [:a] values (:c)", []sqltext.Dialect{sqltext.SQLite}, "insert into [:a] values (§)", []string{"c"}},
		"temporary tables":        {"insert into #t select :a where @@rowcount = 0", []sqltext.Dialect{sqltext.SQLServer}, "insert into #t select § where @@rowcount = 0", []string{"a"}},
		"static methods of types": {"insert into t values (geography::Parse(:a))", []sqltext.Dialect{sqltext.SQLServer}, "insert into t values (geography::Parse(§))", []string{"a"}},
	} {
		for _, d := range c.of {
			got, err := sqltext.Parse(d, c.in, nil)
			if err != nil {
				t.Errorf("%s, %s: %v", name, d, err)
				continue
			}
			want := c.want
			for n := range c.names {
				want = strings.Replace(want, "§", placeholder(d, n+1), 1)
			}
			got.Types = nil // TestTypes looks at them
			verb, _, _ := strings.Cut(c.in, " ")
			if diff := cmp.Diff(sqltext.Statement{Verb: verb, Text: want, Names: c.names}, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, d, diff)
			}
		}
	}
}

func placeholder(d sqltext.Dialect, n int) string {
	digits := string(rune('0' + n))
	switch d {
	case sqltext.PostgreSQL:
		return "$" + digits
	case sqltext.SQLServer:
		return "@p" + digits
	case sqltext.SQLite, sqltext.MySQL:
	}
	return "?"
}

func TestWhatIsNoSingleWriteIsRefused(t *testing.T) {
	t.Parallel()
	all := sqltext.Dialects()
	for in, c := range map[string]struct {
		of   []sqltext.Dialect
		want string
	}{
		"":                                       {all, "no statement"},
		" -- nothing\n;":                         {all, "no statement"},
		"insert into t values (1); drop table t": {all, "second statement"},
		"select 1;;select 2":                     {all, "second statement"},
		"select 'a":                              {all, "a string that does not end"},
		`select "a`:                              {all, "a quoted name that does not end"},
		"select /* a":                            {all, "a comment that does not end"},
		"select 1 /* a */; /* b":                 {all, "a comment that does not end"},
		"select $$a":                             {[]sqltext.Dialect{sqltext.PostgreSQL}, "a string that does not end"},
		"select [a":                              {[]sqltext.Dialect{sqltext.SQLite, sqltext.SQLServer}, "a quoted name that does not end"},
		"select 'a\\'":                           {[]sqltext.Dialect{sqltext.MySQL}, "a string that does not end"},
		"select /*! 1 */ 2":                      {[]sqltext.Dialect{sqltext.MySQL}, "that is run"},
		"select ?":                               {[]sqltext.Dialect{sqltext.SQLite, sqltext.MySQL}, "placeholder ?"},
		"select $1":                              {[]sqltext.Dialect{sqltext.SQLite, sqltext.PostgreSQL}, "placeholder $"},
		"select @a":                              {[]sqltext.Dialect{sqltext.SQLite}, "placeholder @"},
		"select @P1":                             {[]sqltext.Dialect{sqltext.SQLServer}, "@p1"},
		"CoMMit":                                 {all, `begins with "COMMIT"`},
		"/* x */ set a = 1":                      {all, `begins with "SET"`},
		"(rollback)":                             {all, `begins with "ROLLBACK"`},
		"attach 'x' as y":                        {all, `begins with "ATTACH"`},
		"\ufeffattach 'x' as y":                  {all, "begins with"}, // F1-11
		"\ufeffpragma synchronous = 0":           {all, "begins with"},
		"lock tables t write":                    {all, "begins with"},
		"prepare x from 'drop table t'":          {all, "begins with"},
		"drop table t":                           {all, "begins with"},
		"\u200bcommit":                           {all, "begins with"},
		"select :_created":                       {all, "with an underscore begin only :_id, :_source"},
		"select '\x00'":                          {all, "a byte 0"},
		"select '\xff'":                          {all, "not UTF-8"},
	} {
		for _, d := range c.of {
			if got, err := sqltext.Parse(d, in, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %q: got %q, %v, want %s", d, in, got.Text, err, c.want)
			}
		}
	}
	if _, err := sqltext.Parse("oracle", "select 1", nil); err == nil || !strings.Contains(err.Error(), `no dialect "oracle"`) {
		t.Errorf("got %v", err)
	}
}

// Whatever stands in a statement: the text is kept, and there is a placeholder
// for each name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"select :a, ':b', $$ :c $$, E'\\'', [x], `y`, /* /* */ */ 1 -- z\n;", "::", ":", "$", "'", "[", "/*", "1e", ":a.:b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range sqltext.Dialects() {
			s, err := sqltext.Parse(d, text, nil)
			if err != nil {
				continue
			}
			// Back again: each placeholder stands where its name stood.
			rest, at := text, s.Text
			for n, name := range s.Names {
				before, behind, found := strings.Cut(at, placeholder(d, n+1))
				for found && !strings.HasPrefix(rest[min(len(before), len(rest)):], ":"+name) { // one like it stood in a string
					var more string
					more, behind, found = strings.Cut(behind, placeholder(d, n+1))
					before += placeholder(d, n+1) + more
				}
				if !found || !strings.HasPrefix(rest, before) {
					t.Fatalf("%s, %q became %q: %q is lost", d, text, s.Text, name)
				}
				rest, at = rest[len(before)+1+len(name):], behind
			}
			if rest != at {
				t.Fatalf("%s, %q became %q", d, text, s.Text)
			}
		}
	})
}
