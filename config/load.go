package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// maxFile bounds what is read of a file; a configuration has a few KiB.
const maxFile = 1 << 20

// Env is what Load sees of the process around it. Its zero value has no
// variables and no host name.
type Env struct {
	Lookup func(name string) (string, bool)
	List   func() []string // NAME=value, as os.Environ
	Host   func() (string, error)
	// ReadFile reads the configuration, secrets and certificates. Nil: the
	// regular files of the machine, up to 1 MiB.
	ReadFile func(path string) ([]byte, error)
	// Known names further HOLDFAST_ variables, which the caller reads itself.
	Known []string
}

// Process returns the environment of this process.
func Process() Env {
	return Env{Lookup: os.LookupEnv, List: os.Environ, Host: os.Hostname, ReadFile: readFile}
}

// Overrides holds the values of flags; a zero field was not given.
type Overrides struct {
	NodeID    string // --node-id
	Listen    string // --listen
	Data      string // --data
	Store     string // --store
	Tokens    string // --tokens
	LogLevel  string // --log-level
	LogFormat string // --log-format

	ListenUnencrypted *bool // --listen-unencrypted
	StoreUnencrypted  *bool // --store-unencrypted
	Insecure          *bool // --insecure, which is refused
}

// Load reads the file, puts the environment and the flags over it, and checks
// the result. An empty file name means that there is no file. The error is an
// *Error with every fault; the warnings are worth showing in either case.
func Load(file string, env Env, o Overrides) (*Config, []Warning, error) {
	if file == "" {
		return Parse("", nil, env, o)
	}
	read := env.ReadFile
	if read == nil {
		read = readFile
	}
	data, err := read(file)
	if err != nil {
		return nil, nil, &Error{Faults: []Fault{{
			File: file, Problem: "cannot be read: " + cause(err).Error(),
			Fix: "name an existing file, or none to run with the defaults", Err: cause(err),
		}}}
	}
	return Parse(file, data, env, o)
}

// Parse is Load for a file that is in memory. Its name stands in faults, and
// its folder is what the paths in it are relative to.
func Parse(name string, data []byte, env Env, o Overrides) (*Config, []Warning, error) {
	l := newLoader(name, env)
	c := Default()
	if len(data) > 0 {
		l.document(data, configKeys().decoders(l, c))
	}
	l.environment(c)
	l.flags(c, o)
	if c.Node.ID == "" && !l.given("node.id") {
		l.host(c)
	}
	if !l.given("data") {
		c.Data = l.absolute("data", "", c.Data)
	}
	if c.Backup.Folder == (&Config{Data: c.Data}).BackupFolder() {
		c.Backup.Folder = "" // so that a printed configuration means the same
	}
	if !l.given("drain") {
		c.Drain = min(c.Drain, c.Stop/10)
	}
	l.check(c)
	l.unknownVariables()
	if err := l.err(); err != nil {
		return nil, l.warnings, err
	}
	if !c.Store.IsZero() { // so that a printed configuration means the same
		c.Data, c.Backup, c.Limits.Reserve = "", Backup{Every: Never}, 0
	}
	return c, l.warnings, nil
}

// loader fills a Config, and reports what it cannot read.
type loader struct {
	*report
	env     Env
	file    string
	dir     string // what paths in the file are relative to
	nodes   int    // YAML nodes visited
	secrets map[string]bool
}

func newLoader(file string, env Env) *loader {
	l := &loader{report: newReport(), env: env, file: file, secrets: map[string]bool{}}
	if l.env.Lookup == nil {
		l.env.Lookup = func(string) (string, bool) { return "", false }
	}
	if l.env.ReadFile == nil {
		l.env.ReadFile = readFile
	}
	if file != "" {
		l.dir = filepath.Dir(file)
	}
	return l
}

// absolute makes a path independent of the working directory, so that a
// printed configuration means the same wherever it is read.
func (l *loader) absolute(at, dir, path string) string {
	switch {
	case path == "":
		l.unreadable(at, "", problem{"is empty", "write a path, or remove the key"})
		return ""
	case path == "~" || strings.HasPrefix(path, "~/"):
		l.unreadable(at, path, problem{"begins with ~, which only a shell knows", "write the whole path"})
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		l.unreadable(at, path, problem{"cannot be made absolute: " + err.Error(), "write an absolute path"})
	}
	return abs
}

// unreadable reports a value that the checks need not look at any more.
func (l *loader) unreadable(path, value string, p problem) {
	l.fault(path, value, p)
	l.bad[path] = true
}

func (l *loader) host(c *Config) {
	fix := "set node.id, HOLDFAST_NODE_ID or --node-id"
	if l.env.Host == nil {
		l.unreadable("node.id", "", problem{"is not set, and there is no host name to take", fix})
		return
	}
	name, err := l.env.Host()
	if err != nil {
		l.unreadable("node.id", "", problem{"is not set, and the host name cannot be read: " + err.Error(), fix})
		return
	}
	c.Node.ID = strings.ToLower(name)
	if p := nameProblem(c.Node.ID); p != nil {
		l.unreadable("node.id", c.Node.ID, problem{"is the host name, and " + p.what, fix})
	}
}

// readable tries to read what the node will need later, so that a mistyped path
// is told together with all other faults.
func (l *loader) readable(path, file string) {
	if file == "" {
		return
	}
	if _, err := l.env.ReadFile(file); err != nil {
		l.cannotRead(path, file, err)
	}
}

func (l *loader) cannotRead(path, file string, err error) {
	before := len(l.faults)
	l.unreadable(path, file, problem{"cannot be read: " + cause(err).Error(), "check the path and its permissions"})
	if len(l.faults) > before {
		l.faults[before].Err = cause(err)
	}
}

func readFile(path string) ([]byte, error) { return namedfile.Read(path, maxFile) }

// cause strips what fs adds to an error: the path, which the fault names
// already unless it must not be shown.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
