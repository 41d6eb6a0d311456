// Package mariatest starts a private MariaDB for tests, from the binaries of the system. A server
// listens on a free port of the loopback interface and keeps its data in its own folder. It does not
// outlive the test binary, even if that is killed: a shell between the two stops the server when its
// standard input ends. Only the folder remains then. If there is no MariaDB, the test fails and says
// what to install; no test is skipped.
package mariatest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-mq/holdfast/internal/porttest"
)

// patience limits each wait for a process or an answer.
const patience = 60 * time.Second

// leash runs a command until its own standard input ends, detached from the terminal's signals. Then it
// stops the command in order, or kills it.
const leash = `trap '' HUP INT QUIT TERM
"$@" </dev/null &
pid=$!
cat >/dev/null
kill -s TERM $pid
tries=0
while kill -s 0 $pid 2>/dev/null && [ $tries -lt 400 ]; do tries=$((tries + 1)); sleep 0.05; done
kill -s KILL $pid 2>/dev/null
wait $pid`

// A Server is a private MariaDB. The port stays the same over restarts.
type Server struct {
	Port     int
	User     string
	Password string

	bin, dir string
	run      *exec.Cmd
	leash    io.Closer
}

// New starts a server that several tests share. Close stops it.
func New() (*Server, error) {
	s := &Server{User: "holdfast", Password: rand.Text()}
	return s, s.create()
}

// Start starts a server for one test, and stops it at the end of the test. If the test has failed, it
// logs the end of the server's log.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatalf("start MariaDB: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.log())
		}
		if err := s.Close(); err != nil {
			t.Errorf("end MariaDB: %v", err)
		}
	})
	return s
}

// Close stops the server and removes its data.
func (s *Server) Close() error { return errors.Join(s.Stop(), os.RemoveAll(s.dir)) }

func (s *Server) create() error {
	var err error
	if s.bin, err = binary("mariadbd"); err != nil {
		return err
	}
	install, err := binary("mariadb-install-db")
	if err != nil {
		return err
	}
	// Not the test's own folder: the path of a socket must be short.
	if s.dir, err = os.MkdirTemp("", "holdfast-maria-"); err != nil {
		return err
	}
	out, err := exec.Command(install, append(common(), "--datadir="+s.data(), "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("make its files: %w\n%s", err, out), os.RemoveAll(s.dir))
	}
	for range 5 {
		if s.Port, err = porttest.Free(); err != nil {
			break
		}
		if err = s.Start(); err == nil || !strings.Contains(s.log(), "Can't start server: Bind") {
			break // otherwise another process took the port in the meantime
		}
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Start starts the server again after Stop, and waits until it answers.
func (s *Server) Start() error {
	users := fmt.Sprintf("create user if not exists '%[1]s'@'127.0.0.1' identified by '%[2]s';\ngrant all on *.* to '%[1]s'@'127.0.0.1' with grant option;\n", s.User, s.Password)
	init := filepath.Join(s.dir, "init.sql")
	if err := os.WriteFile(init, []byte(users), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"-c", leash, "leash", s.bin}, common()...)
	s.run = exec.Command("sh", append(args, "--datadir="+s.data(), "--init-file="+init,
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.Port), "--socket="+filepath.Join(s.dir, "sock"), "--pid-file="+filepath.Join(s.dir, "pid"),
		"--skip-name-resolve", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=1")...)
	s.run.Stdout, s.run.Stderr, s.run.Dir = log, log, s.dir
	if s.leash, err = s.run.StdinPipe(); err != nil {
		return err
	}
	if err := s.run.Start(); err != nil {
		return err
	}
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w\n%s", err, s.log())
		}
	}
}

// Stop stops the server, as an operator does.
func (s *Server) Stop() error {
	if s.leash == nil {
		return nil
	}
	_ = s.leash.Close()
	timer := time.AfterFunc(patience, func() { _ = s.run.Process.Kill() })
	defer timer.Stop()
	s.leash = nil
	if err := s.run.Wait(); err != nil && s.run.ProcessState == nil {
		return err
	}
	return nil // its exit status says nothing: it was told to stop
}

func (s *Server) log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return "the end of MariaDB's log:\n" + string(text[max(0, len(text)-4000):])
}

// DSN returns the DSN of a database of the server, in the form of its Go driver.
func (s *Server) DSN(database string) string {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), s.User, s.Password, database
	c.Logger = &mysql.NopLogger{}
	return c.FormatDSN()
}

// Database makes a new database for the test, and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())[:16]
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "create database "+name+" character set utf8mb4"); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	return name
}

// binary finds a program that Debian installs outside PATH.
func binary(name string) (string, error) {
	for _, place := range []string{name, "/usr/sbin/" + name, "/usr/bin/" + name} {
		if path, err := exec.LookPath(place); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s in PATH or /usr/sbin; on Debian: apt-get install mariadb-server", name)
}

// common begins each command line: root must ask for it explicitly.
func common() []string {
	if os.Geteuid() == 0 {
		return []string{"--no-defaults", "--user=root"}
	}
	return []string{"--no-defaults"}
}
