// Package mailpittest starts a private Mailpit for tests: a mail server that is not ours, and that
// tells over its API what it has taken. It listens on free ports of the loopback interface.
package mailpittest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/porttest"
)

// patience is how long anything here waits for the process.
const patience = time.Minute

// A Server is a private Mailpit. Its ports stay the same over restarts; what it has taken stays with
// the argument --database. Its methods are called by one goroutine at a time.
type Server struct {
	Port int    // takes mail
	API  string // address of the API, with a slash at its end

	t    testing.TB
	path string
	args []string
	dir  string
	cmd  *exec.Cmd // nil: stopped
	out  *strings.Builder
}

// Start starts a server with further arguments, and ends it with the test. Without TEST_MAILPIT,
// which scripts/test sets, it may be missing: then the test is skipped.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	path := os.Getenv("TEST_MAILPIT")
	if path == "" {
		var err error
		if path, err = exec.LookPath("mailpit"); err != nil {
			t.Skip("there is no mailpit in PATH, and TEST_MAILPIT names none; scripts/test installs it")
		}
	}
	s := &Server{Port: free(t), t: t, path: path, dir: t.TempDir()}
	web := fmt.Sprintf("127.0.0.1:%d", free(t))
	s.API = "http://" + web + "/api/v1/"
	s.args = append([]string{"--smtp", s.smtp(), "--listen", web, "--disable-version-check", "--quiet"}, args...)
	t.Cleanup(func() {
		if s.cmd != nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	s.Start()
	return s
}

func (s *Server) smtp() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Start starts the server again after Stop, and waits until it listens.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd, s.out = exec.Command(s.path, s.args...), &strings.Builder{}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.out, s.out
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		s.t.Fatalf("start mailpit: %v", err)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.smtp())
		if err == nil {
			_ = conn.Close()
			if resp, err := http.Get(s.API + "info"); err == nil {
				_ = resp.Body.Close()
				return
			}
		}
		if time.Since(begun) > patience {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
			s.cmd = nil
			s.t.Fatalf("mailpit does not listen: %v\n%s", err, s.out)
		}
	}
}

// Stop ends the server, as an operator does; whoever talks to it is cut off.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatalf("stop mailpit: %v", err)
	}
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait() // how it ended says nothing: it was told to
	s.cmd = nil
}

// Get asks the API for what is below path, decodes it unless into is nil, and returns it.
func (s *Server) Get(t testing.TB, path string, into any) string {
	t.Helper()
	resp, err := http.Get(s.API + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return string(raw)
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
