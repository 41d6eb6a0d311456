//go:build unix

package mtatest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/porttest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// leash runs a command in its own session until its own standard input ends, and then kills the
// whole session.
const leash = `setsid "$@" </dev/null &
pid=$!
cat >/dev/null
kill -s KILL -- "-$pid"
wait $pid`

// A Server is a private mail server. Its port stays the same over restarts. One goroutine at a time
// may call its methods.
type Server struct {
	Name string
	Port int

	t     testing.TB
	dir   string
	env   []string
	args  []string
	mails func() (map[string][]string, error)
	run   *exec.Cmd // nil: not running
	leash io.Closer
	out   bytes.Buffer
}

// start makes a server's folder, which other users may traverse, and calls prepare to write into
// it.
func start(t testing.TB, name string, prepare func(s *Server) error) *Server {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip(name + " starts as root only")
	}
	dir, err := os.MkdirTemp("", "holdfast-mta-") //nolint:usetesting // other users cannot go through a test's own
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Name: name, Port: free(t), t: t, dir: dir}
	t.Cleanup(func() {
		if s.Kill(); t.Failed() {
			t.Log(s.log())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := prepare(s); err != nil {
		t.Fatalf("prepare %s: %v", name, err)
	}
	s.Start()
	return s
}

// Start starts the server again after Kill, and waits for its greeting.
func (s *Server) Start() {
	s.t.Helper()
	s.run = exec.Command("sh", append([]string{"-c", leash, "sh"}, s.args...)...)
	s.run.Env = append(os.Environ(), s.env...)
	s.run.Stdout, s.run.Stderr = &s.out, &s.out
	s.run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.leash, err = s.run.StdinPipe(); err == nil {
		err = s.run.Start()
	}
	if err != nil {
		s.run = nil
		s.t.Fatalf("start %s: %v", s.Name, err)
	}
	waittest.Until(s.t, s.Name+" greets", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
		if err != nil {
			return false
		}
		defer conn.Close()
		greeting := make([]byte, 4)
		_, err = io.ReadFull(conn, greeting)
		_, _ = io.WriteString(conn, "QUIT\r\n")
		return err == nil && string(greeting) == "220 "
	})
}

// Kill kills the server and all its processes without warning.
func (s *Server) Kill() {
	if s.run == nil {
		return
	}
	_ = s.leash.Close()
	_ = s.run.Wait() // the exit status of a shell that kills says nothing
	s.run = nil
}

// Grey sets whether recipients whose name begins with "grey" are put off.
func (s *Server) Grey(on bool) {
	s.t.Helper()
	var err error
	if on {
		err = os.WriteFile(s.path("grey"), nil, 0o644)
	} else if err = os.Remove(s.path("grey")); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Mails returns the Message-IDs of each recipient's mails.
func (s *Server) Mails() map[string][]string {
	s.t.Helper()
	all, err := s.mails()
	if err != nil {
		s.t.Fatalf("read the mails of %s: %v", s.Name, err)
	}
	return all
}

func (s *Server) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// log returns the server's log, for people.
func (s *Server) log() string {
	text := []byte(s.Name + ": " + s.out.String())
	files, _ := filepath.Glob(s.path("log", "*"))
	for _, f := range files {
		if raw, err := os.ReadFile(f); err == nil {
			text = fmt.Appendf(text, "\n%s:\n%s", f, raw[max(0, len(raw)-20_000):])
		}
	}
	return string(text)
}

// field returns a header field of a stored mail. The server may have put something before each
// field.
func field(mail, name string) string {
	for line := range strings.Lines(mail) {
		if before, value, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(before, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// tell runs a program and returns its output.
func (s *Server) tell(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// free finds a port.
func free(t testing.TB) int {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
