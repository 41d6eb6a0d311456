// Package mailpittest starts a private Mailpit for tests: a mail server that is not ours, and whose
// API tells which mails it has accepted. It listens on free ports of the loopback interface.
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

// patience limits each wait for the process.
const patience = time.Minute

// A Server is a private Mailpit. Its ports stay the same over restarts. With the argument
// --database, so do its mails. One goroutine at a time may call its methods.
type Server struct {
	Port int    // for mail
	API  string // address of the API, with a trailing slash

	t    testing.TB
	path string
	args []string
	dir  string
	cmd  *exec.Cmd // nil: stopped
	out  *strings.Builder
}

// Start starts a server with further arguments, and stops it at the end of the test. If Mailpit is
// missing, the test is skipped, unless TEST_MAILPIT is set, as scripts/test does.
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

// Stop stops the server, as an operator does. It cuts off connections.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatalf("stop mailpit: %v", err)
	}
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait() // its exit status says nothing: it was told to stop
	s.cmd = nil
}

// Get requests path from the API, decodes the answer unless into is nil, and returns it.
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
