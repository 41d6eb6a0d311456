package postgres

// The SQL texts of the store. Each of them is written for an index. plan_test.go looks for scans of
// whole tables, even with statistics from a time when a table was empty. With those, a plain join
// could read a whole table for a few rows. So rows that belong to others are looked up in a LATERAL
// part that OFFSET 0 keeps apart, or by an ARRAY of their numbers. A statement about several rows
// takes arrays, and returns one row for each row that it changed.

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
	findLanes = `SELECT destination, lane FROM hf_lane WHERE destination = ANY ($1::text[])`
	readRoute = `SELECT r.source, l.destination, r.kind, r.endpoint, r.lane FROM hf_route AS r JOIN hf_lane AS l USING (lane) WHERE r.route = $1`
)

// insertMessages takes each row's number in the caller's order, and inserts in the order of ids, so
// that no two transactions wait for each other. A keyed row is blocked until placeKeys has decided
// about it. It returns the rows that are new.
const (
	insertMessages = insertHead + ` ON CONFLICT (id) DO NOTHING` + insertTail + `
	SELECT id, seq FROM new`
	// insertMinted is insertMessages for ids that nobody else can have, with the counters: a
	// transaction of one statement. It writes nothing if the tables are not those that the numbers
	// of names belong to.
	insertMinted = `WITH now AS MATERIALIZED (SELECT hf_now() AS t WHERE ` + readTable + ` = $13),
	` + insertNamed + `
	message AS (
		INSERT INTO hf_message (seq, id, route, lane, created, payload, headers, corr, retry, delay, ttl, okey, bundle)
		SELECT nextval('hf_seq'), id, CASE WHEN (SELECT known FROM named) THEN route END, lane, t, payload, headers, corr, retry, delay, ttl, okey, bundle FROM now,` + insertRows + insertTail + `,
	tally AS (INSERT INTO hf_tally (owner, lane, pending) SELECT $12, lane, count(*) FROM new GROUP BY lane)
	SELECT pg_current_xact_id()::text, ` + readTable
	insertHead = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	input AS MATERIALIZED (
		SELECT nextval('hf_seq') AS seq, i.* FROM` + insertRows + `),
	` + insertNamed + `
	message AS (
		INSERT INTO hf_message (seq, id, route, lane, created, payload, headers, corr, retry, delay, ttl, okey, bundle)
		SELECT seq, id, CASE WHEN (SELECT known FROM named) THEN route END, lane, t, payload, headers, corr, retry, delay, ttl, okey, bundle FROM input, now ORDER BY id`
	// insertNamed checks, once for all rows, that each number still has its name. If a name's row
	// is gone, the number becomes a NULL, which the table refuses (F1-124). It skips the check in a
	// caller's snapshot, which may be older than a name.
	insertNamed = `named AS MATERIALIZED (SELECT current_setting('transaction_isolation') IN ('repeatable read', 'serializable') OR NOT EXISTS (SELECT FROM (SELECT DISTINCT i.route, i.lane FROM unnest($2::integer[], $3::integer[]) AS i (route, lane)) AS i
		WHERE NOT EXISTS (SELECT FROM hf_route AS r WHERE r.route = i.route AND r.lane = i.lane)) AS known),`
	insertRows = ` unnest($1::bytea[], $2::integer[], $3::integer[], $4::bytea[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[])
			AS i (id, route, lane, payload, headers, corr, retry, ttl, delay, okey, bundle)`
	insertTail = ` RETURNING seq, id, lane, okey, created, delay, ttl),
	new AS (
		SELECT seq, id, lane, okey, created + delay AS start, CASE WHEN ttl IS NULL THEN 9223372036854775807 ELSE created + delay + ttl END AS expires FROM message),
	queue AS (
		INSERT INTO hf_queue (seq, lane, due, start, expires, blocked, okey)
		SELECT seq, lane, CASE WHEN okey IS NULL THEN least(start, expires) ELSE expires END, start, expires, CASE WHEN okey IS NULL THEN 0 ELSE 2 END, okey FROM new),
	event AS (
		INSERT INTO hf_entry (message, kind, state, at, cycle, attempt)
		SELECT seq, 1, 0, t, 1, 0 FROM new, now WHERE EXISTS (SELECT FROM hf_follower))`
)

// payloadOf is the payload of hf_message AS m. It is NULL if the bundle that had it is gone.
const payloadOf = `CASE WHEN m.bundle IS NULL THEN m.payload ELSE (SELECT b.payload FROM hf_bundle AS b WHERE b.seq = m.bundle) END`

// findMessages reads what two messages with one id must have in common, and the state of the stored
// one.
const findMessages = `SELECT m.id, m.route, ` + payloadOf + `, q.seq IS NOT NULL, q.owner IS NOT NULL, coalesce(f.state, 0)
	FROM hf_message AS m LEFT JOIN LATERAL (SELECT * FROM hf_queue AS h WHERE h.seq = m.seq OFFSET 0) AS q ON true
	LEFT JOIN LATERAL (SELECT * FROM hf_final AS h WHERE h.seq = m.seq OFFSET 0) AS f ON true WHERE m.id = ANY ($1::bytea[])`

// Bundles: outbox_bundle.go.
const (
	// findBundles gives a number to each bundle whose name is new. A first message that is gone
	// without a state was delivered: purgeThese.
	findBundles = `SELECT i.n, CASE WHEN b.seq IS NULL THEN nextval('hf_seq') ELSE 0 END, b.hash,
			CASE WHEN b.seq IS NULL THEN 0 ELSE coalesce(b.state, (SELECT CASE WHEN q.owner IS NULL THEN 0 ELSE 1 END FROM hf_queue AS q WHERE q.seq = b.first),
				(SELECT f.state FROM hf_final AS f WHERE f.seq = b.first), 2) END
		FROM unnest($1::bytea[], $2::text[], $3::text[]) WITH ORDINALITY AS i (id, kind, source, n)
		LEFT JOIN LATERAL (SELECT seq, hash, first, state FROM hf_bundle AS h WHERE h.id = i.id AND h.kind = i.kind AND h.source = i.source OFFSET 0) AS b ON true`
	takenIDs = `SELECT id FROM hf_message WHERE id = ANY ($1::bytea[])`
	// insertBundles follows insertMessages in its transaction, and fails if a name exists. It
	// inserts in the order of names, so that no two transactions wait for each other. A bundle and
	// the notifications of its messages have the time at which the messages were created.
	insertBundles = `WITH now AS MATERIALIZED (SELECT coalesce((SELECT created FROM hf_message WHERE seq = ($7::bigint[])[1]), hf_now()) AS t),
		note AS (
			INSERT INTO hf_notification (` + notificationRow + `, created)
			SELECT i.*, (SELECT t FROM now) FROM unnest($8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[], $13::text[], $14::text[], $15::text[],
				$16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::bigint[]) AS i (` + notificationRow + `))
		INSERT INTO hf_bundle (seq, kind, source, id, hash, payload, created, first)
		SELECT i.seq, i.kind, i.source, i.id, i.hash, i.payload, (SELECT t FROM now), i.first
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bigint[]) AS i (seq, kind, source, id, hash, payload, first)
		ORDER BY i.id, i.kind, i.source`
)

// Proof that a transaction is committed: tx.go.
const (
	isBundled  = `SELECT seq FROM hf_bundle WHERE seq = ANY ($1::bigint[]) LIMIT 1`
	isEnqueued = `SELECT seq FROM hf_message WHERE id = ANY ($1::bytea[]) LIMIT 1`
	// isAlive finds the process of a lost connection, and ends it if it waits for its client. A
	// process that is working may wait for a standby. A process in a transaction of several
	// statements serves another client by now (a pooler).
	isAlive = `SELECT CASE WHEN $2 AND wait_event = 'ClientRead' THEN pg_terminate_backend(pid) END FROM pg_stat_activity
		WHERE pid = $1 AND usename = current_user AND state NOT LIKE 'idle in transaction%'`
	isClaimed = `SELECT q.seq FROM hf_queue AS q WHERE q.seq = ANY ($2::bigint[]) AND q.owner = $1 AND q.claim = ($3::bigint[])[width_bucket(q.seq, $2)] LIMIT 1`
)

// Ordering keys: outbox_key.go.
const (
	lockKeys = `SELECT pg_advisory_xact_lock($1, k) FROM unnest($2::integer[]) AS k`
	// unplaced goes from key to key, since a key may have a million rows.
	unplaced = `WITH RECURSIVE open AS (
			(SELECT lane, okey, 1::bigint AS n FROM hf_queue WHERE blocked = 2 ORDER BY lane, okey LIMIT 1)
			UNION ALL
			SELECT x.lane, x.okey, o.n + 1 FROM open AS o CROSS JOIN LATERAL (
				SELECT q.lane, q.okey FROM hf_queue AS q WHERE q.blocked = 2 AND (q.lane, q.okey) > (o.lane, o.okey) ORDER BY q.lane, q.okey LIMIT 1) AS x
			WHERE o.n < $1)
		SELECT lane, okey FROM open`
	// placeKeys releases the first message of each key, unless the lane is strict and an earlier
	// message of the key is parked. It does so if the key has no head, or replaces a head that was
	// accepted later, if nobody has claimed that head or is claiming it now. It also blocks some
	// thousand undecided rows. The next claims do the rest, since a caller's transaction may have
	// brought any number.
	placeKeys = `WITH key AS (SELECT DISTINCT k.lane, k.okey FROM unnest($1::integer[], $2::text[]) AS k (lane, okey)),
		next AS MATERIALIZED (
			SELECT k.lane, k.okey, n.seq, h.seq AS head, h.owner
			FROM key AS k JOIN hf_lane AS l USING (lane) CROSS JOIN LATERAL (
				SELECT seq FROM (
					(SELECT seq FROM hf_queue AS q WHERE q.lane = k.lane AND q.okey = k.okey AND q.okey IS NOT NULL AND q.blocked = 1 ORDER BY seq LIMIT 1)
					UNION ALL
					(SELECT seq FROM hf_queue AS q WHERE q.lane = k.lane AND q.okey = k.okey AND q.okey IS NOT NULL AND q.blocked = 2 ORDER BY seq LIMIT 1)) AS two
				ORDER BY seq LIMIT 1) AS n
			LEFT JOIN LATERAL (
				SELECT seq, owner FROM hf_queue AS q WHERE q.lane = k.lane AND q.okey = k.okey AND q.okey IS NOT NULL AND q.blocked = 0 LIMIT 1) AS h ON true
			WHERE NOT (l.strict AND (SELECT true FROM hf_final AS f WHERE f.lane = k.lane AND f.okey = k.okey AND f.state = 3 AND f.okey IS NOT NULL AND f.seq < n.seq LIMIT 1) IS NOT NULL)),
		later AS MATERIALIZED (
			SELECT q.seq FROM hf_queue AS q WHERE q.seq = ANY (ARRAY (SELECT head FROM next WHERE head > seq AND owner IS NULL)) AND q.owner IS NULL AND q.blocked = 0
			FOR UPDATE SKIP LOCKED),
		back AS (
			UPDATE hf_queue AS q SET blocked = 1, start = q.due, due = q.expires WHERE q.seq = ANY (ARRAY (SELECT seq FROM later))),
		first AS (SELECT seq FROM next WHERE head IS NULL OR head IN (SELECT seq FROM later)),
		rest AS (
			UPDATE hf_queue AS q SET blocked = 1 WHERE q.blocked > 1 AND q.seq = ANY (ARRAY (
				SELECT r.seq FROM key AS k CROSS JOIN LATERAL (
					SELECT seq FROM hf_queue AS h WHERE h.lane = k.lane AND h.okey = k.okey AND h.okey IS NOT NULL AND h.blocked = 2 ORDER BY h.seq LIMIT 1000) AS r
				WHERE r.seq NOT IN (SELECT seq FROM first) LIMIT 5000)))
		UPDATE hf_queue AS q SET blocked = 0,
			due = least(greatest(q.start, CASE WHEN q.blocked = 2 THEN hf_now() - 1000000 ELSE hf_now() END), q.expires) WHERE q.seq = ANY (ARRAY (SELECT seq FROM first)) RETURNING q.lane`
)

// claimMessages takes due, unclaimed rows of each lane. claimFirst takes those that became due within
// five minutes and were never tried. A row of an ordering key is due when it is
// the key's turn, or when it has expired. claimSuspects takes rows that were in hand when an owner
// died, a few at a time. Both return at least one row, which tells the time. A buried owner gets
// nothing: burying an owner waits for its claims, or they wait for the burial.
const (
	claimMessages = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	want AS (SELECT * FROM unnest($4::integer[], $5::bigint[], $6::bigint[]) AS w (lane, n, floor)),
	me AS MATERIALIZED (SELECT FROM hf_node WHERE owner = $1 FOR KEY SHARE),
	got AS MATERIALIZED (
		SELECT q.* FROM me, now, want AS w, LATERAL (
			SELECT seq, lane, due, expires, failures, tries, cycle, first_try, force, revision, blocked FROM hf_queue AS q
			WHERE q.lane = w.lane AND q.lane > 0 AND q.due >= w.floor AND q.due <= now.t AND q.owner IS NULL AND NOT q.given_up AND q.deaths = 0 AND (q.blocked = 0 OR q.expires <= now.t)
			ORDER BY q.due, q.seq LIMIT w.n FOR UPDATE SKIP LOCKED) AS q),` + claimGot
	claimFirst = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	want AS (SELECT w.lane, w.n, greatest(w.floor, t - 300000000) AS floor FROM now, unnest($4::integer[], $5::bigint[], $6::bigint[]) AS w (lane, n, floor)),
	me AS MATERIALIZED (SELECT FROM hf_node WHERE owner = $1 FOR KEY SHARE),
	got AS MATERIALIZED (
		SELECT q.* FROM me, now, want AS w, LATERAL (
			SELECT seq, lane, due, expires, failures, tries, cycle, first_try, force, revision, blocked FROM hf_queue AS q
			WHERE q.lane = w.lane AND q.lane > 0 AND q.due >= w.floor AND q.due <= now.t AND q.tries = 0 AND q.owner IS NULL AND NOT q.given_up AND q.deaths = 0 AND q.blocked = 0
			ORDER BY q.due, q.seq LIMIT w.n FOR UPDATE SKIP LOCKED) AS q),` + claimGot
	claimSuspects = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
	me AS MATERIALIZED (SELECT FROM hf_node WHERE owner = $1 FOR KEY SHARE),
	got AS MATERIALIZED (
		SELECT q.* FROM me, now, LATERAL (
			SELECT seq, lane, due, expires, failures, tries, cycle, first_try, force, revision, blocked FROM hf_queue AS q
			WHERE q.deaths = $5 AND q.deaths > 0 AND q.lane = ANY ($4::integer[]) AND q.due <= now.t AND q.owner IS NULL AND NOT q.given_up AND (q.blocked = 0 OR q.expires <= now.t)
			ORDER BY q.due, q.seq LIMIT $6 FOR UPDATE SKIP LOCKED) AS q),` + claimGot
	// claimGot takes as many rows as fit into the payload bytes of one call: the first of each lane
	// before the second of any, so that no lane waits behind the backlog of others.
	claimGot = `
	sized AS MATERIALIZED (
		SELECT g.*, m.id, m.route, m.payload, m.headers, m.corr, m.retry, m.ttl, m.okey, m.bundle, m.size, m.created,
			CASE WHEN g.cycle > 1 THEN g.expires - coalesce((` + setAnew + ` = g.seq), m.created) ELSE m.ttl END AS lasts,
			sum(m.size) OVER (ORDER BY g.nth, g.due, g.seq) - m.size AS before
		FROM (SELECT *, row_number() OVER (PARTITION BY lane ORDER BY due, seq) AS nth FROM got) AS g
		CROSS JOIN LATERAL (SELECT *, coalesce(octet_length(` + payloadOf + `), 0) AS size FROM hf_message AS m WHERE m.seq = g.seq OFFSET 0) AS m),
	mine AS (
		UPDATE hf_queue AS q SET owner = $1, claim = $2 WHERE q.seq = ANY (ARRAY (SELECT seq FROM sized WHERE before < $3)) RETURNING q.seq)
	SELECT n.t, s.seq, s.lane, s.due, s.expires, s.failures, s.tries, s.cycle, s.first_try, s.force, s.revision,
		s.id, s.route, s.payload, s.headers, s.corr, s.retry, s.ttl, s.okey, s.blocked, coalesce(s.lasts, 0), coalesce(s.bundle, 0), s.size, s.created
	FROM now AS n LEFT JOIN sized AS s ON (s.seq IN (SELECT seq FROM mine)) IS TRUE`
	// claimBundles reads each payload once, however many of its messages were claimed.
	claimBundles = `SELECT seq, payload FROM hf_bundle WHERE seq = ANY ($1::bigint[])`
	// fewestDeaths finds the suspects that are tried next.
	fewestDeaths = `SELECT deaths, count(*) FROM (
			SELECT deaths FROM hf_queue AS q WHERE q.deaths > 0 AND q.lane = ANY ($1::integer[]) AND q.due <= (SELECT hf_now()) AND q.owner IS NULL LIMIT 10000) AS s
		GROUP BY deaths ORDER BY deaths LIMIT 1`
	// nextDue returns when the next row of each lane is due.
	nextDue = `SELECT hf_now(), w.lane, (SELECT q.due FROM hf_queue AS q WHERE q.lane = w.lane AND q.lane > 0 AND q.due > $2 AND q.owner IS NULL AND q.deaths = 0 ORDER BY q.due LIMIT 1),
		EXISTS (SELECT FROM hf_queue AS q WHERE q.blocked = 2), EXISTS (SELECT FROM hf_queue AS q WHERE q.deaths > 0)
		FROM unnest($1::integer[]) AS w (lane)`
	giveBack = `UPDATE hf_queue AS q SET owner = NULL, claim = NULL
		WHERE q.seq = ANY ($2::bigint[]) AND q.owner = $1 AND q.claim = ($3::bigint[])[width_bucket(q.seq, $2)] RETURNING q.seq, q.lane, q.given_up`
	// putAside gives claims back, with other due times. A due time of 2^62 or more marks a held
	// message.
	putAside = `UPDATE hf_queue AS q SET owner = NULL, claim = NULL, due = ($3::bigint[])[width_bucket(q.seq, $1)]
		WHERE q.seq = ANY ($1::bigint[]) AND q.owner = $2`
	someHeld = `SELECT q.seq, q.lane FROM hf_lane AS l, LATERAL (SELECT seq, lane FROM hf_queue AS h
		WHERE h.lane = l.lane AND h.lane > 0 AND h.due >= 4611686018427387904 AND h.due < 9223372036854775807 AND h.owner IS NULL LIMIT $1) AS q LIMIT $1`
	letGo = `UPDATE hf_queue AS q SET due = CASE q.blocked WHEN 0 THEN hf_now() ELSE q.expires END
		WHERE q.seq = ANY ($1::bigint[]) AND q.owner IS NULL AND q.due >= 4611686018427387904 AND q.due < 9223372036854775807 RETURNING q.lane`
	expireClaimed = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		gone AS (DELETE FROM hf_queue WHERE seq = ANY ($1::bigint[]) AND owner = $2 RETURNING *),
		final AS (
			INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, first_try, force, okey)
			SELECT seq, lane, 4, t, expires, failures, tries, cycle, first_try, force, okey FROM gone, now),
		event AS (INSERT INTO hf_entry (message, kind, state, at, cycle, attempt) SELECT seq, 5, 4, t, cycle, 0 FROM gone, now)
		SELECT seq, lane, okey FROM gone`
)

// Settlements: outbox_settle.go. Each changes only rows that the owner still has under that claim.
// The arrays are in the ascending order of $2, so that a row finds its values by width_bucket. A
// join would be planned by the statistics about owners, which say that there are none, and would
// then be quadratic.
const (
	settleDelivered = settleHead + `
		SELECT seq FROM gone`
	settleNotified = settleHead + noteDelivered + `
		SELECT seq FROM gone`
	// settlePlain is settleDelivered for rows without a key, with the counters: a transaction of
	// one statement.
	settlePlain         = settleHead + settleTally
	settlePlainNotified = settleHead + noteDelivered + settleTally
	settleTally         = `,
		tally AS (INSERT INTO hf_tally (owner, lane, pending) SELECT $7, lane, -count(*) FROM gone GROUP BY lane)
		SELECT seq, pg_current_xact_id()::text FROM gone`
	settleHead = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		gone AS (DELETE FROM hf_queue AS q WHERE q.seq = ANY ($2::bigint[]) AND q.owner = $1 AND q.claim = ($3::bigint[])[width_bucket(q.seq, $2)]
			RETURNING q.seq, q.lane, q.expires, q.failures, q.tries + 1 AS tries, q.cycle, q.first_try, q.force, q.okey,
				($4::bigint[])[width_bucket(q.seq, $2)] AS took, ($5::boolean[])[width_bucket(q.seq, $2)] AS charged,
				($6::text[])[width_bucket(q.seq, $2)] AS detail),
		final AS (
			INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, first_try, force, okey)
			SELECT seq, lane, 2, t, expires, failures + charged::integer, tries, cycle, first_try, force, okey FROM gone, now),
		event AS (
			INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, took, detail)
			SELECT seq, 2, 2, t, cycle, tries, 5, charged, took, detail FROM gone, now WHERE EXISTS (SELECT FROM hf_follower))`
	settleAside = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		gone AS (DELETE FROM hf_queue AS q WHERE q.seq = ANY ($2::bigint[]) AND q.owner = $1 AND q.claim = ($3::bigint[])[width_bucket(q.seq, $2)]
			RETURNING q.seq, q.lane, q.expires, q.failures, q.tries + 1 AS tries, q.cycle, q.first_try, q.force, q.okey, ($8::boolean[])[width_bucket(q.seq, $2)] AS tried,
				($4::bigint[])[width_bucket(q.seq, $2)] AS took, ($5::boolean[])[width_bucket(q.seq, $2)] AS charged, ($6::smallint[])[width_bucket(q.seq, $2)] AS outcome, ($7::boolean[])[width_bucket(q.seq, $2)] AS maybe,
				($9::text[])[width_bucket(q.seq, $2)] AS reason, ($10::text[])[width_bucket(q.seq, $2)] AS code, ($11::text[])[width_bucket(q.seq, $2)] AS error, ($12::text[])[width_bucket(q.seq, $2)] AS detail,
				($13::smallint[])[width_bucket(q.seq, $2)] AS state, q.given_up),
		final AS (
			INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, first_try, force, reason, okey)
			SELECT seq, lane, state, t, expires, failures + charged::integer, tries, cycle, coalesce(first_try, CASE WHEN tried THEN t - took END), force, reason, okey FROM gone, now),
		event AS (
			INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, maybe, took, reason, code, error, detail)
			SELECT seq, 2, state, t, cycle, tries, outcome, charged, maybe, took, reason, code, error, CASE WHEN EXISTS (SELECT FROM hf_follower) THEN detail END FROM gone, now)
		SELECT seq, given_up FROM gone`
	settlePending = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		back AS (UPDATE hf_queue AS q SET owner = NULL, claim = NULL, deaths = 0, tries = q.tries + 1, failures = q.failures + (($5::boolean[])[width_bucket(q.seq, $2)])::integer,
				due = CASE WHEN q.revision = ($14::integer[])[width_bucket(q.seq, $2)] THEN least(t + ($13::bigint[])[width_bucket(q.seq, $2)], greatest(q.expires, ($15::bigint[])[width_bucket(q.seq, $2)])) ELSE q.due END,
				first_try = coalesce(q.first_try, CASE WHEN ($8::boolean[])[width_bucket(q.seq, $2)] THEN t - ($4::bigint[])[width_bucket(q.seq, $2)] END)
			FROM now WHERE q.seq = ANY ($2::bigint[]) AND q.owner = $1 AND q.claim = ($3::bigint[])[width_bucket(q.seq, $2)]
			RETURNING q.seq, q.lane, q.cycle, q.tries, q.given_up,
				($4::bigint[])[width_bucket(q.seq, $2)] AS took, ($5::boolean[])[width_bucket(q.seq, $2)] AS charged, ($6::smallint[])[width_bucket(q.seq, $2)] AS outcome, ($7::boolean[])[width_bucket(q.seq, $2)] AS maybe,
				($9::text[])[width_bucket(q.seq, $2)] AS reason, ($10::text[])[width_bucket(q.seq, $2)] AS code, ($11::text[])[width_bucket(q.seq, $2)] AS error, ($12::text[])[width_bucket(q.seq, $2)] AS detail),
		event AS (
			INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, maybe, took, reason, code, error, detail)
			SELECT seq, 2, 0, t, cycle, tries, outcome, charged, maybe, took, reason, code, error, CASE WHEN EXISTS (SELECT FROM hf_follower) THEN detail END FROM back, now)
		SELECT seq, given_up FROM back`
)

// Leases: node.go.
const (
	// takeName gives the name a new owner number, unless a live node has the name. In that case it
	// uses up no number.
	takeName = `WITH before AS (SELECT owner FROM hf_node WHERE name = $1),
		new AS (
			INSERT INTO hf_node (name, owner, started, beat, until, lanes, about)
			SELECT $1, o.owner, t, t, t + $2, '{}', $3 FROM (SELECT hf_now() AS t) AS now, (
				SELECT max(nextval('hf_owner')) AS owner
				FROM generate_series(least(coalesce(pg_sequence_last_value('hf_owner'::regclass), 0), $4), $4)
				WHERE NOT EXISTS (SELECT FROM hf_node AS n WHERE n.name = $1 AND n.until >= hf_now() AND n.owner <> $4)) AS o
			WHERE o.owner IS NOT NULL
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, started = excluded.started, beat = excluded.beat, until = excluded.until, lanes = '{}', about = excluded.about
			WHERE hf_node.until < hf_now() OR hf_node.owner = $4
			RETURNING owner)
		SELECT new.owner, coalesce(before.owner, 0) FROM new LEFT JOIN before ON true`
	lookName = `SELECT beat, greatest(until - hf_now(), 0), about FROM hf_node WHERE name = $1`
	beatNow  = `UPDATE hf_node SET beat = hf_now(), until = hf_now() + $3, lanes = $4 WHERE name = $1 AND owner = $2 RETURNING owner`
	allNodes = `SELECT owner, lanes, beat, until >= hf_now() FROM hf_node ORDER BY owner`
	silent   = `SELECT name, owner, about FROM hf_node WHERE until < hf_now() AND owner = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED`
	// tellAll does not wait for the disk, since the change that it announces is already committed.
	tellAll  = `SELECT pg_notify($1, $2) FROM set_config('synchronous_commit', 'off', true)`
	dropNode = `DELETE FROM hf_node WHERE owner = $1`
	// lockNode waits for the running claims of an owner, and keeps it from claiming more.
	lockNode = `SELECT FROM hf_node WHERE owner = $1 FOR UPDATE`
	// giveBackLost gives back what an owner has claimed under numbers whose commit is in doubt;
	// giveBackAll gives back all that it has claimed. They scan the table, as reclaimDead does.
	giveBackLost = `WITH lost AS MATERIALIZED (SELECT seq FROM hf_queue WHERE owner = $1 AND claim = ANY ($2::bigint[]) ORDER BY seq FOR UPDATE),` + backAgain
	giveBackAll  = `WITH lost AS MATERIALIZED (SELECT seq FROM hf_queue WHERE owner = $1 ORDER BY seq FOR UPDATE),` + backAgain
	backAgain    = `
		back AS (UPDATE hf_queue SET owner = NULL, claim = NULL WHERE seq = ANY (ARRAY (SELECT seq FROM lost)) RETURNING lane)
		SELECT DISTINCT lane FROM back`
	// reclaimDead gives back what a dead owner had in hand. Only the rows themselves tell which
	// they are, so it scans the table, once for each death.
	reclaimDead = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		dead AS MATERIALIZED (SELECT seq FROM hf_queue WHERE owner = $1 ORDER BY seq FOR UPDATE),
		back AS (UPDATE hf_queue AS q SET owner = NULL, claim = NULL, tries = q.tries + 1, deaths = least(q.deaths + 1, 1000),
				failures = q.failures + CASE WHEN q.deaths >= $2 THEN 1 ELSE 0 END, first_try = coalesce(q.first_try, t)
			FROM dead, now WHERE q.seq = dead.seq RETURNING q.seq, q.lane, q.cycle, q.tries, q.deaths),
		event AS (
			INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, maybe, error)
			SELECT seq, 6, 0, t, cycle, tries, 0, deaths > $2, true, 'the node died, or was silent for too long, during the attempt' FROM back, now)
		SELECT lane, count(*) FROM back GROUP BY lane`
	readTables = `SET LOCAL enable_seqscan = on`
	notPatient = `SET LOCAL lock_timeout = '100ms'`
)

// Counters: outbox_counts.go.
const (
	insertTally = `INSERT INTO hf_tally (owner, lane, pending, parked, expired, inbox, kept)
		SELECT $1, * FROM unnest($2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])`
	readLane  = `SELECT destination FROM hf_lane WHERE lane = $1`
	readTally = `SELECT NOT EXISTS (SELECT FROM hf_node WHERE owner = $1), t.lane, coalesce(l.destination, ''), t.pending, t.parked, t.expired, t.inbox, t.kept FROM (
			SELECT lane, sum(pending)::bigint AS pending, sum(parked)::bigint AS parked, sum(expired)::bigint AS expired, sum(inbox)::bigint AS inbox, sum(kept)::bigint AS kept
			FROM hf_tally WHERE owner <> $1 GROUP BY lane) AS t LEFT JOIN hf_lane AS l USING (lane)`
	// countNobodys counts rows of changes that no node has in memory; sumUpNobodys sums up some of
	// them.
	countNobodys = `SELECT count(*) FROM (SELECT FROM hf_tally WHERE owner = 0 LIMIT $1) AS x`
	sumUpNobodys = `WITH gone AS (DELETE FROM hf_tally WHERE ctid = ANY (ARRAY (SELECT ctid FROM hf_tally WHERE owner = 0 LIMIT $1)) RETURNING *)
		INSERT INTO hf_tally (owner, lane, pending, parked, expired, inbox, kept)
		SELECT 0, lane, sum(pending), sum(parked), sum(expired), sum(inbox), sum(kept) FROM gone GROUP BY lane`
	sumUpTally = `WITH gone AS (DELETE FROM hf_tally WHERE owner = $1 RETURNING *)
		INSERT INTO hf_tally (owner, lane, pending, parked, expired, inbox, kept)
		SELECT $2, lane, sum(pending), sum(parked), sum(expired), sum(inbox), sum(kept) FROM gone GROUP BY lane`
)
