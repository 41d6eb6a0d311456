package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/porttest"
)

// Pooling says how long a client of a pooler keeps its connection to the server.
type Pooling string

// The pool modes of pgbouncer that a client can tell apart.
const (
	Session     Pooling = "session"
	Transaction Pooling = "transaction"
)

// A Pooler is a pgbouncer in front of a server.
type Pooler struct {
	server *Server
	keep   *keeper
	port   int
}

// Bouncer starts a pgbouncer in front of a server, with default settings, and stops it at the end of the
// test.
func Bouncer(t testing.TB, s *Server, p Pooling) *Pooler {
	t.Helper()
	b, err := newPooler(s, p)
	if err != nil {
		t.Fatalf("start pgbouncer: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pgbouncer: %s", b.keep.log("pgbouncer"))
		}
		if err := b.keep.close(); err != nil {
			t.Errorf("end pgbouncer: %v", err)
		}
	})
	return b
}

func newPooler(s *Server, p Pooling) (*Pooler, error) {
	program, err := bouncer()
	if err != nil {
		return nil, err
	}
	port, err := porttest.Free()
	if err != nil {
		return nil, err
	}
	keep, err := newKeeper("", "pgbouncer")
	if err != nil {
		return nil, err
	}
	b := &Pooler{server: s, keep: keep, port: port}
	if err := b.start(program, p); err != nil {
		return nil, errors.Join(err, keep.close())
	}
	return b, nil
}

func (b *Pooler) start(program string, p Pooling) error {
	users, err := b.keep.write("users", fmt.Sprintf("%q %q\n", superuser, b.server.password))
	if err != nil {
		return err
	}
	config, err := b.keep.write("pgbouncer.ini", fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = %s
max_client_conn = 200
default_pool_size = 20
`, b.server.port, b.port, users, p))
	if err != nil {
		return err
	}
	run, err := b.keep.spawn("pgbouncer", "TERM", exec.Command(program, config))
	if err != nil {
		return err
	}
	return answers(run, b.keep, "pgbouncer", dsn(b.port, b.server.password, "postgres"))
}

// Through returns the URL, through the pooler, of the database of a DSN of the server.
func (b *Pooler) Through(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("read a DSN: %v", err)
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port))
	return u.String()
}
