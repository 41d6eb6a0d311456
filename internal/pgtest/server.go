package pgtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/porttest"
)

// superuser is the user of each DSN.
const superuser = "holdfast"

// Options of a server. The zero value is ready to use, and syncs to disk as a real server does.
type Options struct {
	// NoSync is for tests without power cuts: fsync=off, and the files in memory if there is room. Killing the
	// server loses nothing.
	NoSync bool
	// Dir is the parent of the server's folder; "" is the system's folder for temporary files. If the tests run
	// as root, the user of the server must have access to it.
	Dir string
	// Beside is for tests that mostly wait for servers and other processes. Main then runs twice as many tests
	// at once as there are processors, unless -parallel is given.
	Beside bool
	// Settings are further lines of postgresql.conf. They override those of this package.
	Settings map[string]string

	// auth is the method by which a client proves its password; "" is scram-sha-256. On a server shared by many
	// tests it must not cost a thousand hashes per connection.
	auth string
}

// folder returns the parent of the server's folder. Copying a database is ten times as fast in memory.
func (o Options) folder() string {
	if o.Dir == "" && o.NoSync && os.Getenv("TMPDIR") == "" && roomIn(memory) > 2<<30 {
		return memory
	}
	return o.Dir
}

// memory is Linux's file system in memory.
const memory = "/dev/shm"

// Mode says how a server is stopped.
type Mode string

// The modes of pg_ctl that do not wait for clients.
const (
	Fast      Mode = "INT"  // cuts clients off, rolls transactions back, makes a checkpoint
	Immediate Mode = "QUIT" // like a crash: the next start recovers from the log
)

// A Server is a private PostgreSQL. Its methods may be called concurrently; each returns when its effect is
// complete. The port stays the same over restarts.
type Server struct {
	bin      string
	keep     *keeper
	port     int
	password string

	mu     sync.Mutex // guards the fields up to the empty line
	run    *process   // the last server process
	paused []int      // its processes while they are paused

	templates sync.Map // name → *template
	fileCopy  bool     // copy databases as files, not through the log: faster without syncs

	// For the shared server; a connection carries over what a user leaves behind.
	consoles chan *pgx.Conn
}

// New starts a server for a program that is not a test. Close stops it.
func New(o Options) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	keep, err := newKeeper(o.folder(), "postgres")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, keep: keep, password: rand.Text(), fileCopy: o.NoSync}
	if err := s.create(o); err != nil {
		return nil, errors.Join(err, keep.close())
	}
	return s, nil
}

// create makes the data folder and starts the server for the first time, on a free port.
func (s *Server) create(o Options) error {
	password, err := s.keep.write("password", s.password)
	if err != nil {
		return err
	}
	// Each run starts with an empty server, so the files of initdb need not survive a power cut.
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "--pgdata="+s.data(), "--username="+superuser,
		"--pwfile="+password, "--auth="+cmp.Or(o.auth, "scram-sha-256"), "--encoding=UTF8", "--locale=C", "--no-sync")
	if err := s.keep.run("initdb", initdb); err != nil {
		return err
	}
	for range 5 {
		if s.port, err = porttest.Free(); err != nil {
			return err
		}
		if _, err = s.keep.write("data/postgresql.conf", s.settings(o)); err != nil {
			return err
		}
		err = s.Start()
		if err == nil || !strings.Contains(s.keep.log("postgres"), "could not bind") {
			break // otherwise another process took the port in the meantime
		}
	}
	return err
}

func (s *Server) data() string { return filepath.Join(s.keep.dir, "data") }

func (s *Server) settings(o Options) string {
	all := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": s.sockets(),
		"max_connections":         "200",
		"shared_buffers":          "64MB",
		"fsync":                   "on",
		"synchronous_commit":      "on",
		"logging_collector":       "off", // log to standard error
		"log_line_prefix":         "%m [%p] %a ",
		"timezone":                "UTC",
	}
	if o.NoSync {
		all["fsync"] = "off"
		all["max_wal_size"] = "256MB" // the disk may be memory
	}
	maps.Copy(all, o.Settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	return b.String()
}

// sockets returns the folder of the server's Unix socket: its own, unless the path is too long for a socket.
func (s *Server) sockets() string {
	if len(s.keep.dir)+len("/.s.PGSQL.12345") > 100 {
		return ""
	}
	return s.keep.dir
}

// DSN returns the URL of a database of the server.
func (s *Server) DSN(database string) string { return dsn(s.port, s.password, database) }

func dsn(port int, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// PID returns the number of the server's first process, the parent of all others.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run.pid
}

// Log returns the end of the server's log.
func (s *Server) Log() string { return s.keep.log("postgres") }

// Start starts the server again after Stop or Kill, and waits until it answers.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && !s.run.ended() {
		return errors.New("start the server: it runs")
	}
	run, err := s.keep.spawn("postgres", string(Immediate), exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data()))
	if err != nil {
		return err
	}
	s.run = run
	return answers(run, s.keep, "postgres", s.DSN("postgres"))
}

// answers waits until a process accepts connections. It fails if the process has ended.
func answers(run *process, keep *keeper, name, dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-run.done:
			return fmt.Errorf("start %s: it ended: %w\n%s", name, run.err, keep.log(name))
		case <-ctx.Done():
			return fmt.Errorf("start %s: no answer: %w\n%s", name, err, keep.log(name))
		}
	}
}

// Stop stops the server.
func (s *Server) Stop(m Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.run.ended():
		return errors.New("stop the server: it does not run")
	case s.paused != nil:
		return errors.New("stop the server: it is paused")
	}
	if err := signal(s.run.pid, string(m)); err != nil {
		return err
	}
	// After an immediate stop the exit status is not zero; only that it has ended counts.
	if err := s.run.wait(); !s.run.ended() {
		return fmt.Errorf("stop the server: %w\n%s", err, s.Log())
	}
	return nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart(m Mode) error {
	if err := s.Stop(m); err != nil {
		return err
	}
	return s.Start()
}

// Close stops the server, whatever it does, and removes its data.
func (s *Server) Close() error { return s.keep.close() }
