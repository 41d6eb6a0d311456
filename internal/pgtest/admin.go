package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Terminate cuts off the connections with the given application_name, and returns how many there
// were.
func (s *Server) Terminate(application string) (int, error) {
	return s.terminate("application_name = $1", application)
}

// TerminatePID cuts off one connection, by its pg_backend_pid.
func (s *Server) TerminatePID(pid int) error {
	n, err := s.terminate("pid = $1", pid)
	if err == nil && n == 0 {
		err = fmt.Errorf("terminate connection %d: there is none of that number", pid)
	}
	return err
}

func (s *Server) terminate(where string, arg any) (n int, err error) {
	err = s.admin(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			select count(*) from (
				select pg_terminate_backend(pid) as done from pg_stat_activity
				where backend_type = 'client backend' and pid <> pg_backend_pid() and `+where+`
			) s where done`, arg).Scan(&n)
	})
	return n, err
}

// Tool runs a program that comes with the server, such as pg_dump, in the server's folder. A file
// that it writes under a plain name is there for the next program.
func (s *Server) Tool(program string, args ...string) error {
	return s.keep.run(program, exec.Command(filepath.Join(s.bin, program), args...))
}

// Version returns the server's version, such as PostgreSQL 15.18, or an empty string while it does
// not answer.
func (s *Server) Version() string {
	var version string
	err := s.admin(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "select 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)").Scan(&version)
	})
	if err != nil {
		return ""
	}
	return version
}

// Exec runs statements in a database of the server, one after the other.
func (s *Server) Exec(database string, statements ...string) error {
	run := func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	}
	if database == maintenance {
		return s.admin(run)
	}
	return s.connected(database, run)
}

// maintenance is the name of a database that no test uses.
const maintenance = "postgres"

// admin works on a connection to that database. The shared server, which is never stopped, keeps
// the connection: making a new one costs more than the work.
func (s *Server) admin(do func(context.Context, *pgx.Conn) error) error {
	if s.consoles == nil {
		return s.connected(maintenance, do)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var conn *pgx.Conn
	select {
	case conn = <-s.consoles:
	default:
		var err error
		if conn, err = pgx.Connect(ctx, s.DSN(maintenance)); err != nil {
			return err
		}
	}
	err := do(ctx, conn)
	if !conn.IsClosed() {
		select {
		case s.consoles <- conn:
			return err
		default:
		}
	}
	return errors.Join(err, conn.Close(ctx))
}

func (s *Server) connected(database string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return do(ctx, conn)
}
