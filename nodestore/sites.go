package nodestore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

// A central has some hundred sites.
const (
	addSite = `INSERT INTO hf_site AS s (name, created, token, token_until) SELECT $1, t, $2, t + $3 FROM (SELECT hf_now() AS t) AS n WHERE true
		ON CONFLICT (name) DO UPDATE SET created = excluded.created, token = excluded.token, token_until = excluded.token_until,
			enrolled = NULL, seen = NULL, version = NULL, revoked = NULL WHERE s.revoked IS NOT NULL`
	rotateSite = `UPDATE hf_site SET token = $2, token_until = hf_now() + $3, hash = CASE WHEN $4 THEN NULL ELSE hash END,
			former = CASE WHEN $4 THEN NULL ELSE former END, former_until = CASE WHEN $4 THEN NULL ELSE former_until END
		WHERE name = $1 AND revoked IS NULL`
	tokenSite  = `SELECT name FROM hf_site WHERE token = $1 AND revoked IS NULL`
	revokeSite = `UPDATE hf_site SET token = NULL, token_until = NULL, hash = NULL, former = NULL, former_until = NULL,
		revoked = coalesce(revoked, hf_now()) WHERE name = $1`
	// finds the other site that has the credential
	takenSite  = `SELECT name FROM hf_site WHERE (hash = $2 OR former = $2) AND token IS DISTINCT FROM $1`
	lockEnroll = `SELECT name, coalesce(token_until, 0) FROM hf_site WHERE token = $1 AND revoked IS NULL FOR UPDATE`
	enrollSite = `UPDATE hf_site SET
			former = CASE WHEN hash = $2 THEN former ELSE hash END, former_until = CASE WHEN hash = $2 THEN former_until ELSE hf_now() + $3 END,
			enrolled = CASE WHEN hash = $2 AND token_until IS NULL THEN enrolled ELSE hf_now() END, hash = $2, token_until = NULL
		WHERE token = $1 AND revoked IS NULL AND (token_until IS NOT NULL OR hash = $2)`
	findSite = `SELECT name, CAST(0 AS bigint) FROM hf_site WHERE hash = $1
		UNION ALL SELECT name, former_until FROM hf_site WHERE former = $1 LIMIT 1`
	putReport = `INSERT INTO hf_site_health (site, node, at, report) SELECT name, $2, hf_now(), $3 FROM hf_site WHERE name = $1 AND revoked IS NULL
		ON CONFLICT (site, node) DO UPDATE SET at = excluded.at, report = excluded.report`
	siteReports = `SELECT node, at FROM hf_site_health WHERE site = $1`
	dropReport  = `DELETE FROM hf_site_health WHERE site = $1 AND node = $2`
	dropReports = `DELETE FROM hf_site_health WHERE site = $1`
	// nobody will confirm what a site that is revoked was to erase
	dropErasures = `DELETE FROM hf_audit_erasure WHERE log IN (SELECT log FROM hf_audit_log WHERE site = $1)`
	isRevoked    = `SELECT 1 FROM hf_site WHERE name = $1 AND revoked IS NOT NULL`
	seeSite      = `UPDATE hf_site SET seen = hf_now(), version = nullif($2, '') WHERE name = $1`
)

// Sites keeps the sites of a central.
type Sites struct{ db side.Store }

var _ sites.Store = (*Sites)(nil)

// AddSite implements sites.Store.
func (s *Sites) AddSite(ctx context.Context, name string, token [32]byte, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.SiteAdded, Subject: name, Actor: actor}
	if err := named(ctx, s.db, side.Cost{}, e, holdfast.ErrConflict, func(tx side.Tx) (int64, error) {
		return tx.Exec(addSite, name, token[:], rows.Micros(sites.TokenFor))
	}); err != nil {
		return fmt.Errorf("add site %q: %w", name, err)
	}
	return nil
}

// RotateSite implements sites.Store.
func (s *Sites) RotateSite(ctx context.Context, name string, token [32]byte, now bool, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.SiteRenewed, Subject: name, Actor: actor}
	if err := named(ctx, s.db, side.Cost{LastRoom: now}, e, holdfast.ErrNotFound, func(tx side.Tx) (int64, error) {
		return tx.Exec(rotateSite, name, token[:], rows.Micros(sites.TokenFor), now)
	}); err != nil {
		return fmt.Errorf("rotate site %q: %w", name, err)
	}
	return nil
}

// RevokeSite implements sites.Store.
func (s *Sites) RevokeSite(ctx context.Context, name, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.SiteRevoked, Subject: name, Actor: actor}
	if err := named(ctx, s.db, side.Cost{LastRoom: true}, e, holdfast.ErrNotFound, func(tx side.Tx) (int64, error) {
		for _, drop := range []string{dropReports, dropErasures} {
			if _, err := tx.Exec(drop, name); err != nil {
				return 0, err
			}
		}
		return tx.Exec(revokeSite, name)
	}); err != nil {
		return fmt.Errorf("revoke site %q: %w", name, err)
	}
	return nil
}

// TokenSite implements sites.Store.
func (s *Sites) TokenSite(ctx context.Context, token [32]byte) (name string, err error) {
	return s.by(ctx, "find the site of a token", tokenSite, token)
}

// EnrollSite implements sites.Store.
func (s *Sites) EnrollSite(ctx context.Context, token, credential [32]byte) (name string, err error) {
	clock, err := s.db.Clock(ctx)
	if err == nil {
		err = s.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
			name, err = enroll(tx, clock, token, credential)
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("enroll site: %w", err)
	}
	return name, nil
}

func enroll(tx side.Tx, clock side.Clock, token, credential [32]byte) (name string, err error) {
	taken := false
	if err := tx.Read(takenSite, []any{token[:], credential[:]}, func(side.Scan) error {
		taken = true
		return nil
	}); err != nil {
		return "", err
	}
	var until int64 // 0: the token is used up
	if err := tx.Read(lockEnroll, []any{token[:]}, func(scan side.Scan) error { return scan(&name, &until) }); err != nil {
		return "", err
	}
	if taken || name == "" {
		return "", holdfast.ErrNotFound
	}
	if until != 0 {
		switch clock.Judge(rows.Instant(until), sites.TokenFor) {
		case belief.Over:
			return "", holdfast.ErrNotFound
		case belief.Held:
			return "", sites.ErrDoubted
		case belief.Lives:
		}
	}
	enrolled, err := tx.Exec(enrollSite, token[:], credential[:], rows.Micros(sites.OverlapFor))
	if err == nil && enrolled == 0 {
		err = holdfast.ErrNotFound
	}
	if err == nil && until != 0 {
		err = tx.Note(&holdfast.Entry{Kind: holdfast.SiteEnrolled, Subject: name})
	}
	return name, err
}

// FindSite implements sites.Store.
func (s *Sites) FindSite(ctx context.Context, credential [32]byte) (name string, err error) {
	var until int64 // of a former credential
	if name, err = s.by(ctx, "find site", findSite, credential, &until); err != nil || until == 0 {
		return name, err
	}
	clock, err := s.db.Clock(ctx)
	if err == nil && clock.Judge(rows.Instant(until), sites.OverlapFor) != belief.Lives {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("find site: %w", err)
	}
	return name, nil
}

// by finds the site that has a hash.
func (s *Sites) by(ctx context.Context, what, sql string, hash [32]byte, more ...any) (name string, err error) {
	err = s.db.Read(ctx, sql, []any{hash[:]}, func(scan side.Scan) error { return scan(append([]any{&name}, more...)...) })
	if err == nil && name == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return name, nil
}

// SiteSeen implements sites.Store. It notes nothing while the disk is full.
func (s *Sites) SiteSeen(ctx context.Context, name, version string, r sites.Report) error {
	if s.db.Full() {
		return nil
	}
	if err := s.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
		if n, err := tx.Exec(seeSite, name, version); err != nil || n == 0 {
			return err
		}
		if _, err := tx.Exec(putReport, name, r.Node, r.Text); err != nil {
			return err
		}
		return makeRoom(tx, name)
	}); err != nil {
		return fmt.Errorf("note site %q: %w", name, err)
	}
	return nil
}

// makeRoom deletes the oldest reports of a site that has too many.
func makeRoom(tx side.Tx, name string) error {
	type report struct {
		node string
		at   int64
	}
	var all []report
	if err := tx.Read(siteReports, []any{name}, func(scan side.Scan) error {
		var r report
		err := scan(&r.node, &r.at)
		all = append(all, r)
		return err
	}); err != nil || len(all) <= sites.MostReports {
		return err
	}
	slices.SortFunc(all, func(a, b report) int { return cmp.Compare(b.at, a.at) })
	for _, r := range all[sites.MostReports:] {
		if _, err := tx.Exec(dropReport, name, r.node); err != nil {
			return err
		}
	}
	return nil
}

// reports returns all reports, by site, the newest first.
func (s *Sites) reports(ctx context.Context) (map[string][]sites.Report, error) {
	all := map[string][]sites.Report{}
	err := s.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.SiteHealth)(nil))}, func(r rows.Row) error {
		k := r.(*rows.SiteHealth) //nolint:forcetypeassert // asked for
		all[k.Site] = append(all[k.Site], sites.Report{Node: k.Node, At: s.db.Time(k.At), Text: k.Report})
		return nil
	})
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b sites.Report) int { return b.At.Compare(a.At) })
	}
	return all, err
}

// Sites implements sites.Store.
func (s *Sites) Sites(ctx context.Context) (list []sites.Info, err error) {
	clock, err := s.db.Clock(ctx)
	var reports map[string][]sites.Report
	if err == nil {
		reports, err = s.reports(ctx)
	}
	if err == nil {
		err = s.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.Site)(nil))}, func(r rows.Row) error {
			k, at := r.(*rows.Site), s.db.Time //nolint:forcetypeassert // asked for
			i := sites.Info{Name: k.Name, Version: k.Version, Created: at(k.Created), Enrolled: at(k.Enrolled), Seen: at(k.Seen), Revoked: at(k.Revoked), Reports: reports[k.Name]}
			if k.TokenUntil != rows.None && clock.Judge(k.TokenUntil, sites.TokenFor) != belief.Over {
				i.TokenUntil = clock.End(k.TokenUntil, sites.TokenFor)
			}
			list = append(list, i)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	return list, nil
}

// Incarnation implements sites.Store.
func (s *Sites) Incarnation(ctx context.Context) (string, error) {
	id, err := s.db.Incarnation(ctx)
	if err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return id, nil
}
