package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A mutant is one change in one place.
type mutant struct {
	number     int
	file       *source
	where      string // file: function
	line       int
	from, to   string
	occurrence int // number among equal changes in the same function
	order      int // in the file; of two in one place the outer comes first
	start, end int // in the file
	pieces     []piece
	dead       string // what killed it
	reached    []*test
}

// A piece is a part of a replacement: text, in which # is the mutant's number, or a section of the
// file with the changes within it.
type piece struct {
	text       string
	start, end int
}

// String names a mutant without its line number.
func (m *mutant) String() string { return m.where + ": " + m.from + " → " + m.to }

// A finder looks for changes in one file.
type finder struct {
	*unit
	file  *source
	info  *types.Info
	pkg   *types.Package
	fn    string
	seen  map[string]int
	found []*mutant
}

func (f *finder) decls() {
	for _, decl := range f.file.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if f.fn = nameOf(d); d.Body == nil || silent(d.Name.Name) {
				continue
			}
			f.returnAtOnce(d)
			f.within(d.Body)
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				f.fn = "var"
				f.within(d)
			}
		}
	}
}

// silent reports which functions only make text for people.
func silent(name string) bool {
	return name == "init" || name == "String" || name == "GoString" || name == "Error" || name == "LogValue"
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

func (f *finder) within(root ast.Node) {
	ast.PreorderStack(root, nil, func(n ast.Node, _ []ast.Node) bool { return f.look(n) })
}

// look makes the changes of one node, and reports whether to look below it.
func (f *finder) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ArrayType:
		return false
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		f.condition(n.Cond)
	case *ast.ReturnStmt:
		f.swallow(n)
	case *ast.CallExpr:
		if f.quiet(n) {
			return false
		}
	}
	if e, ok := n.(ast.Expr); ok {
		if f.info.Types[e].Value != nil {
			f.constant(e)
			return false
		}
		if b, ok := n.(*ast.BinaryExpr); ok {
			f.binary(b)
		}
	}
	return true
}

// add notes a change. In format, %s stands for the file's text of a node, and # for the number.
func (f *finder) add(start, end token.Pos, to, format string, nodes ...ast.Node) {
	m := &mutant{
		file: f.file, where: f.where(f.file) + ": " + f.fn, line: f.fset.Position(start).Line,
		start: f.offset(start), end: f.offset(end), from: f.text(start, end), to: to,
	}
	if start == end {
		m.from = "the body"
	}
	for _, n := range nodes {
		before, after, _ := strings.Cut(format, "%s")
		m.pieces = append(m.pieces, piece{text: before}, piece{start: f.offset(n.Pos()), end: f.offset(n.End())})
		format = after
	}
	m.pieces = append(m.pieces, piece{text: format})
	key := m.String()
	f.seen[key]++
	m.occurrence, m.order = f.seen[key], len(f.found)
	f.found = append(f.found, m)
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// text returns a place's text on one line, without quotes that would end a line of docs/testing.md.
func (f *finder) text(start, end token.Pos) string {
	text := strings.Join(strings.Fields(string(f.file.text[f.offset(start):f.offset(end)])), " ")
	text = strings.ReplaceAll(text, "`", "'")
	if r := []rune(text); len(r) > 90 {
		text = string(r[:60]) + " … " + string(r[len(r)-27:])
	}
	return text
}

func (f *finder) of(n ast.Node) string { return f.text(n.Pos(), n.End()) }

// quiet says that a call only tells or makes room: it logs, makes an error's text, panics, or has a
// slice begin with a capacity.
func (f *finder) quiet(c *ast.CallExpr) bool {
	switch fun := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		_, builtin := f.info.Uses[fun].(*types.Builtin)
		return builtin && (fun.Name == "panic" || fun.Name == "make" && f.roomy(c))
	case *ast.SelectorExpr:
		object := f.info.Uses[fun.Sel]
		if object == nil || object.Pkg() == nil {
			return false
		}
		name := object.Pkg().Path() + "." + object.Name()
		return object.Pkg().Path() == "log/slog" || slices.Contains([]string{"fmt.Errorf", "errors.New", "slices.Grow", "strings.Grow", "bytes.Grow"}, name)
	}
	return false
}

// roomy says that what make is told of the size is a capacity only.
func (f *finder) roomy(c *ast.CallExpr) bool {
	if len(c.Args) == 2 {
		_, ok := f.info.TypeOf(c.Args[0]).Underlying().(*types.Map)
		return ok
	}
	return len(c.Args) == 3
}

// qualified is a type as the file can write it; empty where it cannot.
func (f *finder) qualified(t types.Type) string {
	ok := true
	name := types.TypeString(t, func(p *types.Package) string {
		if p == f.pkg {
			return ""
		}
		for _, spec := range f.file.tree.Imports {
			if strings.Trim(spec.Path.Value, `"`) != p.Path() {
				continue
			}
			if spec.Name != nil {
				return spec.Name.Name
			}
			return p.Name()
		}
		ok = false
		return p.Name()
	})
	if !ok {
		return ""
	}
	return name
}

// is tells a kind of basic type below a named one.
func is(t types.Type, info types.BasicInfo) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0 && b.Info()&types.IsUntyped == 0
}

func quote(op token.Token) string { return fmt.Sprintf(" %s ", op) }
