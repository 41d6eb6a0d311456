package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

var _ sites.Store = (*DB)(nil)

// AddSite implements sites.Store.
func (db *DB) AddSite(ctx context.Context, name string, token [32]byte, actor string) error {
	return db.named(ctx, "add site", &holdfast.Entry{Kind: holdfast.SiteAdded, Subject: name, Actor: actor}, holdfast.ErrConflict, changing(addSite, name, token[:], micros(sites.TokenFor)))
}

// RotateSite implements sites.Store.
func (db *DB) RotateSite(ctx context.Context, name string, token [32]byte, now bool, actor string) error {
	return db.named(ctx, "rotate site", &holdfast.Entry{Kind: holdfast.SiteRenewed, Subject: name, Actor: actor}, holdfast.ErrNotFound, changing(rotateSite, name, token[:], micros(sites.TokenFor), now))
}

// TokenSite implements sites.Store.
func (db *DB) TokenSite(ctx context.Context, token [32]byte) (name string, err error) {
	return db.siteBy(ctx, "find the site of a token", tokenSite, token)
}

// RevokeSite implements sites.Store.
func (db *DB) RevokeSite(ctx context.Context, name string, actor string) error {
	return db.named(ctx, "revoke site", &holdfast.Entry{Kind: holdfast.SiteRevoked, Subject: name, Actor: actor}, holdfast.ErrNotFound, changing(revokeSite, name))
}

// EnrollSite implements sites.Store.
func (db *DB) EnrollSite(ctx context.Context, token, credential [32]byte) (name string, err error) {
	err = db.usable(ctx)
	var now int64
	if err == nil {
		now, err = db.askClock(ctx)
	}
	if err == nil {
		err = db.unbound(ctx, func(tx *ownTx) error {
			name = ""
			taken := false
			if err := tx.query(takenSite, []any{token[:], credential[:]}, func(found pgx.Rows) error {
				taken = true
				return found.Scan(nil)
			}); err != nil || taken {
				return err
			}
			fresh, err := tx.mayEnroll(token, now)
			if err != nil {
				return err
			}
			return tx.query(enrollSite, []any{token[:], credential[:], micros(sites.OverlapFor)}, func(rows pgx.Rows) error {
				err := rows.Scan(&name)
				if fresh {
					tx.note(&holdfast.Entry{Kind: holdfast.SiteEnrolled, Subject: name})
				}
				return err
			})
		})
	}
	if err == nil && name == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("enroll site: %w", err)
	}
	return name, nil
}

// mayEnroll fails for a token that is over, or may be. One that is spent is not fresh.
func (tx *ownTx) mayEnroll(token [32]byte, now int64) (fresh bool, err error) {
	var until int64
	if err := tx.query(lockEnroll, []any{token[:]}, func(rows pgx.Rows) error { return rows.Scan(&until) }); err != nil || until == 0 {
		return false, err // it is spent, or there is none
	}
	switch tx.db.clock.guard.Judge(now, until, micros(sites.TokenFor)) {
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
	var until int64 // of a former one
	if name, err = db.siteBy(ctx, "find site", findSite, credential, &until); err != nil || until == 0 {
		return name, err
	}
	now, err := db.askClock(ctx)
	if err == nil && db.clock.guard.Judge(now, until, micros(sites.OverlapFor)) != belief.Lives {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("find site: %w", err)
	}
	return name, nil
}

// siteBy finds the one site that a hash leads to.
func (db *DB) siteBy(ctx context.Context, what, statement string, hash [32]byte, more ...any) (name string, err error) {
	err = db.read(ctx, statement, []any{hash[:]}, func(found pgx.Rows) error { return found.Scan(append([]any{&name}, more...)...) })
	if err == nil && name == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return name, nil
}

// SiteSeen implements sites.Store.
func (db *DB) SiteSeen(ctx context.Context, name, version string) error {
	if err := db.unbound(ctx, func(tx *ownTx) error { return tx.exec(seeSite, name, version) }); err != nil {
		return fmt.Errorf("note site %q: %w", name, err)
	}
	return nil
}

// Sites implements sites.Store.
func (db *DB) Sites(ctx context.Context) (list []sites.Info, err error) {
	now, err := db.askClock(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	guard, lasts := db.clock.guard, micros(sites.TokenFor)
	if err := db.eachRowOf(ctx, rows.Range{Table: rows.Of((*rows.Site)(nil))}, func(r rows.Row) error {
		s := r.(*rows.Site) //nolint:forcetypeassert // asked for
		i := sites.Info{
			Name: s.Name, Version: s.Version, Created: db.rowTime(s.Created), Enrolled: db.rowTime(s.Enrolled), Seen: db.rowTime(s.Seen), Revoked: db.rowTime(s.Revoked),
		}
		if until := int64(s.TokenUntil); s.TokenUntil != rows.None && guard.Judge(now, until, lasts) != belief.Over {
			i.TokenUntil = db.clock.wall(guard.EndByClock(until, lasts))
		}
		list = append(list, i)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	return list, nil
}

// Incarnation implements sites.Store. It changes when the tables are others, as
// after a restored dump, and when the server has another history, as after a
// failover.
func (db *DB) Incarnation(ctx context.Context) (id string, err error) {
	if err := db.read(ctx, siteHistory, nil, func(found pgx.Rows) error { return found.Scan(&id) }); err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return id, nil
}
