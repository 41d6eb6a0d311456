// House measures the structure of the product, for those who change it: which
// files of a package refer to each other in a circle, how many methods a type
// shows, how long files and functions are, and what two packages have in common to
// the letter.
//
//	cd tools && go run ./house [-dir ..]
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", "..", "folder of the module")
	flag.Parse()
	if err := measure(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func measure(dir string) error {
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Fset: fset,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
	}, "./...")
	if err != nil {
		return err
	}
	var all []*house
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return p.Errors[0]
		}
		if !helper(p.PkgPath) {
			all = append(all, look(fset, p))
		}
	}
	report(all)
	return nil
}

// helper says whether a package is for tests only.
func helper(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasSuffix(part, "test") && part != "holdfasttest" {
			return true
		}
	}
	return false
}

// house is what there is to say of a package.
type house struct {
	path      string
	code      int            // lines with code
	comments  int            // lines with nothing else
	files     map[string]int // lines of code, by file
	functions []int          // their lengths in lines
	circle    []string       // the most files that lead to each other
	methods   int            // of the type that shows the most
	of        string         // that type
	lines     map[string]int // how often each line of code of some length is there
}

func look(fset *token.FileSet, p *packages.Package) *house {
	h := &house{path: p.PkgPath, files: map[string]int{}, lines: map[string]int{}}
	for _, file := range p.Syntax {
		h.read(fset, file)
	}
	h.circle = circle(fset, p)
	for _, name := range p.Types.Scope().Names() {
		if t, ok := p.Types.Scope().Lookup(name).(*types.TypeName); ok && t.Exported() {
			if n := shown(t.Type()); n > h.methods {
				h.methods, h.of = n, name
			}
		}
	}
	return h
}

// shown counts the exported methods of a type, those of what it embeds as well.
func shown(t types.Type) (n int) {
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	for m := range types.NewMethodSet(t).Methods() {
		if m.Obj().Exported() {
			n++
		}
	}
	return n
}

func (h *house) read(fset *token.FileSet, file *ast.File) {
	name := fset.Position(file.Pos()).Filename
	text, err := os.ReadFile(name) //nolint:forbidigo // the module's own source
	if err != nil {
		return
	}
	comment := map[int]bool{}
	for _, g := range file.Comments {
		for n := fset.Position(g.Pos()).Line; n <= fset.Position(g.End()).Line; n++ {
			comment[n] = true
		}
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case comment[number] && (strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") || strings.HasPrefix(line, "*")):
			h.comments++
		default:
			h.code++
			h.files[filepath.Base(name)]++
			if len(line) > 12 {
				h.lines[line]++
			}
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			h.functions = append(h.functions, fset.Position(f.End()).Line-fset.Position(f.Pos()).Line+1)
		}
	}
}

// circle returns the largest set of files of which each leads to each other, by
// what they use of one another.
func circle(fset *token.FileSet, p *packages.Package) []string {
	leads := map[string]map[string]bool{}
	for _, file := range p.Syntax {
		leads[base(fset, file.Pos())] = map[string]bool{}
	}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types || o.Pos() == token.NoPos {
			continue
		}
		if from, to := base(fset, id.Pos()), base(fset, o.Pos()); from != to && declared(o) {
			leads[from][to] = true
		}
	}
	var most []string
	for _, c := range components(leads) {
		if len(c) > len(most) {
			most = c
		}
	}
	if len(most) < 2 {
		return nil
	}
	slices.Sort(most)
	return most
}

// declared says whether an object belongs to the package, or to a type of it, and
// not to a function.
func declared(o types.Object) bool {
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return true
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return o.Parent() == o.Pkg().Scope()
}

func base(fset *token.FileSet, at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }

// components are the strongly connected ones of a graph (Tarjan).
func components(leads map[string]map[string]bool) (all [][]string) {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(v string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v], on[v], stack = index[v], true, append(stack, v)
		for w := range leads[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		for _, w := range stack[i:] {
			on[w] = false
		}
		all = append(all, slices.Clone(stack[i:]))
		stack = stack[:i]
	}
	for v := range leads {
		if index[v] == 0 {
			visit(v)
		}
	}
	return all
}
