package setting

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// Loader fills a struct, and reports what it cannot read.
type Loader struct {
	*Report
	Lookup   func(name string) (string, bool)
	ReadFile func(path string) ([]byte, error)
	File     string
	dir      string // folder of the file's relative paths
	nodes    int    // YAML nodes visited
	Secrets  map[string]bool
}

// NewLoader returns a loader of a file. A nil lookup knows no variables; a nil read reads the regular files
// of the machine.
func NewLoader(file string, lookup func(string) (string, bool), read func(string) ([]byte, error)) *Loader {
	l := &Loader{Report: NewReport(), Lookup: lookup, ReadFile: read, File: file, Secrets: map[string]bool{}}
	if l.Lookup == nil {
		l.Lookup = func(string) (string, bool) { return "", false }
	}
	if l.ReadFile == nil {
		l.ReadFile = ReadFile
	}
	if file != "" {
		l.dir = filepath.Dir(file)
	}
	return l
}

// Absolute makes a path independent of the working directory, so that a printed configuration means the same
// everywhere.
func (l *Loader) Absolute(at, dir, path string) string {
	switch {
	case path == "":
		l.Unreadable(at, "", Problem{"is empty", "write a path, or remove the key"})
		return ""
	case path == "~" || strings.HasPrefix(path, "~/"):
		l.Unreadable(at, path, Problem{"begins with ~, which only a shell knows", "write the whole path"})
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		l.Unreadable(at, path, Problem{"cannot be made absolute: " + err.Error(), "write an absolute path"})
	}
	return abs
}

// Unreadable reports a value, and exempts it from the checks.
func (l *Loader) Unreadable(path, value string, p Problem) {
	l.Fault(path, value, p)
	l.Bad[path] = true
}

// readable tries to read a file that the node will need later, so that a mistyped path is reported together
// with all other faults.
func (l *Loader) readable(path, file string) {
	if file == "" {
		return
	}
	if _, err := l.ReadFile(file); err != nil {
		l.cannotRead(path, file, err)
	}
}

func (l *Loader) cannotRead(path, file string, err error) {
	before := len(l.faults)
	l.Unreadable(path, file, Problem{"cannot be read: " + Cause(err).Error(), "check the path and its permissions"})
	if len(l.faults) > before {
		l.faults[before].Err = Cause(err)
	}
}

// ReadFile reads a regular file of up to 1 MiB.
func ReadFile(path string) ([]byte, error) { return namedfile.Read(path, maxFile) }

// Cause strips the path that fs adds to an error. The fault already names the path, unless it must not be shown.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// maxFile bounds the bytes read of a file; a configuration has a few KiB.
const maxFile = 1 << 20
