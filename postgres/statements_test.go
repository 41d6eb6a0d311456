package postgres_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sourceStatement is a constant of the package.
type sourceStatement struct{ file, text string }

// sourceStatements are the package's constants that are SQL, by name: so none is
// forgotten. It fails for a big table that is named anywhere else.
func sourceStatements(t testing.TB) map[string]sourceStatement {
	t.Helper()
	consts, in := map[string]ast.Expr{}, map[string]string{}
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for c, value := range valuesOf(d) {
					consts[c], in[c] = value, name
				}
				return false
			}
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && bigTables.MatchString(l.Value) && strings.Contains(l.Value, " ") {
				t.Errorf("%s: a statement that is no constant, so that nobody looks at its plan: %s", name, l.Value)
			}
			return true
		})
	}
	all := map[string]sourceStatement{}
	for name := range consts {
		text, ok := evaluate(consts, consts[name])
		if ok && (bigTables.MatchString(text) || verbs.MatchString(text)) {
			all[name] = sourceStatement{in[name], text}
		}
	}
	if len(all) < 100 {
		t.Fatalf("found %d statements: that cannot be all", len(all))
	}
	return all
}

var verbs = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)

func valuesOf(d *ast.GenDecl) map[string]ast.Expr {
	values := map[string]ast.Expr{}
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range v.Names {
			if i < len(v.Values) {
				values[name.Name] = v.Values[i]
			}
		}
	}
	return values
}

// evaluate returns the text of a constant; false: it is no text.
func evaluate(consts map[string]ast.Expr, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident:
		return evaluate(consts, consts[e.Name])
	case *ast.ParenExpr:
		return evaluate(consts, e.X)
	case *ast.BinaryExpr:
		left, ok := evaluate(consts, e.X)
		right, also := evaluate(consts, e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}
