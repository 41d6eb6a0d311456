package holdfast_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// mostSleeps is how many calls of time.Sleep tests may have outside virtual time. A test
// that sleeps is slow, and fails on a slow machine: wait for what has to happen instead
// (internal/waittest), or run in virtual time (racetest.Bubble).
const mostSleeps = 40

func TestFewTestsSleep(t *testing.T) {
	t.Parallel()
	found, err := realSleeps(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > mostSleeps {
		t.Errorf("%d calls of time.Sleep outside virtual time, at most %d are wanted:\n%s", len(found), mostSleeps, strings.Join(found, "\n"))
	}
}

// realSleeps lists the calls of time.Sleep in tests and test packages that are not within
// what racetest.Bubble runs. A helper is virtual if all that name it are, in its package.
func realSleeps(tree fs.FS) (found []string, err error) {
	dirs := map[string]*sleepers{}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		dir := path.Dir(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || d.Name() == "bench"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || !strings.HasSuffix(name, "_test.go") && !isTestPackage(dir):
			return nil
		}
		if dirs[dir] == nil {
			dirs[dir] = &sleepers{files: token.NewFileSet(), uses: map[string][]place{}, virtual: map[string]bool{"racetest.Bubble": true}}
		}
		return dirs[dir].read(tree, name)
	})
	for _, s := range dirs {
		found = append(found, s.real()...)
	}
	slices.Sort(found)
	return found, err
}

// sleepers are the functions of a package's tests, and who names them.
type sleepers struct {
	files   *token.FileSet
	decls   []ast.Decl
	virtual map[string]bool    // what runs its arguments in virtual time
	uses    map[string][]place // of functions, by name
	sleeps  []place
}

// place is where something is named: in which function, of which type if it is a method,
// and whether in virtual time.
type place struct {
	in, of  string
	virtual bool
	pos     token.Pos
}

func (s *sleepers) read(tree fs.FS, name string) error {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.decls = append(s.decls, f.Decls...)
	return nil
}

// learn notes who runs what it is given in virtual time: racetest.Bubble, and what calls it
// and has a function among its parameters.
func (s *sleepers) learn() {
	for _, d := range s.decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !slices.ContainsFunc(fn.Type.Params.List, func(f *ast.Field) bool { _, is := f.Type.(*ast.FuncType); return is }) {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && calledName(c.Fun) == "racetest.Bubble" {
				s.virtual[fn.Name.Name] = true
			}
			return true
		})
	}
}

// walk notes what a node names, at a place.
func (s *sleepers) walk(n ast.Node, at place) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := calledName(n.Fun)
			if name == "time.Sleep" {
				s.sleeps = append(s.sleeps, place{at.in, at.of, at.virtual, n.Pos()})
			}
			if s.virtual[name] {
				for _, a := range n.Args {
					s.walk(a, place{in: at.in, of: at.of, virtual: true})
				}
				return false
			}
		case *ast.CompositeLit: // a suite that is told to run in virtual time
			if !at.virtual && slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
				kv, ok := e.(*ast.KeyValueExpr)
				return ok && calledName(kv.Value) == "racetest.Bubble"
			}) {
				s.walk(n, place{in: at.in, of: at.of, virtual: true})
				return false
			}
		case *ast.TypeSpec:
			s.walk(n.Type, at)
			return false
		case *ast.Ident:
			s.uses[n.Name] = append(s.uses[n.Name], at)
		}
		return true
	})
}

func calledName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// receiver is the type that a method is of.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	return calledName(t)
}

// real lists the sleeps in real time: of functions that something in real time names.
func (s *sleepers) real() (found []string) {
	s.learn()
	for _, d := range s.decls {
		if fn, ok := d.(*ast.FuncDecl); !ok {
			s.walk(d, place{})
		} else if fn.Body != nil {
			s.walk(fn.Body, place{in: fn.Name.Name, of: receiver(fn)})
		}
	}
	awake := map[string]bool{}
	isReal := func(p place) bool {
		if s.uses[p.in] == nil && p.of != "" { // what the product calls lives as its type does
			return !p.virtual && awake[p.of]
		}
		return !p.virtual && (s.uses[p.in] == nil || awake[p.in])
	}
	for more := true; more; {
		more = false
		for name, uses := range s.uses {
			if !awake[name] && slices.ContainsFunc(uses, isReal) {
				awake[name], more = true, true
			}
		}
	}
	for _, p := range s.sleeps {
		if isReal(p) {
			at := s.files.Position(p.pos)
			found = append(found, fmt.Sprintf("%s:%d in %s", at.Filename, at.Line, p.in))
		}
	}
	return found
}

func TestRealSleepsAreFound(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"a_test.go": {Data: []byte(`package a
func TestReal(t *testing.T) { time.Sleep(1); helper() }
func helper() { time.Sleep(2) }
func TestVirtual(t *testing.T) { racetest.Bubble(t, func(t *testing.T) { time.Sleep(3); virtual(); _ = &slow{} }) }
func virtual() { time.Sleep(4) }
func within(t *testing.T, test func()) { racetest.Bubble(t, func(t *testing.T) { test() }) }
func TestWithin(t *testing.T) { within(t, func() { time.Sleep(5) }) }
var suite = Maker{Run: racetest.Bubble, Pass: func() { time.Sleep(6) }}
type slow struct{}
func (*slow) Deliver() { time.Sleep(7) }
type idle struct{}
func (*idle) Deliver() { time.Sleep(8) }
func TestIdle(t *testing.T) { use(idle{}) }
`)}, "b.go": {Data: []byte("package a\nfunc product() { time.Sleep(9) }")}}
	found, err := realSleeps(tree)
	if want := []string{"a_test.go:12 in Deliver", "a_test.go:2 in TestReal", "a_test.go:3 in helper"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, %v, want %q", found, err, want)
	}
}

// TestVirtualTimeIsRacetests holds each test to racetest.Bubble: beside it synctest.Test would
// crash the race detector of Go 1.26, once in many runs.
func TestVirtualTimeIsRacetests(t *testing.T) {
	t.Parallel()
	call := "synctest." + "Test("
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || name == "internal/racetest/bubble.go" {
			return err
		}
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), call) {
			t.Errorf("%s calls %s...): call racetest.Bubble", name, call)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
