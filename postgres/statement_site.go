package postgres

// Sites, of which there are some hundred.
const (
	addSite = `INSERT INTO hf_site AS s (name, created, token, token_until) SELECT $1, t, $2, t + $3 FROM (SELECT hf_now() AS t) AS n
		ON CONFLICT (name) DO UPDATE SET created = excluded.created, token = excluded.token, token_until = excluded.token_until,
			enrolled = NULL, seen = NULL, version = NULL, revoked = NULL WHERE s.revoked IS NOT NULL RETURNING s.name`
	rotateSite = `UPDATE hf_site SET token = $2, token_until = hf_now() + $3, hash = CASE WHEN $4 THEN NULL ELSE hash END,
			former = CASE WHEN $4 THEN NULL ELSE former END, former_until = CASE WHEN $4 THEN NULL ELSE former_until END
		WHERE name = $1 AND revoked IS NULL RETURNING name`
	tokenSite  = `SELECT name FROM hf_site WHERE token = $1 AND revoked IS NULL`
	revokeSite = `UPDATE hf_site SET token = NULL, token_until = NULL, hash = NULL, former = NULL, former_until = NULL,
		revoked = coalesce(revoked, hf_now()) WHERE name = $1 RETURNING name`
	// takenSite finds a credential that another site has: it says which site.
	takenSite  = `SELECT name FROM hf_site WHERE (hash = $2 OR former = $2) AND token IS DISTINCT FROM $1`
	lockEnroll = `SELECT coalesce(token_until, 0) FROM hf_site WHERE token = $1 FOR UPDATE`
	enrollSite = `UPDATE hf_site SET
			former = CASE WHEN hash = $2 THEN former ELSE hash END, former_until = CASE WHEN hash = $2 THEN former_until ELSE hf_now() + $3 END,
			enrolled = CASE WHEN hash = $2 AND token_until IS NULL THEN enrolled ELSE hf_now() END, hash = $2, token_until = NULL
		WHERE token = $1 AND revoked IS NULL AND (token_until IS NOT NULL OR hash = $2) RETURNING name`
	findSite = `SELECT name, 0::bigint FROM hf_site WHERE hash = $1
		UNION ALL SELECT name, former_until FROM hf_site WHERE former = $1 LIMIT 1`
	seeSite = `UPDATE hf_site SET seen = hf_now(), version = nullif($2, '') WHERE name = $1`

	// siteHistory names the store and its history: a restored dump is in another
	// database, or has made the tables anew, and a server that took over, or went
	// back to a point in time, is on another timeline. A table keeps its number
	// whatever is done to it, VACUUM FULL too, until it is dropped.
	siteHistory = `SELECT m.value || '-' || d.oid || '-' || 'hf_meta'::regclass::oid || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
		FROM hf_meta AS m, pg_database AS d WHERE m.key = 'incarnation' AND d.datname = current_database()`
)
