package pgtest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared is the server of the test binary. It is a package variable because TestMain and the tests
// share no value.
var shared struct {
	mu     sync.Mutex
	inMain bool
	opts   Options
	server *Server
	err    error
}

// Main runs the tests of a binary, then stops the server that they shared, if any. It returns the
// exit code.
func Main(m *testing.M, o Options) int {
	shared.mu.Lock()
	shared.inMain, shared.opts = true, o
	shared.mu.Unlock()
	if err := o.beside(); err != nil {
		fmt.Fprintln(os.Stderr, "let tests run beside each other:", err)
		return 1
	}
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "end the server of the tests:", err)
		return 1
	}
	return code
}

// beside implements Options.Beside.
func (o Options) beside() error {
	if !o.Beside {
		return nil
	}
	if !flag.Parsed() {
		flag.Parse()
	}
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
}

// Shared returns the server that all tests of the binary share. The first call starts it. A test
// must not stop, pause or kill it; Start gives it a server of its own.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.inMain {
		t.Fatal("pgtest.Shared needs a TestMain that calls pgtest.Main, which ends the server")
	}
	if shared.server == nil && shared.err == nil {
		shared.opts.auth = "md5"
		shared.server, shared.err = New(shared.opts)
		if shared.err == nil {
			shared.server.consoles = make(chan *pgx.Conn, runtime.GOMAXPROCS(0))
		}
	}
	if shared.err != nil {
		t.Fatalf("start the server of the tests: %v", shared.err)
	}
	return shared.server
}

// Start starts a server for one test, and stops it at the end of the test. If the test has failed,
// it logs the end of the server's log.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("start a server: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server %s", s.Log())
		}
		if err := s.Close(); err != nil {
			t.Errorf("end the server: %v", err)
		}
	})
	return s
}
