package config_test

import (
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	key  = "0123456789abcdef0123456789abcdef"
	good = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	// address is that of a database, with its password.
	address = "postgres://holdfast:hunter2%21@db.example:5432/holdfast?sslmode=verify-full"
	stray   = "m90IGEgcmVhbCBzZWNyZX" // a part of the secrets that stand in test files where none must
)

// world is a process with the given variables, and with files of its own that
// are found by their base names.
func world(vars map[string]string) config.Env {
	all := map[string]string{"GOOD": good, "EMPTY": "", "PLAIN": "correct horse battery", "SHORT": "c2hvcnQ=", "SIXTEEN": "MDEyMzQ1Njc4OWFiY2RlZg==", "ADDRESS": address}
	maps.Copy(all, vars)
	files := map[string]string{"good.b64": good + "\n", "plain.txt": "correct horse battery\n", "address.txt": address + "\n"}
	return config.Env{
		Kinds: node.DestinationKinds(),
		Lookup: func(name string) (string, bool) {
			value, ok := all[name]
			return value, ok
		},
		List: func() []string {
			var list []string
			for name, value := range all {
				list = append(list, name+"="+value)
			}
			return list
		},
		Host: func() (string, error) { return "Shop-12", nil },
		ReadFile: func(path string) ([]byte, error) {
			content, ok := files[filepath.Base(path)]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return []byte(content), nil
		},
	}
}

// parse is Parse of a file in the working directory that must be right.
func parse(tb testing.TB, text string) *config.Config {
	tb.Helper()
	c, _, err := config.Parse("holdfast.yaml", []byte(text), world(nil), config.Overrides{})
	if err != nil {
		tb.Fatalf("parse:\n%v", err)
	}
	return c
}

// faults returns the faults of an error of this package.
func faults(tb testing.TB, err error) []config.Fault {
	tb.Helper()
	e, ok := errors.AsType[*config.Error](err)
	if !ok {
		tb.Fatalf("error is %T (%v), want *config.Error", err, err)
	}
	return e.Faults
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// portable makes a text the same in every working directory and system.
func portable(tb testing.TB, text string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	text = strings.ReplaceAll(text, `\\`, "/") // Windows, quoted
	return strings.ReplaceAll(text, filepath.ToSlash(dir), "WORKDIR")
}
