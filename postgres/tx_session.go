package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statement is one SQL text, its parameters, and a function that takes its rows.
type statement struct {
	sql  string
	args []any
	row  func(rows pgx.Rows) error
}

// session runs the store's statements in a transaction, in one round trip if possible.
type session interface {
	// stands returns an error if the transaction has ended. Outside a transaction, each statement
	// would commit by itself.
	stands(ctx context.Context) error
	run(ctx context.Context, list ...statement) error
	// back rolls back to the part's savepoint and releases it. It prepares no statement, since an
	// aborted transaction refuses that.
	back(ctx context.Context) error
}

const backToPart = `ROLLBACK TO SAVEPOINT hf_part; RELEASE SAVEPOINT hf_part`

// pgxSession is a transaction of pgx.
type pgxSession struct{ tx pgx.Tx }

func (s pgxSession) stands(context.Context) error {
	if s.tx.Conn().PgConn().TxStatus() == 'I' {
		return errEnded
	}
	return nil
}

func (s pgxSession) run(ctx context.Context, list ...statement) error {
	if err := s.stands(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	queue(b, list)
	return s.tx.SendBatch(ctx, b).Close()
}

func (s pgxSession) back(ctx context.Context) error {
	if err := s.stands(ctx); err != nil {
		return err
	}
	_, err := s.tx.Exec(ctx, backToPart, pgx.QueryExecModeSimpleProtocol)
	return err
}

func queue(b *pgx.Batch, list []statement) {
	for _, s := range list {
		b.Queue(s.sql, s.args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if s.row == nil {
					continue
				}
				if err := s.row(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
}

// sqlSession is a transaction of database/sql, with pgx's driver.
type sqlSession struct{ tx *sql.Tx }

// stands asks the server, because database/sql does not know.
func (s sqlSession) stands(ctx context.Context) error {
	_, err := s.tx.ExecContext(ctx, savePart+";"+releasePart)
	if isCode(err, "25P01") {
		return errEnded
	}
	return err
}

func (s sqlSession) run(ctx context.Context, list ...statement) error {
	for _, one := range list {
		if err := s.one(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (s sqlSession) back(ctx context.Context) error {
	_, err := s.tx.ExecContext(ctx, backToPart) // without parameters the text is sent as it is
	return err
}

func (s sqlSession) one(ctx context.Context, one statement) (err error) {
	rows, err := s.tx.QueryContext(ctx, one.sql, one.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if one.row == nil {
			continue
		}
		if err := one.row(sqlRows{rows: rows}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sqlRows are rows of database/sql for callers that only scan them.
type sqlRows struct {
	pgx.Rows
	rows *sql.Rows
}

func (r sqlRows) Scan(dest ...any) error { return r.rows.Scan(dest...) }

// isCode reports whether err is an error of the server with this SQLSTATE.
func isCode(err error, code string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == code
}
