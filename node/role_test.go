package node_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Issue 13, 4: a role is a list of parts. Which one a node has is asked where the lists
// are made, and by what reads the configuration; nowhere else.
func TestOnlyTheListsOfPartsKnowTheRole(t *testing.T) {
	t.Parallel()
	lists := []string{"role.go", "standalone.go", "site.go", "central.go"}
	var named []string
	for _, folder := range []string{".", "../doctor", "../admin", "../admin/httpapi", "../cmd/holdfast"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if ast.Inspect(parsed, func(n ast.Node) bool {
				if asksForRole(n) && !slices.Contains(named, file) {
					named = append(named, file)
				}
				return true
			}); slices.Contains(lists, file) && !slices.Contains(named, file) {
				t.Errorf("%s knows no role: this looks for something else", file)
			}
		}
	}
	for _, file := range named {
		if !slices.Contains(lists, file) {
			t.Errorf("%s asks for the role: make it a part of the lists", file)
		}
	}
}

// asksForRole says whether an expression is a role of a configuration, or one of the roles.
func asksForRole(n ast.Node) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of := ""
	switch x := s.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	switch s.Sel.Name {
	case "Site", "CentralOfSites", "Standalone":
		return of == "config"
	case "Role":
		return slices.Contains([]string{"cfg", "c", "conf", "now", "config", "Config"}, of)
	}
	return false
}
