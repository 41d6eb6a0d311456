package holdfast_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const modulePath = "github.com/holdfast-mq/holdfast"

// everything, in a row of mayImport, allows each package but the test packages.
const everything = "..."

// mayImport is policy. Change it in a commit of its own that says why. It has rows for
// packages that are planned; a folder with Go code that has no row is refused.
var mayImport = map[string][]string{
	".":                   {},
	"wire":                {"."},
	"transport":           {".", "wire"},
	"transport/grpclink":  {".", "wire"},
	"internal/cursor":     {"."},              // places in lists, of both stores
	"internal/search":     {"."},              // what a page of a list costs, of both stores
	"internal/exchange":   {"."},              // outcomes of the library, for all that call over HTTP
	"internal/oauth":      {"."},              // the same, of those who fetch a token
	"internal/gate":       {".", "admin/api"}, // refusals of the operator API, to whoever is not let in
	"internal/rowsql":     {".", "rows"},      // of all tables, for both stores
	"internal/belief":     {},                 // in the clock, of both stores
	"internal/follow":     {".", "rows"},      // in the journal, of both stores
	"internal/side":       {".", "rows"},      // what side tables need of both stores
	"adapter":             {"."},              // what a kind of destination is
	"adapter/httpcall":    {"."},
	"adapter/sqlwrite":    {"."},
	"adapter/webhook":     {"."},
	"webhookverify":       {"wire"}, // for receivers, who may have nothing else of us
	"webhookinbox":        {".", "webhookverify"},
	"adapter/email":       {".", "notify", "adapter/email/smtp"},
	"adapter/email/smtp":  {}, // speaks with servers, and knows nothing of notifications
	"adapter/chat":        {".", "notify"},
	"rows":                {"."},                    // of all tables, for both stores and what copies them
	"notify":              {".", "rows"},            // what stores put of it, so that no store says it again
	"site":                {".", "notify", "track"}, // for programs that are a site
	"activity":            {".", "rows", "fanout"},  // follows the journal
	"fanout":              {".", "rows", "fanout/filter"},
	"bulk":                {"."},
	"minutes":             {},    // what a node did in each minute: no I/O
	"fanout/filter":       {"."}, // pure: no store and no network
	"fanout/notificaties": {".", "fanout", "fanout/filter"},
	"track":               {".", "notify"}, // origins are those of notifications
	"audit":               {".", "notify", "fanout", "rows"},
	"link":                {".", "wire", "transport", "notify", "track", "audit", "link/sites"}, // its envelopes and batches are those between peers
	"link/sites":          {".", "audit"},                                                       // what stores keep of sites: they bring no server along
	"replicate":           {".", "wire"},
	"people":              {}, // who signs in: no I/O
	"storecopy":           {".", "internal/belief", "rows"},
	"sqlite":              {".", "internal/belief", "internal/follow", "rows", "storecopy", "notify", "fanout", "track", "audit", "replicate"},
	"postgres":            {".", "internal/belief", "internal/follow", "rows", "storecopy", "notify", "fanout", "track", "audit", "replicate"},
	"nodestore":           {".", "people", "minutes", "rows", "activity", "bulk", "fanout", "notify", "track", "audit", "link/sites"}, // a node's side tables, once for both stores, of which it imports neither
	"metrics":             {"."},
	"admin":               {".", "activity", "people", "minutes", "bulk", "notify", "fanout", "track", "audit", "link", "link/sites", "replicate", "admin/api"},
	"admin/api":           {"."}, // what both ends of the operator API say
	"admin/httpapi":       {".", "admin", "admin/api"},
	"admin/client":        {"admin/api"}, // for programs: it brings no node along
	"web":                 {".", "admin", "admin/api"},
	"config":              {"adapter"}, // the contract of kinds, and none of them: node hands them in
	"gen":                 {},
	"node":                {everything},                                                                                                                                     // the one place that knows all
	"doctor":              {".", "adapter", "admin", "admin/api", "admin/client", "config", "link", "sqlite", "postgres", "transport", "wire"},                              // looks at all that a node needs, and is no part of one
	"cmd/holdfast":        {"node", "doctor", "config", "admin/api", "admin/client", "link", "gen", "cmd/holdfast/internal/demo", "cmd/holdfast/internal/opennotificaties"}, // link: enroll talks to central, not to a node

	// Kinds of destinations: their settings, and what is made of them. They stand apart
	// from the adapters, which programs use without any configuration.
	"adapter/httpcall/call":  {".", "adapter", "adapter/httpcall"},
	"adapter/sqlwrite/write": {".", "adapter", "adapter/sqlwrite"},

	"examples/receivers/go": {}, // for subscribers: the standard library alone

	"cmd/holdfast/internal/demo":             {}, // runs nodes as others do: as processes, by their API
	"cmd/holdfast/internal/opennotificaties": {}, // reads a file, and knows no node
}

func TestImportsFollowTheTable(t *testing.T) {
	t.Parallel()
	faults, err := arrowFaults(os.DirFS("."), mayImport)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// arrowFaults says what the Go files of a module do that the table does not allow.
//
//   - A package imports what its row lists, and any internal package.
//   - An internal package without a row imports internal packages only, so that no arrow
//     goes round the table.
//   - A test package (its folder ends in "test") may import anything, and nobody but
//     _test.go files may import it.
//
// Files are parsed here, not by a child process: the cache of go test sees which files this
// process reads, and runs the test again when one of them changes.
func arrowFaults(tree fs.FS, table map[string][]string) ([]string, error) {
	a := arrows{tree: tree, table: table, unknown: map[string]bool{}}
	err := fs.WalkDir(tree, ".", a.visit)
	for dir := range a.unknown {
		a.faults = append(a.faults, dir+": the table has no row for it")
	}
	for dir, row := range table {
		for _, to := range row {
			if _, ok := table[to]; !ok && to != everything {
				a.faults = append(a.faults, fmt.Sprintf("the row of %s lists %s, which has no row", dir, to))
			}
		}
	}
	slices.Sort(a.faults)
	return a.faults, err
}

type arrows struct {
	tree    fs.FS
	table   map[string][]string
	faults  []string
	unknown map[string]bool // folders without a row
}

func (a *arrows) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case name == ".":
		return nil
	case d.IsDir():
		return a.enter(name)
	case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
		return a.check(name)
	}
	return nil
}

// enter skips what the go command does not see as a part of this module.
func (a *arrows) enter(dir string) error {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(a.tree, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir // a module of its own
	}
	return nil
}

func (a *arrows) check(file string) error {
	dir := path.Dir(file)
	if isTestPackage(dir) {
		return nil
	}
	row, known := a.table[dir]
	if !known && !isInternal(dir) {
		a.unknown[dir] = true
		return nil
	}
	src, err := fs.ReadFile(a.tree, file)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		to, own := inModule(imported)
		if !own || !isTestPackage(to) && (isInternal(to) || slices.Contains(row, to) || slices.Contains(row, everything)) {
			continue
		}
		a.faults = append(a.faults, fmt.Sprintf("%s:%d: %s may not import %s", file, fset.Position(spec.Pos()).Line, dir, to))
	}
	return nil
}

// inModule turns an import path into a folder of this module.
func inModule(imported string) (dir string, own bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

func isTestPackage(dir string) bool { return strings.HasSuffix(dir, "test") }

func isInternal(dir string) bool { return strings.HasPrefix(dir, "internal/") }

func TestForbiddenArrowsAreReported(t *testing.T) {
	t.Parallel()
	table := map[string][]string{
		".":            {},
		"wire":         {"."},
		"sqlite":       {"."},
		"node":         {everything},
		"cmd/holdfast": {"node"},
	}
	cases := map[string]struct {
		imports map[string][]string // file → what it imports; "." and "wire" are folders of the module
		add     map[string][]string // further rows of the table
		want    []string
	}{
		"all arrows allowed": {
			imports: map[string][]string{
				"message.go":           {"context", "internal/run"},
				"wire/envelope.go":     {".", "encoding/json"},
				"sqlite/queue.go":      {".", "modernc.org/sqlite"},
				"node/site.go":         {".", "wire", "sqlite", "internal/run"},
				"cmd/holdfast/main.go": {"node"},
				"internal/run/run.go":  {"internal/pace"},
			},
		},
		"an arrow against the table": {
			imports: map[string][]string{"wire/envelope.go": {".", "sqlite"}},
			want:    []string{"wire/envelope.go:4: wire may not import sqlite"},
		},
		"the root imports a package": {
			imports: map[string][]string{"outbox.go": {"wire"}},
			want:    []string{"outbox.go:3: . may not import wire"},
		},
		"a file for another system counts": {
			imports: map[string][]string{"sqlite/lock_windows.go": {"wire"}},
			want:    []string{"sqlite/lock_windows.go:3: sqlite may not import wire"},
		},
		"a folder without a row": {
			imports: map[string][]string{"util/strings.go": {"strings"}, "cmd/tool/main.go": {"node"}},
			want:    []string{"cmd/tool: the table has no row for it", "util: the table has no row for it"},
		},
		"a row that lists what has no row": {
			add:  map[string][]string{"web": {"admin"}},
			want: []string{"the row of web lists admin, which has no row"},
		},
		"an internal package that would lead round the table": {
			imports: map[string][]string{"internal/bridge/bridge.go": {"sqlite"}},
			want:    []string{"internal/bridge/bridge.go:3: internal/bridge may not import sqlite"},
		},
		"an internal package with a row": {
			imports: map[string][]string{"internal/bridge/bridge.go": {"sqlite"}},
			add:     map[string][]string{"internal/bridge": {"sqlite"}},
		},
		"test packages and test files import as they like": {
			imports: map[string][]string{
				"storetest/suite.go":    {".", "sqlite", "node"},
				"sqlite/queue_test.go":  {"storetest", "wire", "node"},
				"wire/internal_test.go": {"sqlite"},
			},
		},
		"the product imports a test package": {
			imports: map[string][]string{
				"node/site.go":        {"storetest"},
				"sqlite/queue.go":     {"transport/transporttest"},
				"internal/run/run.go": {"internal/runtest"},
			},
			want: []string{
				"internal/run/run.go:3: internal/run may not import internal/runtest",
				"node/site.go:3: node may not import storetest",
				"sqlite/queue.go:3: sqlite may not import transport/transporttest",
			},
		},
		"outside of the module": {
			imports: map[string][]string{
				"bench/go.mod":                    nil,
				"bench/main.go":                   {"sqlite"},
				"bench/peers/peers.go":            {"sqlite"},
				"gen/testdata/case/in.go":         {"node"},
				".cache/x.go":                     {"node"},
				"_old/x.go":                       {"node"},
				"vendor/modernc.org/sqlite/db.go": {"node"},
			},
		},
		"a neighbour whose name begins like ours": {
			imports: map[string][]string{"wire/envelope.go": {modulePath + "-extras/sqlite"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := maps.Clone(table)
			maps.Copy(rows, c.add)
			tree := fstest.MapFS{}
			for file, imports := range c.imports {
				tree[file] = source(imports)
			}
			got, err := arrowFaults(tree, rows)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("got %q, want %q (-want +got):\n%s", got, c.want, diff)
			}
		})
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"wire/envelope.go": {Data: []byte("package wire\nimport (")}}
	if faults, err := arrowFaults(tree, map[string][]string{"wire": {}}); err == nil {
		t.Errorf("got faults %q and no error, want an error", faults)
	}
}

// source is a Go file with one import a line, from line 3 on.
func source(imports []string) *fstest.MapFile {
	var b strings.Builder
	b.WriteString("package p\n\n")
	for _, to := range imports {
		switch first, _, _ := strings.Cut(to, "/"); {
		case to == ".":
			to = modulePath
		case slices.Contains([]string{"wire", "sqlite", "node", "storetest", "transport", "internal"}, first):
			to = modulePath + "/" + to
		}
		fmt.Fprintf(&b, "import %q\n", to)
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}

// A program that keeps its outbox in a store gets no server and no client along (issue 13).
func TestTheStoresBringNoServerAlong(t *testing.T) {
	t.Parallel()
	for _, from := range []string{".", "sqlite", "postgres"} {
		seen, left := map[string]bool{from: true}, []string{from}
		for len(left) > 0 {
			dir := left[0]
			left = left[1:]
			imports, err := importsOf(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range imports {
				to, own := inModule(name)
				switch {
				case own && !seen[to]:
					seen[to], left = true, append(left, to)
				case name == "net/http" || name == "golang.org/x/time/rate":
					t.Errorf("%s brings %s along, through %s", from, name, dir)
				}
			}
		}
	}
}

// importsOf are the imports of a package, without its tests.
func importsOf(dir string) (list []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if name := f.Name(); path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path.Join(dir, f.Name()), nil, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			list = append(list, imported)
		}
	}
	return list, nil
}
