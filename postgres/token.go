package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// tokenNoted is how exact a token's last use is kept: a write per request
// would cost more than the knowledge is worth.
const tokenNoted = time.Hour

// CreateToken keeps an API token as the hash of its secret. ErrConflict: the
// name is taken.
func (db *DB) CreateToken(ctx context.Context, name, role string, hash [32]byte, actor string) error {
	e := holdfast.Entry{Kind: holdfast.TokenAdded, Subject: name, Actor: actor, Detail: detail("role", role)}
	return db.named(ctx, "create token", &e, holdfast.ErrConflict, func(tx *ownTx) (int64, error) {
		return tx.add(&rows.Token{Name: name, Role: role, Hash: hash[:], Created: rows.Now, Used: rows.None})
	})
}

// DeleteToken ends a token. ErrNotFound: there is none of that name.
func (db *DB) DeleteToken(ctx context.Context, name string, actor string) error {
	return db.named(ctx, "delete token", &holdfast.Entry{Kind: holdfast.TokenRemoved, Subject: name, Actor: actor}, holdfast.ErrNotFound, changing(dropAccess, name))
}

// named changes the row of the name that the entry is about, and writes the entry; if
// there was none to change, the error is unchanged.
func (db *DB) named(ctx context.Context, doing string, e *holdfast.Entry, unchanged error, change func(tx *ownTx) (int64, error)) error {
	err := db.usable(ctx)
	changed := int64(0)
	if err == nil {
		err = db.unbound(ctx, func(tx *ownTx) (err error) {
			if changed, err = change(tx); changed > 0 {
				tx.note(e)
			}
			return err
		})
	}
	if err == nil && changed == 0 {
		err = unchanged
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", doing, e.Subject, err)
	}
	return nil
}

// changing is a change by one statement that returns the rows that it changes.
func changing(sql string, args ...any) func(tx *ownTx) (int64, error) {
	return func(tx *ownTx) (changed int64, err error) {
		return changed, tx.query(sql, args, func(pgx.Rows) error {
			changed++
			return nil
		})
	}
}

// FindToken returns the token whose secret has this hash, or ErrNotFound.
func (db *DB) FindToken(ctx context.Context, hash [32]byte) (name, role string, err error) {
	found, unused := false, int64(0)
	if err := db.read(ctx, findAccess, []any{hash[:]}, func(row pgx.Rows) error {
		found = true
		return row.Scan(&name, &role, &unused)
	}); err != nil {
		return "", "", fmt.Errorf("find token: %w", err)
	}
	if !found {
		return "", "", fmt.Errorf("find token: %w", holdfast.ErrNotFound)
	}
	if unused > micros(tokenNoted) {
		if err := db.unbound(ctx, func(tx *ownTx) error { return tx.exec(useAccess, name) }); err != nil { // no reason to refuse the request
			db.log.WarnContext(ctx, "use of a token not noted", slog.String("token", name), slog.Any("error", err))
		}
	}
	return name, role, nil
}

// EachToken calls yield for each token, by name.
func (db *DB) EachToken(ctx context.Context, yield func(name, role string, created, lastUsed time.Time)) error {
	err := db.eachRowOf(ctx, rows.Range{Table: rows.Of((*rows.Token)(nil))}, func(r rows.Row) error {
		t := r.(*rows.Token) //nolint:forcetypeassert // asked for
		yield(t.Name, t.Role, db.rowTime(t.Created), db.rowTime(t.Used))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	return nil
}
