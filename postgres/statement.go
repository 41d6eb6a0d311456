package postgres

// The SQL texts of the store. Each is meant for an index: plan_test.go looks
// for scans of whole tables. Parameters are arrays where a statement is about
// several rows, one result row per row that it changed.

// Names.
const (
	internLane = `WITH known AS (SELECT lane FROM hf_lane WHERE destination = $1),
		new AS (INSERT INTO hf_lane (destination) SELECT $1 WHERE NOT EXISTS (SELECT FROM known) ON CONFLICT DO NOTHING RETURNING lane)
		SELECT lane FROM known UNION ALL SELECT lane FROM new`
	internRoute = `WITH known AS (SELECT route FROM hf_route WHERE lane = $1 AND source = $2 AND kind = $3 AND endpoint = $4),
		new AS (INSERT INTO hf_route (lane, source, kind, endpoint) SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT FROM known) ON CONFLICT DO NOTHING RETURNING route)
		SELECT route FROM known UNION ALL SELECT route FROM new`
	internSource = `WITH known AS (SELECT source FROM hf_source WHERE name = $1),
		new AS (INSERT INTO hf_source (name) SELECT $1 WHERE NOT EXISTS (SELECT FROM known) ON CONFLICT DO NOTHING RETURNING source)
		SELECT source FROM known UNION ALL SELECT source FROM new`
	findLane  = `SELECT lane FROM hf_lane WHERE destination = $1`
	readRoute = `SELECT r.source, l.destination, r.kind, r.endpoint, r.lane FROM hf_route AS r JOIN hf_lane AS l USING (lane) WHERE r.route = $1`
)

// insertMessages takes each row's number in the caller's order, and inserts in
// the order of ids, so that no two transactions wait for each other. A keyed
// row waits until placeKeys has looked at it. What it returns are the ids that
// are new.
const insertMessages = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	input AS MATERIALIZED (
		SELECT nextval('hf_seq') AS seq, i.* FROM unnest($1::bytea[], $2::integer[], $3::integer[], $4::bytea[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[])
			AS i (id, route, lane, payload, headers, corr, retry, ttl, delay, okey)),
	message AS (
		INSERT INTO hf_message (seq, id, route, lane, created, payload, headers, corr, retry, ttl, okey)
		SELECT seq, id, route, lane, t, payload, headers, corr, retry, ttl, okey FROM input, now ORDER BY id
		ON CONFLICT (id) DO NOTHING RETURNING seq, id),
	new AS (
		SELECT m.seq, m.id, i.lane, i.okey, n.t + i.delay AS start,
			CASE WHEN i.ttl IS NULL THEN 9223372036854775807 ELSE n.t + i.delay + i.ttl END AS expires
		FROM message AS m JOIN input AS i USING (seq), now AS n),
	queue AS (
		INSERT INTO hf_queue (seq, lane, due, start, expires, blocked, okey)
		SELECT seq, lane, CASE WHEN okey IS NULL THEN least(start, expires) ELSE expires END, start, expires, CASE WHEN okey IS NULL THEN 0 ELSE 2 END, okey FROM new),
	event AS (
		INSERT INTO hf_event (message, kind, state, at, cycle, attempt)
		SELECT seq, 1, 0, t, 1, 0 FROM new, now WHERE EXISTS (SELECT FROM hf_follower)),
	tally AS (
		INSERT INTO hf_tally (owner, lane, pending) SELECT $11, lane, count(*) FROM new GROUP BY lane)
	SELECT id FROM new`

// findMessages reads what must be the same of two messages of one id, and where the first stands.
const findMessages = `SELECT m.id, m.route, m.payload, q.seq IS NOT NULL, q.owner IS NOT NULL, coalesce(f.state, 0)
	FROM hf_message AS m LEFT JOIN hf_queue AS q USING (seq) LEFT JOIN hf_final AS f USING (seq) WHERE m.id = ANY ($1::bytea[])`

// Ordering keys: key.go.
const (
	lockKeys = `SELECT pg_advisory_xact_lock($1, k) FROM unnest($2::integer[]) AS k`
	unplaced = `SELECT DISTINCT lane, okey FROM hf_queue WHERE blocked = 2 ORDER BY lane, okey LIMIT $1`
	// placeKeys lets the first message of each key go that has nobody in hand
	// or on the way, unless in a strict lane one before it is parked.
	placeKeys = `WITH key AS (SELECT DISTINCT k.lane, k.okey FROM unnest($1::integer[], $2::text[]) AS k (lane, okey)),
		first AS (
			SELECT k.lane, k.okey, n.seq FROM key AS k JOIN hf_lane AS l USING (lane) CROSS JOIN LATERAL (
				SELECT seq FROM (
					(SELECT seq FROM hf_queue AS q WHERE q.lane = k.lane AND q.okey = k.okey AND q.okey IS NOT NULL AND q.blocked = 1 ORDER BY seq LIMIT 1)
					UNION ALL
					(SELECT seq FROM hf_queue AS q WHERE q.lane = k.lane AND q.okey = k.okey AND q.okey IS NOT NULL AND q.blocked = 2 ORDER BY seq LIMIT 1)) AS two
				ORDER BY seq LIMIT 1) AS n
			WHERE NOT EXISTS (SELECT FROM hf_queue AS h WHERE h.lane = k.lane AND h.okey = k.okey AND h.okey IS NOT NULL AND h.blocked = 0)
				AND NOT (l.strict AND EXISTS (SELECT FROM hf_final AS f WHERE f.lane = k.lane AND f.okey = k.okey AND f.state = 3 AND f.okey IS NOT NULL AND f.seq < n.seq))),
		rest AS (
			UPDATE hf_queue AS q SET blocked = 1 FROM key AS k
			WHERE q.lane = k.lane AND q.okey = k.okey AND q.okey IS NOT NULL AND q.blocked = 2 AND NOT EXISTS (SELECT FROM first AS f WHERE f.seq = q.seq))
		UPDATE hf_queue AS q SET blocked = 0, due = least(greatest(hf_now(), q.start), q.expires) FROM first AS f WHERE q.seq = f.seq RETURNING q.lane`
)

// claimMessages takes due rows of each lane that nobody has. A row of an
// ordering key is due when it is the key's turn, or when its time is over.
// Rows that were in hand when an owner died are taken by claimSuspects.
const claimMessages = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	want AS (SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS w (lane, n, floor)),
	got AS MATERIALIZED (
		SELECT q.seq FROM want AS w, now, LATERAL (
			SELECT seq FROM hf_queue AS q
			WHERE q.lane = w.lane AND q.due >= w.floor AND q.due <= now.t AND q.owner IS NULL AND q.deaths = 0 AND (q.blocked = 0 OR q.expires <= now.t)
			ORDER BY q.due, q.seq LIMIT w.n FOR UPDATE SKIP LOCKED) AS q),
	mine AS (
		UPDATE hf_queue AS q SET owner = $4, claim = $5 FROM got WHERE q.seq = got.seq
		RETURNING q.seq, q.lane, q.due, q.expires, q.failures, q.tries, q.cycle, q.first_try, q.force)
	SELECT q.*, now.t, m.id, m.route, m.payload, m.headers, m.corr, m.retry, m.ttl, m.okey
	FROM mine AS q JOIN hf_message AS m USING (seq), now`

const claimSuspects = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	got AS MATERIALIZED (
		SELECT q.seq FROM now, LATERAL (
			SELECT seq FROM hf_queue AS q
			WHERE q.deaths > 0 AND q.lane = ANY ($1::integer[]) AND q.due <= now.t AND q.owner IS NULL AND (q.blocked = 0 OR q.expires <= now.t)
			ORDER BY q.due, q.seq LIMIT $2 FOR UPDATE SKIP LOCKED) AS q),
	mine AS (
		UPDATE hf_queue AS q SET owner = $3, claim = $4 FROM got WHERE q.seq = got.seq
		RETURNING q.seq, q.lane, q.due, q.expires, q.failures, q.tries, q.cycle, q.first_try, q.force)
	SELECT q.*, now.t, m.id, m.route, m.payload, m.headers, m.corr, m.retry, m.ttl, m.okey
	FROM mine AS q JOIN hf_message AS m USING (seq), now`

// nextDue tells, for each lane, when its next row is due, how long that is
// from now on, and whether keys wait to be looked at.
const nextDue = `SELECT w.lane, hf_now(), (SELECT q.due FROM hf_queue AS q WHERE q.lane = w.lane AND q.due > $2 AND q.owner IS NULL ORDER BY q.due LIMIT 1),
	EXISTS (SELECT FROM hf_queue WHERE blocked = 2), EXISTS (SELECT FROM hf_queue AS q WHERE q.deaths > 0)
	FROM unnest($1::integer[]) AS w (lane)`
