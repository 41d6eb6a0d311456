package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

var _ sites.Store = (*DB)(nil)

// AddSite implements sites.Store.
func (db *DB) AddSite(ctx context.Context, name string, token [32]byte, actor string) error {
	return db.named(ctx, "add site", name, false, func(tx *Tx) (sql.Result, error) {
		now := tx.wtx.tick()
		return tx.ExecContext(ctx, `INSERT INTO hf_site (name, created, token, token_until) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (name) DO UPDATE SET created = ?2, token = ?3, token_until = ?4, enrolled = NULL, seen = NULL, version = NULL, revoked = NULL
				WHERE revoked IS NOT NULL`, name, now, token[:], after(now, sites.TokenFor))
	}, holdfast.ErrConflict, &holdfast.Entry{Kind: holdfast.SiteAdded, Subject: name, Actor: actor})
}

// RotateSite implements sites.Store.
func (db *DB) RotateSite(ctx context.Context, name string, token [32]byte, now bool, actor string) error {
	return db.named(ctx, "rotate site", name, now, func(tx *Tx) (sql.Result, error) {
		return tx.ExecContext(ctx, `UPDATE hf_site SET token = ?2, token_until = ?3, hash = CASE WHEN ?4 THEN NULL ELSE hash END,
				former = CASE WHEN ?4 THEN NULL ELSE former END, former_until = CASE WHEN ?4 THEN NULL ELSE former_until END
			WHERE name = ?1 AND revoked IS NULL`, name, token[:], after(tx.wtx.tick(), sites.TokenFor), now)
	}, holdfast.ErrNotFound, &holdfast.Entry{Kind: holdfast.SiteRenewed, Subject: name, Actor: actor})
}

// TokenSite implements sites.Store.
func (db *DB) TokenSite(ctx context.Context, token [32]byte) (name string, err error) {
	err = db.readers.QueryRowContext(ctx, `SELECT name FROM hf_site WHERE token = ?1 AND revoked IS NULL`, token[:]).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("find the site of a token: %w", err)
	}
	return name, nil
}

// RevokeSite implements sites.Store.
func (db *DB) RevokeSite(ctx context.Context, name string, actor string) error {
	return db.named(ctx, "revoke site", name, true, func(tx *Tx) (sql.Result, error) {
		return tx.ExecContext(ctx, `UPDATE hf_site SET token = NULL, token_until = NULL, hash = NULL, former = NULL, former_until = NULL,
			revoked = coalesce(revoked, ?2) WHERE name = ?1`, name, tx.wtx.tick())
	}, holdfast.ErrNotFound, &holdfast.Entry{Kind: holdfast.SiteRevoked, Subject: name, Actor: actor})
}

// EnrollSite implements sites.Store.
func (db *DB) EnrollSite(ctx context.Context, token, credential [32]byte) (name string, err error) {
	err = db.Do(ctx, func(ctx context.Context, tx *Tx) error {
		now := tx.wtx.tick()
		// A credential belongs to one site: it says which.
		var taken int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM hf_site WHERE (hash = ?2 OR former = ?2) AND token IS NOT ?1`, token[:], credential[:]).Scan(&taken)
		if err != nil || taken > 0 {
			return errors.Join(err, holdfast.ErrNotFound)
		}
		fresh, err := db.mayEnroll(ctx, tx, token, now)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `UPDATE hf_site SET
				former = CASE WHEN hash = ?2 THEN former ELSE hash END, former_until = CASE WHEN hash = ?2 THEN former_until ELSE ?4 END,
				enrolled = CASE WHEN hash = ?2 AND token_until IS NULL THEN enrolled ELSE ?3 END, hash = ?2, token_until = NULL
			WHERE token = ?1 AND revoked IS NULL AND (token_until IS NOT NULL OR hash = ?2) RETURNING name`,
			token[:], credential[:], now, after(now, sites.OverlapFor)).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			return holdfast.ErrNotFound
		}
		if err != nil || !fresh {
			return err
		}
		return tx.ours(func(wtx *writeTx) error {
			return wtx.note(0, &holdfast.Entry{Kind: holdfast.SiteEnrolled, Subject: name})
		})
	})
	if err != nil {
		return "", fmt.Errorf("enroll site: %w", err)
	}
	return name, nil
}

// mayEnroll fails for a token that is over, or may be. One that is spent is not fresh.
func (db *DB) mayEnroll(ctx context.Context, tx *Tx, token [32]byte, now int64) (fresh bool, err error) {
	var until sql.NullInt64
	err = tx.QueryRowContext(ctx, `SELECT token_until FROM hf_site WHERE token = ?1`, token[:]).Scan(&until)
	if errors.Is(err, sql.ErrNoRows) {
		return false, holdfast.ErrNotFound
	}
	if err != nil || !until.Valid { // it is spent
		return false, err
	}
	switch db.clock.judgeAccess(now, until.Int64, sites.TokenFor) {
	case belief.Over:
		return false, holdfast.ErrNotFound
	case belief.Held:
		return false, sites.ErrDoubted
	case belief.Lives:
	}
	return true, nil
}

// FindSite implements sites.Store.
func (db *DB) FindSite(ctx context.Context, credential [32]byte) (name string, err error) {
	var until sql.NullInt64 // of a former one
	err = db.oftenOne(ctx, siteOf, []any{credential[:]}, &name, &until)
	if errors.Is(err, sql.ErrNoRows) ||
		err == nil && until.Valid && db.clock.judgeAccess(db.clock.now(), until.Int64, sites.OverlapFor) != belief.Lives {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("find site: %w", err)
	}
	return name, nil
}

// SiteSeen implements sites.Store. On a full disk nothing is noted.
func (db *DB) SiteSeen(ctx context.Context, name, version string) error {
	if db.Full() {
		return nil
	}
	err := db.Do(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE hf_site SET seen = ?2, version = nullif(?3, '') WHERE name = ?1`, name, tx.wtx.tick(), version)
		return err
	})
	if err != nil {
		return fmt.Errorf("note site %q: %w", name, err)
	}
	return nil
}

// Sites implements sites.Store.
func (db *DB) Sites(ctx context.Context) (list []sites.Info, err error) {
	now := db.clock.now()
	if err := eachRowOf(ctx, db.readers, rows.Range{Table: rows.Of((*rows.Site)(nil))}, func(r rows.Row) error {
		s := r.(*rows.Site) //nolint:forcetypeassert // asked for
		i := sites.Info{
			Name: s.Name, Version: s.Version, Created: db.rowTime(s.Created), Enrolled: db.rowTime(s.Enrolled), Seen: db.rowTime(s.Seen), Revoked: db.rowTime(s.Revoked),
		}
		if until := int64(s.TokenUntil); s.TokenUntil != rows.None && db.clock.judgeAccess(now, until, sites.TokenFor) != belief.Over {
			i.TokenUntil = db.clock.wall(db.clock.guard.EndByClock(until, micros(sites.TokenFor)))
		}
		list = append(list, i)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	return list, nil
}

// Incarnation implements sites.Store: a Restore makes another one.
func (db *DB) Incarnation(ctx context.Context) (id string, err error) {
	if err := db.readers.QueryRowContext(ctx, queries[storeIncarnation]).Scan(&id); err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return id, nil
}
