package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/porttest"
)

// Standby starts a second server that replicates this one, under a name for
// synchronous_standby_names, and stops it at the end of the test. It is read-only until it is
// promoted.
func (s *Server) Standby(t testing.TB, name string, o Options) *Server {
	t.Helper()
	copied, err := s.standby(name, o)
	if err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the standby %s", copied.Log())
		}
		if err := copied.Close(); err != nil {
			t.Errorf("end the standby: %v", err)
		}
	})
	return copied
}

func (s *Server) standby(name string, o Options) (*Server, error) {
	keep, err := newKeeper(o.folder(), "standby")
	if err != nil {
		return nil, err
	}
	c := &Server{bin: s.bin, keep: keep, password: s.password, fileCopy: o.NoSync}
	if err := c.follow(s, name, o); err != nil {
		return nil, errors.Join(err, keep.close())
	}
	return c, nil
}

func (s *Server) follow(primary *Server, name string, o Options) error {
	backup := exec.Command(filepath.Join(s.bin, "pg_basebackup"), "--pgdata="+s.data(), "--dbname="+primary.DSN(""),
		"--checkpoint=fast", "--wal-method=stream", "--no-sync")
	if err := s.keep.run("pg_basebackup", backup); err != nil {
		return err
	}
	if _, err := s.keep.write("data/standby.signal", ""); err != nil {
		return err
	}
	var err error
	if s.port, err = porttest.Free(); err != nil {
		return err
	}
	o.Settings = maps.Clone(o.Settings)
	if o.Settings == nil {
		o.Settings = map[string]string{}
	}
	o.Settings["primary_conninfo"] = fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s application_name=%s sslmode=disable", primary.port, superuser, primary.password, name)
	o.Settings["wal_retrieve_retry_interval"] = "100ms"
	if _, err := s.keep.write("data/postgresql.conf", s.settings(o)); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	return primary.followed(name)
}

// followed waits until a standby is streaming.
func (s *Server) followed(name string) error {
	return s.admin(func(ctx context.Context, conn *pgx.Conn) error {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var streams bool
			if err := conn.QueryRow(ctx, "select exists (select from pg_stat_replication where application_name = $1 and state = 'streaming')", name).Scan(&streams); err != nil || streams {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("wait for the standby: %w", ctx.Err())
			}
		}
	})
}

// Promote makes a standby an independent server that accepts writes.
func (s *Server) Promote() error { return s.Exec("postgres", "select pg_promote(true, 60)") }

// Both returns the URL of a database on one of two servers.
func (s *Server) Both(other *Server, dsn string) (string, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable", superuser, s.password, s.port, other.port, c.Database), nil
}
