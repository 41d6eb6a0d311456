package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// pgSettings are the same for every contender. No checkpoint occurs during a cell.
func pgSettings() map[string]string {
	return map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"}
}

const pgText = "private server over TCP on loopback, fsync=on, synchronous_commit=on, shared_buffers=512MB, max_wal_size=4GB"

// pgServer is the PostgreSQL of the whole run. It starts with the first measure that needs it. It
// is a server of package pgtest, so there is one way to start a server and to be sure that it ends.
type pgServer struct {
	dir string // "" is the system's folder for temporary files

	mu     sync.Mutex
	server *pgtest.Server
	err    error
}

func (p *pgServer) started() (*pgtest.Server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil && p.err == nil {
		p.server, p.err = pgtest.New(pgtest.Options{Dir: p.dir, Settings: pgSettings()})
	}
	return p.server, p.err
}

// settings describe the server; without PostgreSQL they say so.
func (p *pgServer) settings() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return "not in this run"
	}
	return p.server.Version() + ", " + pgText
}

// Close stops the server if it runs.
func (p *pgServer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	return p.server.Close()
}

// databaseOf returns the name of the database of a cell's or a prepared directory.
func databaseOf(dir string) string {
	return strings.NewReplacer("-", "_", "/", "_").Replace(filepath.Base(filepath.Dir(dir)) + "_" + filepath.Base(dir))
}

// create makes the database of a directory: empty, or a copy of another directory's. Like for
// contenders with files, files are copied.
func (p *pgServer) create(dir, from string) (dsn string, err error) {
	s, err := p.started()
	if err != nil {
		return "", err
	}
	how := "template template0"
	if from != "" {
		how = "template " + databaseOf(from) + " strategy file_copy"
	}
	name := databaseOf(dir)
	if err := s.Exec("postgres", "create database "+name+" "+how, "checkpoint"); err != nil {
		return "", err
	}
	return s.DSN(name), nil
}

func (p *pgServer) drop(dir string) error {
	s, err := p.started()
	if err != nil {
		return err
	}
	return s.Exec("postgres", "drop database "+databaseOf(dir)+" with (force)")
}

// dsn returns the DSN of a directory's existing database.
func (p *pgServer) dsn(dir string) (string, error) {
	s, err := p.started()
	if err != nil {
		return "", err
	}
	return s.DSN(databaseOf(dir)), nil
}

// cell runs do on its own database.
func (p *pgServer) cell(dir, from string, do func(dsn string) (values, error)) (v values, err error) {
	dsn, err := p.create(dir, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.drop(dir)) }()
	return do(dsn)
}

// fill makes a backlog in a database to be copied for cells, in the state in which autovacuum would
// leave it.
func (p *pgServer) fill(open Opener, dir string, count int) error {
	dsn, err := p.create(dir, "")
	if err != nil {
		return err
	}
	if err := fill(at(open, dsn), dir, 1, 0, count); err != nil {
		return err
	}
	return p.settleDown(dir)
}

func (p *pgServer) settleDown(dir string) error {
	s, err := p.started()
	if err != nil {
		return err
	}
	return s.Exec(databaseOf(dir), "vacuum (analyze)", "checkpoint")
}

// at opens a contender on a database.
func at(open Opener, dsn string) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		s.DSN = dsn
		return open(ctx, s)
	}
}

// oldTransaction holds a snapshot until end is called: rows that die meanwhile cannot be removed.
func oldTransaction(ctx context.Context, dsn string) (end func() error, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "begin isolation level repeatable read; select pg_current_xact_id()"); err != nil {
		return nil, errors.Join(fmt.Errorf("hold a transaction: %w", err), conn.Close(ctx))
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := conn.Exec(ctx, "rollback")
		return errors.Join(err, conn.Close(ctx))
	}, nil
}
