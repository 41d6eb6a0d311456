package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// A unit is a package and its test binary with mutants.
type unit struct {
	path, dir string
	label     string // the folder, relative to the working directory
	fset      *token.FileSet
	files     []*source
	imports   types.Importer
	found     []*mutant // all possible mutants
	drawn     []*mutant // the mutants that are tried, by number
	binary    string
	tests     []*test
	slow      []string     // tests that took too long
	broken    []string     // tests that fail without a fault
	cpu       atomic.Int64 // CPU time of the binary, in nanoseconds
}

// A source is one file of a package.
type source struct {
	name string
	text []byte
	tree *ast.File
}

type listed struct {
	Dir          string   `json:"Dir"`
	ImportPath   string   `json:"ImportPath"`
	Export       string   `json:"Export"`
	GoFiles      []string `json:"GoFiles"`
	TestGoFiles  []string `json:"TestGoFiles"`
	XTestGoFiles []string `json:"XTestGoFiles"`
	DepOnly      bool     `json:"DepOnly"`
}

// load reads the packages of a pattern that have tests, with all possible changes.
func load(ctx context.Context, pattern string) ([]*unit, error) {
	packages, err := list(ctx, pattern)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	var units []*unit
	for _, p := range packages {
		if p.DepOnly || len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		u, err := read(p, exports)
		if err != nil {
			return nil, err
		}
		units = append(units, u)
	}
	if len(units) == 0 {
		return nil, errors.New("no package has tests")
	}
	return units, nil
}

// list makes the go command compile the imports of the packages, to read types from.
func list(ctx context.Context, pattern string) (packages []listed, err error) {
	const fields = "-json=Dir,ImportPath,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly"
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-export", fields, "--", pattern) //nolint:gosec // what the command line names
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		packages = append(packages, p)
	}
}

func read(p listed, exports map[string]string) (*unit, error) {
	u := &unit{path: p.ImportPath, dir: p.Dir, fset: token.NewFileSet()}
	u.imports = importer.ForCompiler(u.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if u.label, err = filepath.Rel(here, p.Dir); err != nil {
		return nil, err
	}
	u.label = filepath.ToSlash(u.label)
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name)) //nolint:gosec // a file of the package
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(u.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		u.files = append(u.files, &source{name, text, tree})
	}
	return u, u.find()
}

// find finds all possible changes.
func (u *unit) find() error {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	trees := make([]*ast.File, len(u.files))
	for i, f := range u.files {
		trees[i] = f.tree
	}
	pkg, err := u.config(nil).Check(u.path, u.fset, trees, info)
	if err != nil {
		return err
	}
	for _, f := range u.files {
		if !ast.IsGenerated(f.tree) {
			finder := finder{unit: u, file: f, info: info, pkg: pkg, seen: map[string]int{}}
			finder.decls()
			u.found = append(u.found, finder.found...)
		}
	}
	return nil
}

func (u *unit) config(faults func(error)) *types.Config {
	return &types.Config{Importer: u.imports, Error: faults, Sizes: types.SizesFor("gc", runtime.GOARCH)}
}

// where returns the name of a file for readers.
func (u *unit) where(f *source) string {
	return strings.TrimPrefix(u.label+"/"+f.name, "./")
}
