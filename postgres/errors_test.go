package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	of := func(code string) error { return fmt.Errorf("claim: %w", &pgconn.PgError{Code: code, Message: "m"}) }
	for what, c := range map[string]struct{ err, want error }{
		"nothing":              {nil, nil},
		"anything else":        {plain, plain},
		"the caller's cancel":  {context.Canceled, context.Canceled},
		"connection cut":       {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), holdfast.ErrUnavailable},
		"starting":             {of("57P03"), holdfast.ErrUnavailable},
		"shut down":            {of("57P01"), holdfast.ErrUnavailable},
		"crashed":              {of("57P02"), holdfast.ErrUnavailable},
		"full of connections":  {of("53300"), holdfast.ErrUnavailable},
		"lock":                 {of("55P03"), holdfast.ErrUnavailable},
		"slow":                 {of("57014"), holdfast.ErrUnavailable},
		"deadlock, to the end": {of("40P01"), holdfast.ErrUnavailable},
		"standby":              {of("25006"), postgres.ErrReadOnly},
		"disk":                 {of("53100"), holdfast.ErrDiskFull},
		"right":                {of("42501"), postgres.ErrRights},
		"password":             {of("28P01"), postgres.ErrRights},
		"database":             {of("3D000"), holdfast.ErrNotFound},
		"already explained":    {fmt.Errorf("%w: x: %w", holdfast.ErrConflict, of("57P01")), holdfast.ErrConflict},
	} {
		got := postgres.Explain(c.err)
		if !errors.Is(got, c.want) || c.want == nil && got != nil {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
		if again := postgres.Explain(got); !errors.Is(c.err, plain) && fmt.Sprint(again) != fmt.Sprint(got) {
			t.Errorf("%s: explained twice: %v", what, again)
		}
	}
	if errors.Is(postgres.Explain(of("53100")), holdfast.ErrUnavailable) || errors.Is(postgres.Explain(context.Canceled), holdfast.ErrUnavailable) {
		t.Error("a full disk, or a caller who gives up, is no outage")
	}
}

// A call that waits for a row of another's is at fault itself; one that waits
// for a table is not.
func TestBlame(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	if err := sql(t.Context(), dsn, `CREATE TABLE effect (n bigint PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	soon := `SELECT set_config('lock_timeout', '50ms', true)`
	for what, c := range map[string]struct {
		holds string
		want  bool
	}{
		"row":   {`INSERT INTO effect VALUES (1)`, true},
		"table": {`LOCK TABLE effect`, false},
	} {
		if _, err := other.Exec(t.Context(), "BEGIN; "+c.holds); err != nil {
			t.Fatal(err)
		}
		err := db.OwnAll(t.Context(), soon, `INSERT INTO effect VALUES (1)`)
		if !errors.Is(err, holdfast.ErrUnavailable) || postgres.Blames(err) != c.want {
			t.Errorf("a %s is locked: %v, blamed: %v, want %v", what, err, postgres.Blames(err), c.want)
		}
		if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	for code, want := range map[string]bool{"22021": true, "23505": true, "54000": true, "57014": false, "53100": false, "40P01": false} {
		if got := postgres.Blames(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("blames(%s) = %v, want %v", code, got, want)
		}
	}
}

// A table that another node changes under a prepared statement costs nothing.
func TestChangedTable(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Connections: 1})
	if err := sql(t.Context(), dsn, `CREATE TABLE effect (n bigint)`); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if i == 2 {
			if err := sql(t.Context(), dsn, `ALTER TABLE effect ADD COLUMN more text`); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Own(t.Context(), `INSERT INTO effect VALUES ($1) RETURNING *`, i); err != nil {
			t.Errorf("after %d: %v", i, err)
		}
	}
	if n := count(t, dsn, `SELECT count(*) FROM effect`); n != 4 {
		t.Errorf("%d rows of 4", n)
	}
}

// A server that is made read-only is left for one that is not.
func TestServerTurnsReadOnly(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Connections: 1})
	if err := sql(t.Context(), dsn, `CREATE TABLE effect (n bigint)`); err != nil {
		t.Fatal(err)
	}
	before := count(t, dsn, `SELECT count(*) FROM effect`)
	if err := db.OwnAll(t.Context(), `SELECT set_config('transaction_read_only', 'on', true)`, `INSERT INTO effect VALUES (1)`); !errors.Is(err, postgres.ErrReadOnly) {
		t.Errorf("a write of a read-only transaction: %v", err)
	}
	if err := db.Own(t.Context(), `INSERT INTO effect VALUES (2)`); err != nil || count(t, dsn, `SELECT count(*) FROM effect`) != before+1 {
		t.Errorf("on the next connection: %v", err)
	}
}
