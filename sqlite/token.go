package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// tokenNoted is how exact a token's last use is kept: a write per request
// would cost more than the knowledge is worth.
const tokenNoted = time.Hour

// CreateToken keeps an API token as the hash of its secret. ErrConflict: the
// name is taken.
func (db *DB) CreateToken(ctx context.Context, name, role string, hash [32]byte, actor string) error {
	added := int64(0)
	err := db.writer.do(ctx, workFunc(func(tx *writeTx) (err error) {
		added, err = tx.add(&rows.Token{Name: name, Role: role, Hash: hash[:], Created: rows.Now, Used: rows.None})
		if err != nil || added == 0 {
			return err
		}
		return tx.note(0, &holdfast.Entry{Kind: holdfast.TokenAdded, Subject: name, Actor: actor, Detail: detail("role", role)})
	}))
	if err == nil && added == 0 {
		err = holdfast.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("create token %q: %w", name, err)
	}
	return nil
}

// DeleteToken ends a token. ErrNotFound: there is none of that name.
func (db *DB) DeleteToken(ctx context.Context, name string, actor string) error {
	return db.named(ctx, "delete token", name, true, func(tx *Tx) (sql.Result, error) {
		return tx.ExecContext(ctx, `DELETE FROM hf_token WHERE name = ?1`, name)
	}, holdfast.ErrNotFound, &holdfast.Entry{Kind: holdfast.TokenRemoved, Subject: name, Actor: actor})
}

// named changes the row of a name, and says so in the journal; if there was none to
// change, the error is unchanged.
func (db *DB) named(ctx context.Context, doing, name string, ends bool, change func(tx *Tx) (sql.Result, error), unchanged error, e *holdfast.Entry) error {
	err := db.turn(ctx, ends, func(_ context.Context, tx *Tx) error {
		r, err := change(tx)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, unchanged)
		}
		return tx.ours(func(wtx *writeTx) error { return wtx.note(0, e) })
	})
	if err != nil {
		return fmt.Errorf("%s %q: %w", doing, name, err)
	}
	return nil
}

// FindToken returns the token whose secret has this hash, or ErrNotFound.
func (db *DB) FindToken(ctx context.Context, hash [32]byte) (name, role string, err error) {
	var used sql.NullInt64
	err = db.oftenOne(ctx, callerOf, []any{hash[:]}, &name, &role, &used)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", fmt.Errorf("find token: %w", holdfast.ErrNotFound)
	}
	if err != nil {
		return "", "", fmt.Errorf("find token: %w", err)
	}
	if now := db.clock.now(); now-used.Int64 > micros(tokenNoted) && !db.Full() {
		err := db.Do(ctx, func(ctx context.Context, tx *Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE hf_token SET used = ?2 WHERE name = ?1`, name, now)
			return err
		})
		if err != nil { // no reason to refuse the request
			db.log.WarnContext(ctx, "use of a token not noted", slog.String("token", name), slog.Any("error", err))
		}
	}
	return name, role, nil
}

// EachToken calls yield for each token, by name.
func (db *DB) EachToken(ctx context.Context, yield func(name, role string, created, lastUsed time.Time)) error {
	err := eachRowOf(ctx, db.readers, rows.Range{Table: rows.Of((*rows.Token)(nil))}, func(r rows.Row) error {
		t := r.(*rows.Token) //nolint:forcetypeassert // asked for
		yield(t.Name, t.Role, db.rowTime(t.Created), db.rowTime(t.Used))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	return nil
}
