package config

import (
	"os"
	"strings"

	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Env is what Load sees of its process. The zero value has no variables and no host name.
type Env struct {
	Lookup func(name string) (string, bool)
	List   func() []string // NAME=value, as os.Environ
	Host   func() (string, error)
	// ReadFile reads the configuration, secrets and certificates. Nil: it reads regular files of the machine,
	// up to 1 MiB.
	ReadFile func(path string) ([]byte, error)
	Kinds    []adapter.Kind // of destinations; none: every destination is a peer
	// Known names more HOLDFAST_ variables, which the caller reads itself.
	Known []string
}

// Process returns the environment of this process, for a configuration that may have these kinds of
// destinations. The binary passes node.DestinationKinds.
func Process(kinds []adapter.Kind) Env {
	return Env{Kinds: kinds, Lookup: os.LookupEnv, List: os.Environ, Host: os.Hostname, ReadFile: setting.ReadFile}
}

// Overrides holds the values of flags. A zero field was not given.
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
	Insecure          *bool // --insecure, which is always refused
}

// Load reads the file, puts the environment and the flags over it, and checks the result. An empty file name
// means that there is no file. The error is an *Error with every fault. Show the warnings in either case.
func Load(file string, env Env, o Overrides) (*Config, []Warning, error) {
	if file == "" {
		return Parse("", nil, env, o)
	}
	read := env.ReadFile
	if read == nil {
		read = setting.ReadFile
	}
	data, err := read(file)
	if err != nil {
		return nil, nil, &Error{Faults: []Fault{{
			File: file, Problem: "cannot be read: " + setting.Cause(err).Error(),
			Fix: "name an existing file, or no file to run with the defaults", Err: setting.Cause(err),
		}}}
	}
	return Parse(file, data, env, o)
}

// Parse is Load for a file in memory. Faults show its name; paths in it are relative to the folder of that name.
func Parse(name string, data []byte, env Env, o Overrides) (*Config, []Warning, error) {
	l := setting.NewLoader(name, env.Lookup, env.ReadFile)
	c := Default()
	if len(data) > 0 {
		l.Document(data, configKeys(env.Kinds).Decoders(l, c))
	}
	environment(l, c)
	flags(l, c, o)
	if c.Node.ID == "" && !l.Given("node.id") {
		host(l, env, c)
	}
	if !l.Given("data") {
		c.Data = l.Absolute("data", "", c.Data)
	}
	if c.Backup.Folder == (&Config{Data: c.Data}).BackupFolder() {
		c.Backup.Folder = "" // so that a printed configuration means the same
	}
	if !l.Given("drain") {
		c.Drain = min(c.Drain, c.Stop/10)
	}
	check(l.Report, c)
	unknownVariables(l, env)
	if err := l.Err(); err != nil {
		return nil, l.Warnings, err
	}
	if !c.Store.IsZero() { // so that a printed configuration means the same
		c.Data, c.Backup, c.Limits.Reserve = "", Backup{Every: Never}, 0
	}
	return c, l.Warnings, nil
}

func host(l *setting.Loader, env Env, c *Config) {
	fix := "set node.id, HOLDFAST_NODE_ID or --node-id"
	if env.Host == nil {
		l.Unreadable("node.id", "", setting.Problem{What: "is not set, and there is no host name to take", Fix: fix})
		return
	}
	name, err := env.Host()
	if err != nil {
		l.Unreadable("node.id", "", setting.Problem{What: "is not set, and the host name cannot be read: " + err.Error(), Fix: fix})
		return
	}
	c.Node.ID = strings.ToLower(name)
	if p := setting.NameProblem(c.Node.ID); p != nil {
		l.Unreadable("node.id", c.Node.ID, setting.Problem{What: "is the host name, and " + p.What, Fix: fix})
	}
}
