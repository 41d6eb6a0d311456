package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	objectInUse   = "55006" // the SQLSTATE of a database with open connections
	nothing       = "template0"
	templateBegin = "template_"
)

// Database makes an empty database for the test, removes it at the test's end, and returns its DSN.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.database(t, nothing)
}

// A Template is a database to make copies of.
type Template struct {
	server *Server
	name   string
}

type template struct {
	once sync.Once
	err  error
}

// Template calls fill to prepare a database, once per server and name. Other callers with the same name
// wait meanwhile. fill closes its connections before it returns.
func (s *Server) Template(t testing.TB, name string, fill func(dsn string) error) Template {
	t.Helper()
	made, _ := s.templates.LoadOrStore(name, new(template))
	one, database := made.(*template), templateBegin+name
	one.once.Do(func() {
		one.err = errors.New("fill did not return") // stays if fill does not return: its test has ended
		one.err = s.prepare(database, fill)
	})
	if one.err != nil {
		t.Fatalf("prepare template %s: %v", name, one.err)
	}
	return Template{s, database}
}

func (s *Server) prepare(database string, fill func(dsn string) error) error {
	if err := s.copy(database, nothing); err != nil {
		return err
	}
	if err := fill(s.DSN(database)); err != nil {
		return err
	}
	// A template cannot be copied while it has connections: from here on it accepts none.
	if err := s.Exec(maintenance, "alter database "+quoted(database)+" with allow_connections false is_template true"); err != nil {
		return err
	}
	_, err := s.terminate("datname = $1", database)
	return err
}

// Database makes a copy of the template for the test, removes it at the test's end, and returns its DSN.
func (p Template) Database(t testing.TB) string {
	t.Helper()
	return p.server.database(t, p.name)
}

func (s *Server) database(t testing.TB, template string) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())[:16]
	if err := s.copy(name, template); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	if s.consoles != nil {
		t.Cleanup(func() {
			if err := s.Exec(maintenance, "drop database "+quoted(name)+" with (force)"); err != nil {
				t.Errorf("remove the test's database: %v", err)
			}
		})
	}
	return s.DSN(name)
}

// copy makes a database from a template. It tries again while the template's last connection ends: a
// server takes a moment to notice that a client is gone.
func (s *Server) copy(name, template string) error {
	return s.admin(func(ctx context.Context, conn *pgx.Conn) error {
		how := ""
		if s.fileCopy && conn.PgConn().ParameterStatus("server_version") >= "15" { // before 15 there was no other way
			how = " strategy file_copy"
		}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			_, err := conn.Exec(ctx, "create database "+quoted(name)+" template "+quoted(template)+how)
			if cause, ok := errors.AsType[*pgconn.PgError](err); !ok || cause.Code != objectInUse {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return err
			}
		}
	})
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
