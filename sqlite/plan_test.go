package sqlite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/sqlite"
)

// mayScan lists what reads a whole index or sorts, and why that is no matter.
var mayScan = map[string]string{
	"SELECT seq FROM hf_message WHERE state = 0 AND (?1 IS NULL":  "asked only while few messages wait; the index holds nothing else",
	"SELECT l.destination, x.n FROM (SELECT lane, count(*)":       "once, when the file is opened, over live rows",
	"SELECT count(*) FROM hf_inbox":                               "once, when the file is opened, in the background",
	"SELECT max(coalesce((SELECT created FROM hf_message ORDER":   "reads one row of each table",
	"SELECT l.destination, count(*) FROM (SELECT lane":            "reads and sorts at most 100,000 small rows",
	"SELECT * FROM (SELECT e.seq, e.kind":                         "sorts at most 500 events",
	"SELECT 'destination', destination":                           "names, of which there are thousands at most",
	"SELECT coalesce((SELECT value FROM hf_meta":                  "reads one row of each table",
	"SELECT coalesce((SELECT e.error FROM hf_entry":               "reads one row, of a message that ends; m is a row of its own",
	"SELECT n.site, sum(m.state IN (0, 1))":                       "reads what is not delivered, by an index that holds nothing else",
	"SELECT site, count(*) FROM hf_notification WHERE delivered":  "reads and sorts what was delivered within the window",
	"SELECT (SELECT value FROM hf_meta WHERE key = 'incarnation'": "once per backup, on a reader, over live rows",
}

var (
	fullScan = regexp.MustCompile(`^SCAN (hf_message|hf_body|hf_inbox|hf_entry|[a-z])\b`)
	sorts    = regexp.MustCompile(`TEMP B-TREE`)
)

// A statement that reads the whole of a table is fast in a test and stops a
// node that has been running for a year.
func TestNoStatementScansOrSorts(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	unused := map[string]bool{}
	for prefix := range mayScan {
		unused[prefix] = true
	}
	for _, text := range append(sqlite.Statements(), sqlite.Queries()...) {
		if text == "" {
			t.Fatal("a statement has no text")
		}
		lines, err := db.Plan(t.Context(), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, line := range lines {
			small := strings.HasPrefix(line, "SCAN l ") && strings.Contains(text, "FROM hf_lane AS l") || // a row per destination
				strings.HasPrefix(line, "SCAN s ") && strings.Contains(text, "FROM hf_source AS s") // a row per sender
			if small || !fullScan.MatchString(line) && !sorts.MatchString(line) {
				continue
			}
			allowed := false
			for prefix := range mayScan {
				if strings.HasPrefix(text, prefix) {
					allowed, unused[prefix] = true, false
				}
			}
			if !allowed {
				t.Errorf("%s\nplan: %q", text, lines)
			}
		}
	}
	for prefix, never := range unused {
		if never {
			t.Errorf("nothing that begins with %q scans or sorts any more: take it off the list", prefix)
		}
	}
}

// SQL outside of the two tables of texts would escape the test above.
func TestSQLStandsInItsTables(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"statement.go":        "the writer's",
		"statement_query.go":  "the readers'",
		"token.go":            "a handful of rows",
		"site.go":             "some hundred rows",
		"migrate.go":          "run once",
		"check_inspect.go":    "one row each, by somebody who only looks",
		"rows_put.go":         "a part of the writer's",
		"rows_each.go":        "a part of the readers'",
		"storecopy_export.go": "reads everything on purpose, in pages",
		"check_pragmas.go":    "reads everything on purpose, or the end of an index",
	}
	verb := regexp.MustCompile("^`?\"?(SELECT|INSERT|UPDATE|DELETE|WITH)\\b")
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || allowed[name] != "" {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && verb.MatchString(lit.Value) {
				t.Errorf("%s: %s", files.Position(lit.Pos()), lit.Value)
			}
			return true
		})
	}
}
