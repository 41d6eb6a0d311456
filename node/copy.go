package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
)

type (
	// CopyReport is the result of copying a store.
	CopyReport = storecopy.Report
	// CopyStatus is the progress of a copy.
	CopyStatus = storecopy.Status
	// Moved is where everything of a store went.
	Moved = storecopy.Moved
)

// StorePlace is where a store is: a data folder, or a database.
type StorePlace struct {
	folder   string
	database config.Database
}

// HasPassword reports whether String leaves a password out.
func (p StorePlace) HasPassword() bool { return p.database.HasPassword() }

// ParsePlace reads sqlite:FOLDER or the address of a PostgreSQL database.
func ParsePlace(text string) (p StorePlace, err error) {
	if folder, ok := strings.CutPrefix(text, "sqlite:"); ok {
		if folder = strings.TrimPrefix(folder, "//"); folder == "" {
			return p, errors.New("sqlite: names no folder; write sqlite:/var/lib/holdfast")
		}
		return StorePlace{folder: folder}, nil
	}
	if !strings.HasPrefix(text, "postgres:") && !strings.HasPrefix(text, "postgresql:") {
		return p, errors.New("it is neither sqlite:FOLDER nor postgres://user@host:5432/database") // without the text: it may hold a password
	}
	if p.database, err = config.NewDatabase(text); err != nil {
		return p, err
	}
	if d := p.database; d.Remote() && !d.Encrypted() && d.SSLMode() != "disable" {
		return p, fmt.Errorf("%s names another machine without sslmode, so that anybody on the way can read and change what is copied: add sslmode=verify-full; or sslmode=disable if you trust everybody on that network", d)
	}
	return p, nil
}

// String returns the place for people, without a password.
func (p StorePlace) String() string {
	if p.folder != "" {
		return "sqlite:" + p.folder
	}
	return p.database.String()
}

type source interface {
	storecopy.Source
	Close() error
}

type reader interface {
	storecopy.Exporter
	Close() error
}

type target interface {
	storecopy.Importer
	Close() error
}

func (p StorePlace) source(ctx context.Context) (source, error) {
	if p.folder != "" {
		return sqlite.OpenSource(ctx, database(p.folder))
	}
	s, err := postgres.OpenSource(ctx, p.database.DSN())
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p, err)
	}
	return s, nil
}

// reader reads a store that nodes may use meanwhile. Of a file that nobody uses it is the only user.
func (p StorePlace) reader(ctx context.Context) (reader, error) {
	if p.folder == "" {
		r, err := postgres.OpenReader(ctx, p.database.DSN())
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", p, err)
		}
		return r, nil
	}
	s, err := sqlite.OpenSource(ctx, database(p.folder))
	if errors.Is(err, sqlite.ErrOwned) {
		return sqlite.OpenReader(ctx, database(p.folder))
	}
	return s, err
}

func (p StorePlace) target(ctx context.Context, from storecopy.Origin, log *slog.Logger) (target, error) {
	if p.folder != "" {
		return sqlite.OpenTarget(ctx, database(p.folder), sqlite.Options{Logger: log})
	}
	t, err := postgres.OpenTarget(ctx, p.database.DSN(), from)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", p, err)
	}
	return t, nil
}

// Copy moves everything from one store into another that is empty, or continues a copy that did not end. No
// node may use either store meanwhile.
func Copy(ctx context.Context, from, to StorePlace, log *slog.Logger, watch func(CopyStatus)) (r CopyReport, err error) {
	if sameFile(from, to) {
		return r, fmt.Errorf("%w: %s", storecopy.ErrSame, to)
	}
	s, err := from.source(ctx)
	if err != nil {
		return r, fmt.Errorf("open source: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	origin, err := s.Origin(ctx)
	if err != nil {
		return r, fmt.Errorf("read source: %w", err)
	}
	t, err := to.target(ctx, origin, log)
	if err != nil {
		return r, fmt.Errorf("open target: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return storecopy.Copy(ctx, s, t, storecopy.Options{From: from.String(), To: to.String(), Watch: watch})
}

// sameFile reports whether both are one file. Its owner's lock would not tell: this process holds it.
func sameFile(a, b StorePlace) bool {
	if a.folder == "" || b.folder == "" {
		return false
	}
	x, err := os.Stat(database(a.folder))
	if err != nil {
		return false
	}
	y, err := os.Stat(database(b.folder))
	return err == nil && os.SameFile(x, y)
}

// UndoCopy takes a copy back: nodes can use the source again, and can no longer use the target. No node may
// have used the target. A nil target means that the target is lost. UndoCopy returns where the source had
// been moved to.
func UndoCopy(ctx context.Context, from StorePlace, to *StorePlace) (m Moved, err error) {
	s, err := from.source(ctx)
	if err != nil {
		return m, fmt.Errorf("open source: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if to == nil {
		return storecopy.Undo(ctx, s, nil, from.String())
	}
	if sameFile(from, *to) {
		return m, fmt.Errorf("%w: %s", storecopy.ErrSame, to)
	}
	t, err := to.source(ctx)
	if err != nil {
		return m, fmt.Errorf("open target: %w", err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return storecopy.Undo(ctx, s, t, from.String())
}
