package postgres

// Transactions of callers: tx_part.go, tx_join.go.
const (
	currentXID = `SELECT pg_current_xact_id()::text, ` + readTable

	// identity distinguishes these tables from those of another schema, database or server, and
	// from copies of them.
	identity = `SELECT m.value || ' ' || d.oid || ' ' || 'hf_meta'::regclass::oid FROM hf_meta AS m, pg_database AS d
		WHERE m.key = 'incarnation' AND d.datname = current_database()`

	// enterJoined checks a transaction that somebody else has begun. An accepted message must be on
	// disk when it commits, so it changes a synchronous_commit of off.
	enterJoined = `SELECT coalesce((` + identity + `), ''), current_setting('transaction_read_only') = 'on',
		CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
		CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END IS NOT NULL, ` + findBranch

	// tallyMessages counts the new messages of a transaction whose end the store does not learn.
	tallyMessages = `INSERT INTO hf_tally (owner, lane, pending) SELECT 0, lane, count(*) FROM hf_message WHERE id = ANY ($1::bytea[]) GROUP BY lane`

	takeBackMessages = `WITH gone AS (DELETE FROM hf_message WHERE id = ANY ($1::bytea[]) RETURNING seq),
		queue AS (DELETE FROM hf_queue AS q WHERE q.seq = ANY (ARRAY (SELECT seq FROM gone)))
		DELETE FROM hf_entry AS e WHERE e.message = ANY (ARRAY (SELECT seq FROM gone))`

	// conclude counts the rows that still exist of those that a transaction has written, since the
	// caller may have rolled back to a savepoint.
	conclude = `WITH new AS (
			INSERT INTO hf_tally (owner, lane, pending, inbox)
			SELECT $1::bigint, lane, count(*), 0::bigint FROM hf_message WHERE id = ANY ($2::bytea[]) GROUP BY lane
			UNION ALL
			SELECT $1::bigint, 0, 0, count(*) FROM hf_inbox WHERE seq = ANY ($3::bigint[]) HAVING count(*) > 0
			RETURNING lane, pending, inbox)
		SELECT x.id::text, coalesce(n.lane, 0), coalesce(n.pending, 0), coalesce(n.inbox, 0), ` + readTable + `
		FROM pg_current_xact_id() AS x (id) LEFT JOIN new AS n ON true`
)

// The inbox: inbox_process.go.
const (
	savePart    = `SAVEPOINT hf_part`
	releasePart = `RELEASE SAVEPOINT hf_part`

	// remember inserts an id. If another transaction is inserting the same id, it waits for it, and
	// the next statement sees that row.
	remember = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		new AS (
			INSERT INTO hf_inbox (seq, source, id, endpoint, hash, received, processed, expires)
			SELECT nextval('hf_seq'), $1, $2, $3, $4, t, t, t + $5 FROM now ON CONFLICT (source, id) DO NOTHING RETURNING seq, source, id, endpoint, kept, received),` + noteArrived + `
		SELECT seq FROM new`
	// noteArrived tells followers of the journal.
	noteArrived = `
		note AS (
			INSERT INTO hf_entry (kind, at, subject, id, detail)
			SELECT CASE WHEN n.kept THEN 10 ELSE 9 END, n.received, (SELECT s.name FROM hf_source AS s WHERE s.source = n.source), n.id, json_build_object('endpoint', n.endpoint)::text
			FROM new AS n WHERE EXISTS (SELECT FROM hf_follower))`
	findInbox   = `SELECT hash, response FROM hf_inbox WHERE source = $1 AND id = $2`
	isArrived   = `SELECT seq FROM hf_inbox WHERE seq = ANY ($1::bigint[]) LIMIT 1`
	isKept      = `SELECT x.seq FROM hf_source AS s CROSS JOIN LATERAL (SELECT seq, kept FROM hf_inbox AS h WHERE h.source = s.source AND h.id = $2 OFFSET 0) AS x WHERE s.name = $1 AND x.kept`
	setResponse = `UPDATE hf_inbox SET response = $2 WHERE seq = $1 RETURNING seq`
	// setContent is for a row whose first message has failed. Another message with the same id and
	// other content takes its place.
	setContent = `UPDATE hf_inbox SET endpoint = $2, hash = $3, expires = received + $4 WHERE seq = $1`
	dropInbox  = `WITH gone AS (DELETE FROM hf_inbox WHERE seq = ANY ($1::bigint[]) RETURNING source, id)
		DELETE FROM hf_entry AS e USING gone AS g JOIN hf_source AS s USING (source) WHERE e.tx = pg_current_xact_id() AND e.id = g.id AND e.subject = s.name`
	tallyInbox = `INSERT INTO hf_tally (owner, lane, inbox) VALUES (0, 0, 1)`
)

// The inbox of a node: inbox_keep.go, inbox_kept.go.
const (
	// keepInbox takes numbers in the caller's order and inserts in the order of ids, so that no two
	// transactions wait for each other. It returns the rows that are new.
	keepInbox = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		input AS MATERIALIZED (
			SELECT nextval('hf_seq') AS seq, i.* FROM unnest($1::integer[], $2::bytea[], $3::text[], $4::bytea[], $5::boolean[], $6::bigint[], $7::bytea[],
				$8::text[], $9::bytea[], $10::text[], $11::text[]) WITH ORDINALITY
				AS i (source, id, endpoint, hash, kept, memory, response, kind, payload, headers, corr, n)),
		new AS (
			INSERT INTO hf_inbox (seq, source, id, endpoint, hash, kept, received, processed, expires, response)
			SELECT seq, source, id, endpoint, hash, kept, t, CASE WHEN NOT kept THEN t END, t + memory, response FROM input, now ORDER BY source, id, seq
			ON CONFLICT (source, id) DO NOTHING RETURNING seq, source, id, endpoint, kept, received),` + noteArrived + `,
		body AS (
			INSERT INTO hf_inbox_body (seq, kind, payload, headers, corr)
			SELECT i.seq, i.kind, i.payload, i.headers, i.corr FROM new JOIN input AS i USING (seq) WHERE i.kept)
		SELECT i.n, i.seq FROM new JOIN input AS i USING (seq)`
	lookUpInbox = `SELECT i.n, x.hash, x.response FROM unnest($1::integer[], $2::bytea[]) WITH ORDINALITY AS i (source, id, n)
		JOIN hf_inbox AS x ON x.source = i.source AND x.id = i.id`
	knownInbox = `SELECT i.n, x.hash, x.response FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS i (name, id, n)
		JOIN hf_source AS s ON s.name = i.name
		CROSS JOIN LATERAL (SELECT hash, response FROM hf_inbox AS h WHERE h.source = s.source AND h.id = i.id OFFSET 0) AS x`

	keptColumns = `SELECT x.seq, x.id, s.name, x.endpoint, x.received, b.kind, b.payload, b.headers, b.corr
		FROM hf_inbox AS x CROSS JOIN LATERAL (SELECT kind, payload, headers, corr FROM hf_inbox_body AS h WHERE h.seq = x.seq OFFSET 0) AS b
		CROSS JOIN LATERAL (SELECT name FROM hf_source AS h WHERE h.source = x.source OFFSET 0) AS s WHERE x.kept AND x.seq > $1`
	keptAll = keptColumns + ` ORDER BY x.seq LIMIT $2`
	keptOf  = keptColumns + ` AND x.endpoint = $3 ORDER BY x.seq LIMIT $2`

	sourcesOf = `SELECT s.name, x.kept FROM hf_source AS s CROSS JOIN LATERAL (SELECT kept FROM hf_inbox AS h WHERE h.source = s.source AND h.id = $1 OFFSET 0) AS x ORDER BY s.name`

	// finishKept ends a kept row, and returns the former state of the row.
	finishKept = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		old AS MATERIALIZED (
			SELECT x.seq, x.kept, x.response FROM hf_source AS s JOIN hf_inbox AS x ON x.source = s.source AND x.id = $2 WHERE s.name = $1 FOR UPDATE OF x),
		done AS (
			UPDATE hf_inbox AS x SET kept = false, processed = t, response = $3, expires = greatest(x.expires, t + (x.expires - x.received))
			FROM old AS o, now WHERE x.seq = o.seq AND o.kept RETURNING x.seq),
		note AS (
			INSERT INTO hf_entry (kind, at, subject, id) SELECT 9, t, $1, $2 FROM done, now WHERE EXISTS (SELECT FROM hf_follower)),
		body AS (DELETE FROM hf_inbox_body AS b WHERE b.seq = ANY (ARRAY (SELECT seq FROM done)))
		SELECT kept, response FROM old`

	lockUpkeep = `SELECT pg_try_advisory_xact_lock($1, $2)`

	// forgetInbox reads the next rows in the order of their arrival, and deletes those whose time
	// is over. Rows that came after the horizon, and all behind them, are too young. $3 is the
	// horizon, $4 the time, $5 and $6 the leaps of the clock: belief.Guard.End.
	forgetInbox = `WITH page AS MATERIALIZED (SELECT seq, kept, received, processed, expires FROM hf_inbox WHERE seq > $1 ORDER BY seq LIMIT $2),
		old AS MATERIALIZED (SELECT p.* FROM page AS p WHERE p.received <= $3),
		free AS MATERIALIZED (
			SELECT seq FROM hf_inbox WHERE seq = ANY (ARRAY (SELECT o.seq FROM old AS o WHERE NOT o.kept AND o.expires + (
				SELECT coalesce(sum(l.s - greatest(least(coalesce(o.processed, o.received) - (l.a - l.s), l.s), 0)), 0)::bigint FROM unnest($5::bigint[], $6::bigint[]) AS l (a, s)) < $4))
			ORDER BY seq FOR UPDATE SKIP LOCKED),
		gone AS (DELETE FROM hf_inbox AS x WHERE x.seq = ANY (ARRAY (SELECT seq FROM free)) RETURNING x.seq)
		SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM old), coalesce((SELECT max(seq) FROM old), 0),
			coalesce((SELECT min(seq) FROM page WHERE seq NOT IN (SELECT seq FROM gone)), 0)`
)
