package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
)

var _ link.Store = (*DB)(nil)

// AddSite implements link.Store.
func (db *DB) AddSite(ctx context.Context, name string, token [32]byte, lasts time.Duration) error {
	return db.named(ctx, "add site", name, holdfast.ErrConflict, addSite, name, token[:], micros(lasts))
}

// RotateSite implements link.Store.
func (db *DB) RotateSite(ctx context.Context, name string, token [32]byte, lasts time.Duration, now bool) error {
	return db.named(ctx, "rotate site", name, holdfast.ErrNotFound, rotateSite, name, token[:], micros(lasts), now)
}

// TokenSite implements link.Store.
func (db *DB) TokenSite(ctx context.Context, token [32]byte) (name string, err error) {
	return db.siteBy(ctx, "find the site of a token", tokenSite, token)
}

// RevokeSite implements link.Store.
func (db *DB) RevokeSite(ctx context.Context, name string) error {
	return db.named(ctx, "revoke site", name, holdfast.ErrNotFound, revokeSite, name)
}

// EnrollSite implements link.Store.
func (db *DB) EnrollSite(ctx context.Context, token, credential [32]byte, overlap time.Duration) (name string, err error) {
	err = db.usable(ctx)
	if err == nil {
		err = db.own(ctx, func(tx *ownTx) error {
			name = ""
			taken := false
			if err := tx.query(takenSite, []any{token[:], credential[:]}, func(rows pgx.Rows) error {
				taken = true
				return rows.Scan(nil)
			}); err != nil || taken {
				return err
			}
			return tx.query(enrollSite, []any{token[:], credential[:], micros(overlap)}, func(rows pgx.Rows) error { return rows.Scan(&name) })
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

// FindSite implements link.Store.
func (db *DB) FindSite(ctx context.Context, credential [32]byte) (name string, err error) {
	return db.siteBy(ctx, "find site", findSite, credential)
}

// siteBy finds the one site that a hash leads to.
func (db *DB) siteBy(ctx context.Context, what, statement string, hash [32]byte) (name string, err error) {
	err = db.read(ctx, statement, []any{hash[:]}, func(rows pgx.Rows) error { return rows.Scan(&name) })
	if err == nil && name == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return name, nil
}

// SiteSeen implements link.Store.
func (db *DB) SiteSeen(ctx context.Context, name, version string) error {
	if err := db.own(ctx, func(tx *ownTx) error { return tx.exec(seeSite, name, version) }); err != nil {
		return fmt.Errorf("note site %q: %w", name, err)
	}
	return nil
}

// Sites implements link.Store.
func (db *DB) Sites(ctx context.Context) (list []link.Info, err error) {
	if err := db.read(ctx, listSites, nil, func(rows pgx.Rows) error {
		var s link.Info
		var created, enrolled, seen, revoked, until int64
		err := rows.Scan(&s.Name, &created, &enrolled, &seen, &revoked, &until, &s.Version)
		s.Created, s.Enrolled, s.Seen, s.Revoked, s.TokenUntil = instant(created), instant(enrolled), instant(seen), instant(revoked), instant(until)
		list = append(list, s)
		return err
	}); err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	return list, nil
}

// Incarnation implements link.Store. It changes when the tables are others, as
// after a restored dump, and when the server has another history, as after a
// failover.
func (db *DB) Incarnation(ctx context.Context) (id string, err error) {
	if err := db.read(ctx, siteHistory, nil, func(rows pgx.Rows) error { return rows.Scan(&id) }); err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return id, nil
}
