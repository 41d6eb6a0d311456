package postgres

// What operators see of messages, and do to them.

// recordColumns are the columns of a Record, apart from its history and payload.
const recordColumns = `m.seq, m.id, CASE WHEN f.seq IS NOT NULL THEN f.state WHEN q.owner IS NOT NULL THEN 1 ELSE 0 END,
	coalesce(f.reason, ''), coalesce(q.failures, f.failures), coalesce(q.tries, f.tries), coalesce(q.cycle, f.cycle), m.created, coalesce(q.due, 0),
	coalesce(q.expires, f.expires), coalesce(f.settled, 0), coalesce(m.okey, ''), coalesce(q.force, f.force), coalesce(q.blocked, 0), coalesce(q.given_up, false),
	r.source, r.kind, r.endpoint, l.destination, coalesce(octet_length(` + payloadOf + `), 0), m.headers, coalesce(m.corr, ''), m.retry, coalesce(m.ttl, 0),
	coalesce((SELECT e.error FROM hf_entry AS e WHERE e.message = m.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1), ''),
	coalesce((SELECT e.code FROM hf_entry AS e WHERE e.message = m.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1), ''),
	coalesce((SELECT e.at FROM hf_entry AS e WHERE e.message = m.seq AND e.kind = 2 ORDER BY e.seq DESC LIMIT 1), 0),
	CASE WHEN coalesce(q.cycle, f.cycle) > 1 THEN coalesce(q.expires, f.expires) - coalesce((` + setAnew + ` = m.seq), m.created) ELSE coalesce(m.ttl, 0) END`

// recordTables are read in one snapshot, since a message is in one of two tables.
const recordTables = ` FROM hf_message AS m JOIN hf_route AS r USING (route) JOIN hf_lane AS l ON l.lane = m.lane
	LEFT JOIN LATERAL (SELECT * FROM hf_queue AS h WHERE h.seq = m.seq OFFSET 0) AS q ON true
	LEFT JOIN LATERAL (SELECT * FROM hf_final AS h WHERE h.seq = m.seq OFFSET 0) AS f ON true`

// eventColumns are the columns that scanEvent reads, of hf_entry AS e.
const eventColumns = `e.seq, e.kind, e.state, e.at, e.cycle, e.attempt, e.outcome, e.charged, e.maybe, e.took,
	coalesce(e.reason, ''), coalesce(e.code, ''), coalesce(e.error, ''), coalesce(e.actor, '')`

const (
	getRecord = `SELECT ` + payloadOf + `, ` + recordColumns + recordTables + ` WHERE m.id = $1`
	// getStanding reads nothing large, since it runs again and again.
	getStanding = `SELECT CASE WHEN f.seq IS NOT NULL THEN f.state WHEN q.owner IS NOT NULL THEN 1 ELSE 0 END, coalesce(q.tries, f.tries), coalesce(q.cycle, f.cycle)
		FROM hf_message AS m
		LEFT JOIN LATERAL (SELECT owner, tries, cycle FROM hf_queue AS h WHERE h.seq = m.seq OFFSET 0) AS q ON true
		LEFT JOIN LATERAL (SELECT seq, state, tries, cycle FROM hf_final AS h WHERE h.seq = m.seq OFFSET 0) AS f ON true WHERE m.id = $1`
	getHistory = `SELECT * FROM (SELECT ` + eventColumns + ` FROM hf_entry AS e WHERE e.message = $1 AND e.kind < 8 ORDER BY e.seq DESC LIMIT $2) AS x ORDER BY seq`

	// A list first finds the rows that it shows. Each of these statements reads a bounded number of
	// rows before $1, newest first.
	listRecords = `SELECT ` + recordColumns + recordTables + ` WHERE m.seq = ANY ($1::bigint[]) ORDER BY m.seq DESC`
	listTexts   = `SELECT m.seq, coalesce(substr(` + payloadOf + `, 1, 65536), '') FROM hf_message AS m WHERE m.seq = ANY ($1::bigint[])`
	messageFrom = `SELECT seq, created FROM hf_message WHERE seq >= $1 ORDER BY seq LIMIT 1`
	listAside   = `SELECT seq FROM hf_final AS f WHERE f.state IN (3, 4, 5) AND f.lane > 0
		AND (f.state, f.seq) < ($2, $1) AND f.state >= $2 ORDER BY f.state DESC, f.seq DESC LIMIT $3`
	listAsideOf = `SELECT seq FROM hf_final AS f WHERE f.state IN (3, 4, 5) AND f.lane >= 0
		AND (f.lane, f.state, f.seq) < ($4, $2, $1) AND (f.lane, f.state) >= ($4, $2) ORDER BY f.lane DESC, f.state DESC, f.seq DESC LIMIT $3`
	listQueue = `SELECT seq, lane, owner IS NOT NULL FROM (
			SELECT seq, lane, owner FROM hf_queue WHERE seq < $1 ORDER BY seq DESC LIMIT $2) AS x`
	listWindow = `SELECT m.seq, m.lane, CASE WHEN f.seq IS NOT NULL THEN f.state WHEN q.owner IS NOT NULL THEN 1 ELSE 0 END FROM (
			SELECT seq, lane FROM hf_message WHERE seq < $1 ORDER BY seq DESC LIMIT $2) AS m
		LEFT JOIN LATERAL (SELECT owner FROM hf_queue AS h WHERE h.seq = m.seq OFFSET 0) AS q ON true
		LEFT JOIN LATERAL (SELECT seq, state FROM hf_final AS h WHERE h.seq = m.seq OFFSET 0) AS f ON true ORDER BY m.seq DESC`

	overdue = `SELECT l.destination, hf_now() - x.due FROM hf_lane AS l, LATERAL (
			SELECT due FROM hf_queue AS q WHERE q.lane = l.lane AND q.lane > 0 AND q.owner IS NULL ORDER BY q.due LIMIT 1) AS x WHERE x.due <= hf_now()`

	// Decisions of operators.
	findOperated = `SELECT m.seq, m.lane, coalesce(m.okey, ''), l.destination, coalesce(m.ttl, 0) FROM hf_message AS m JOIN hf_lane AS l USING (lane) WHERE m.id = $1`
	lockFinal    = `SELECT state FROM hf_final WHERE seq = $1 FOR UPDATE`
	lockQueued   = `SELECT q.owner IS NOT NULL, q.given_up, q.expires, (SELECT q.expires - since.at FROM ` + lastsOf + ` WHERE m.seq = q.seq) FROM hf_queue AS q
		WHERE q.seq = $1 FOR UPDATE`
	requeueOne = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		gone AS (DELETE FROM hf_final WHERE seq = $1 RETURNING *),
		queue AS (
			INSERT INTO hf_queue (seq, lane, due, start, expires, cycle, first_try, blocked, force, okey)
			SELECT seq, lane, CASE WHEN okey IS NULL THEN t ELSE e END, t, e, cycle + 1, first_try, CASE WHEN okey IS NULL THEN 0 ELSE 2 END, $3, okey
			FROM gone, now, LATERAL (SELECT CASE WHEN $2::bigint = 0 THEN 9223372036854775807 ELSE t + $2::bigint END AS e) AS x)
		INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, actor) SELECT seq, 3, 0, t, cycle + 1, 0, $4 FROM gone, now`
	hastenMany = `WITH now AS MATERIALIZED (SELECT hf_now() AS t)
		UPDATE hf_queue AS q SET due = t FROM now WHERE q.seq = ANY ($1::bigint[]) AND owner IS NULL AND blocked = 0 AND revision = 0 AND due > t AND due <= t + $2::bigint RETURNING q.lane`
	// An attempt that failed has an entry, of the instant from which its wait is counted.
	retriesPage = `SELECT q.seq, q.due, q.tries, coalesce((SELECT e.at FROM hf_entry AS e WHERE e.message = q.seq AND e.kind = 2 ORDER BY e.seq DESC LIMIT 1), 0)
		FROM hf_queue AS q WHERE q.lane = (SELECT lane FROM hf_lane WHERE destination = $1) AND q.lane > 0 AND (q.due, q.seq) > ($2, $3)
		AND q.tries > 0 AND q.owner IS NULL AND q.blocked = 0 AND q.revision = 0 ORDER BY q.due, q.seq LIMIT $4`
	moveRetries = `UPDATE hf_queue AS q SET due = least(($3::bigint[])[width_bucket(q.seq, $1)], q.expires)
		WHERE q.seq = ANY ($1::bigint[]) AND q.due = ($2::bigint[])[width_bucket(q.seq, $1)] AND q.owner IS NULL AND q.revision = 0 RETURNING q.lane`
	// The history says who has discarded a message that ends only now.
	discardFinal = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		gone AS (UPDATE hf_final SET state = 5, settled = t, reason = $2::text FROM now WHERE seq = ANY ($1::bigint[]) RETURNING seq, cycle, tries, t)
		INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, reason, actor) SELECT seq, 4, 5, t, cycle, tries, $2::text, ` + discardedBy + ` FROM gone AS g`
	discardQueued = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		gone AS (DELETE FROM hf_queue WHERE seq = ANY ($1::bigint[]) AND owner IS NULL RETURNING *),
		final AS (
			INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, first_try, force, reason, okey)
			SELECT seq, lane, 5, t, expires, failures, tries, cycle, first_try, force, $2::text, okey FROM gone, now),
		event AS (
			INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, reason, actor)
			SELECT seq, 4, 5, t, cycle, tries, $2::text, ` + discardedBy + ` FROM gone AS g, now)
		SELECT lane FROM gone`
	discardedBy = `coalesce($3::text, (SELECT e.actor FROM hf_entry AS e WHERE e.message = g.seq AND e.kind = 4 ORDER BY e.seq DESC LIMIT 1))`
	markGivenUp = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		marked AS (UPDATE hf_queue SET given_up = true WHERE seq = $1 RETURNING seq, cycle, tries)
		INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, reason, actor) SELECT seq, 4, 1, t, cycle, tries, $2, $3 FROM marked, now`
	givenUp = `SELECT seq, lane, coalesce(okey, '') FROM hf_queue WHERE given_up AND owner IS NULL LIMIT $1`
	// $4 is the TTL that starts again at the new time; 0: none.
	reschedule = `WITH now AS MATERIALIZED (SELECT hf_now() + $2::bigint AS due),
		moved AS (
			UPDATE hf_queue AS q SET revision = q.revision + 1, start = CASE WHEN q.blocked > 0 THEN n.due ELSE q.start END,
				expires = CASE WHEN $4::bigint > 0 THEN n.due + $4::bigint ELSE q.expires END,
				due = CASE WHEN q.blocked = 0 THEN n.due WHEN $4::bigint > 0 THEN n.due + $4::bigint ELSE q.due END
			FROM now AS n WHERE q.seq = $1 RETURNING q.seq, q.owner, q.cycle, q.tries, n.due - $2::bigint AS t)
		INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, took, code, actor)
		SELECT seq, 7, CASE WHEN owner IS NULL THEN 0 ELSE 1 END, t, cycle, tries, $2::bigint, CASE WHEN $4::bigint > 0 THEN 'ttl_renewed' END, $3 FROM moved`

	// Lanes.
	setStrict = `UPDATE hf_lane SET strict = $2 WHERE lane = $1 AND strict <> $2 RETURNING lane`
	// stoppedKeys goes from key to key, since a key may have a million waiting rows.
	stoppedKeys = `WITH RECURSIVE stopped AS (
			SELECT $2::text COLLATE "C" AS okey, 0::bigint AS n
			UNION ALL
			SELECT (SELECT q.okey FROM hf_queue AS q WHERE q.lane = $1 AND q.okey > s.okey AND q.okey IS NOT NULL AND q.blocked = 1 ORDER BY q.okey LIMIT 1), s.n + 1
			FROM stopped AS s WHERE s.okey IS NOT NULL AND s.n < $3)
		SELECT okey FROM stopped WHERE n > 0 AND okey IS NOT NULL`
	setLaneFault = `UPDATE hf_lane SET fault = $2, fault_since = CASE WHEN $2::text IS NULL THEN NULL ELSE hf_now() END WHERE lane = $1`
	pauseLane    = `UPDATE hf_lane SET paused = true, decided = hf_now(), decided_by = $2 WHERE lane = $1 AND NOT paused RETURNING lane`
	resumeLane   = `UPDATE hf_lane SET paused = false, decided = hf_now(), decided_by = $2, fault = NULL, fault_since = NULL WHERE lane = $1 RETURNING lane`

	laneDecisions = `SELECT destination, paused, coalesce(decided_by, ''), decided FROM hf_lane WHERE decided IS NOT NULL ORDER BY destination`
	laneFaults    = `SELECT destination, fault, fault_since FROM hf_lane WHERE fault IS NOT NULL ORDER BY destination`
)

// Upkeep. One node does it at a time.
const (
	// Rows that have expired by their number, after the row of $2 and $3 that was read last.
	expiredQueued = `SELECT q.seq, q.lane, coalesce(q.okey, ''), q.expires, coalesce((SELECT q.expires - since.at FROM ` + lastsOf + ` WHERE m.seq = q.seq), 0) FROM hf_queue AS q
		WHERE (q.expires, q.seq) > ($2::bigint, $3::bigint) AND q.expires <= $4 AND q.expires < 9223372036854775807 AND q.owner IS NULL ORDER BY q.expires, q.seq LIMIT $1`
	expiredParked = `SELECT q.seq, q.lane, coalesce(q.okey, ''), q.expires, coalesce((SELECT q.expires - since.at FROM ` + lastsOf + ` WHERE m.seq = q.seq), 0) FROM hf_final AS q
		WHERE (q.expires, q.seq) > ($2::bigint, $3::bigint) AND q.state = 3 AND q.expires <= $4 AND q.expires < 9223372036854775807 ORDER BY q.expires, q.seq LIMIT $1`
	// lastsOf is the instant at which the expiry of q was set.
	lastsOf = `hf_message AS m, LATERAL (SELECT CASE WHEN q.cycle > 1
			THEN coalesce((` + setAnew + ` = q.seq), m.created) ELSE q.expires - coalesce(m.ttl, 0) END AS at) AS since`
	// setAnew is the instant at which an operator has set the expiry of a message.
	setAnew = `SELECT max(CASE e.kind WHEN 7 THEN e.at + e.took ELSE e.at END) FROM hf_entry AS e
		WHERE (e.kind = 3 OR e.kind = 7 AND e.code = 'ttl_renewed') AND e.message`
	expireQueued = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		dead AS MATERIALIZED (SELECT seq FROM hf_queue WHERE seq = ANY ($1::bigint[]) AND owner IS NULL AND expires <= hf_now() ORDER BY seq FOR UPDATE SKIP LOCKED),
		gone AS (DELETE FROM hf_queue AS q WHERE q.seq = ANY (ARRAY (SELECT seq FROM dead)) RETURNING q.*),
		final AS (
			INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, first_try, force, okey)
			SELECT seq, lane, 4, t, expires, failures, tries, cycle, first_try, force, okey FROM gone, now),
		event AS (INSERT INTO hf_entry (message, kind, state, at, cycle, attempt) SELECT seq, 5, 4, t, cycle, tries FROM gone, now)
		SELECT seq, lane FROM gone`
	expireParked = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		dead AS MATERIALIZED (SELECT seq FROM hf_final WHERE seq = ANY ($1::bigint[]) AND state = 3 AND expires <= hf_now() ORDER BY seq FOR UPDATE SKIP LOCKED),
		gone AS (UPDATE hf_final AS f SET state = 4, settled = t FROM now WHERE f.seq = ANY (ARRAY (SELECT seq FROM dead)) RETURNING f.seq, f.lane, f.cycle, f.tries, t),
		event AS (INSERT INTO hf_entry (message, kind, state, at, cycle, attempt) SELECT seq, 5, 4, t, cycle, tries FROM gone)
		SELECT seq, lane FROM gone`
	// purgePage reads rows in the order in which they were accepted. A row that came after $2 ends
	// the page.
	purgePage = `WITH page AS MATERIALIZED (SELECT seq, created FROM hf_message WHERE seq > $1 ORDER BY seq LIMIT $3)
		SELECT p.seq, p.created > $2, coalesce(f.state, 0), coalesce(f.settled, 9223372036854775807), coalesce(f.lane, 0), coalesce(f.okey, '')
		FROM page AS p LEFT JOIN LATERAL (SELECT state, settled, lane, okey FROM hf_final AS h WHERE h.seq = p.seq OFFSET 0) AS f ON true ORDER BY p.seq`
	purgeThese = `WITH old AS MATERIALIZED (
			SELECT f.seq FROM hf_final AS f WHERE f.seq = ANY ($1::bigint[]) AND f.state = ($2::smallint[])[width_bucket(f.seq, $1)]
				AND (SELECT true FROM hf_entry AS e, hf_follower AS w WHERE e.message = f.seq AND (e.tx, e.seq) > (w.tx, w.seq) LIMIT 1) IS NULL
			ORDER BY f.seq FOR UPDATE OF f SKIP LOCKED),
		gone AS (DELETE FROM hf_final AS f WHERE f.seq = ANY (ARRAY (SELECT seq FROM old)) RETURNING f.*),
		-- what a notification was is kept
		note AS (
			INSERT INTO hf_notification_end (seq, site, state, settled, failures, tries, cycle, reason, last_error, tried)
			SELECT g.seq, n.site, g.state, g.settled, g.failures, g.tries, g.cycle, g.reason,
				(SELECT e.error FROM hf_entry AS e WHERE e.message = g.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1),
				coalesce((SELECT e.at FROM hf_entry AS e WHERE e.message = g.seq AND e.kind = 2 ORDER BY e.seq DESC LIMIT 1), CASE g.state WHEN 2 THEN g.settled END)
			FROM gone AS g CROSS JOIN LATERAL (SELECT site FROM hf_notification AS h WHERE h.seq = g.seq OFFSET 0) AS n
			ON CONFLICT (seq) DO NOTHING),
		message AS (DELETE FROM hf_message AS m WHERE m.seq = ANY (ARRAY (SELECT seq FROM gone)) RETURNING m.seq, m.bundle, m.id, m.route, m.headers, m.retry, m.created),
		-- and what a bundle's first message was, unless it was delivered, as most are
		bundle AS (
			UPDATE hf_bundle AS b SET state = ($2::smallint[])[width_bucket(b.first, $1)]
			WHERE ($2::smallint[])[width_bucket(b.first, $1)] <> 2 AND b.seq = ANY (ARRAY (SELECT bundle FROM message WHERE bundle IS NOT NULL)) AND b.first = ANY (ARRAY (SELECT seq FROM message))),
		delivery AS (
			UPDATE hf_delivery AS d SET state = ($2::smallint[])[width_bucket(d.seq, $1)], settled = (SELECT g.settled FROM gone AS g WHERE g.seq = d.seq)
			WHERE d.seq = ANY (ARRAY (SELECT seq FROM message WHERE bundle IS NOT NULL))),
		event AS (DELETE FROM hf_entry AS e WHERE e.message = ANY (ARRAY (SELECT seq FROM gone)))
		SELECT g.seq, g.lane, g.state::bigint, m.seq IS NOT NULL, m.id, coalesce(r.source, ''), coalesce(r.endpoint, ''), m.headers, coalesce(m.retry, ''), coalesce(m.created, 0), g.settled,
			g.failures, g.tries, g.cycle, coalesce(g.reason, ''), coalesce(e.error, ''), coalesce(e.code, ''), t.at
		FROM gone AS g
		-- of operations only
		LEFT JOIN message AS m ON m.seq = g.seq AND g.lane = ANY ($3::integer[]) AND g.settled >= $4
		LEFT JOIN LATERAL (SELECT source, endpoint FROM hf_route AS h WHERE h.route = m.route OFFSET 0) AS r ON true
		LEFT JOIN LATERAL (SELECT error, code FROM hf_entry AS h WHERE h.message = m.seq AND h.error IS NOT NULL ORDER BY h.seq DESC LIMIT 1) AS e ON true
		LEFT JOIN LATERAL (SELECT at FROM hf_entry AS h WHERE h.message = m.seq AND h.kind = 2 ORDER BY h.seq DESC LIMIT 1) AS t ON true`

	// purgeOperations deletes some records of operations that ended before $1.
	purgeOperations = `WITH gone AS (DELETE FROM hf_operation AS o WHERE o.seq = ANY (ARRAY (
			SELECT seq FROM hf_operation WHERE settled < $1 ORDER BY settled LIMIT $2)) RETURNING 1)
		SELECT count(*) FROM gone`
)

// Notices.
const (
	// tryRoom is never committed: node_space.go.
	tryRoom = `INSERT INTO hf_meta (key, value) VALUES ('room', $1)`

	notifyMask    = `SELECT value FROM hf_meta WHERE key = 'notify'`
	setNotifyMask = `INSERT INTO hf_meta (key, value) VALUES ('notify', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE hf_meta.value <> excluded.value`
	isWaiting     = `SELECT (SELECT true FROM hf_queue AS q WHERE q.lane = (SELECT l.lane FROM hf_lane AS l WHERE l.destination = $1) AND q.lane > 0 LIMIT 1) IS NOT NULL`
	// endedRows reads what callbacks are told, if there are callbacks.
	endedRows = `SELECT m.id, r.source, r.kind, r.endpoint, l.destination, coalesce(m.corr, ''), coalesce(m.okey, ''), coalesce(f.reason, ''), f.cycle, f.tries, f.settled,
		coalesce(e.error, ''), coalesce(e.code, '')
		FROM hf_final AS f JOIN hf_message AS m USING (seq) JOIN hf_route AS r USING (route) JOIN hf_lane AS l ON l.lane = m.lane
		LEFT JOIN LATERAL (SELECT error, code FROM hf_entry WHERE message = m.seq AND error IS NOT NULL ORDER BY seq DESC LIMIT 1) AS e ON true
		WHERE f.seq = ANY ($1::bigint[]) AND l.destination <> $3
			AND EXISTS (SELECT FROM hf_meta WHERE key = 'notify' AND value::integer & $2 <> 0) ORDER BY f.seq`
)

// The journal.
const (
	addFollower = `INSERT INTO hf_follower (name, tx, seq) SELECT $1, CASE WHEN $2 THEN '0'::xid8 ELSE pg_current_xact_id() END,
		CASE WHEN $2 THEN 0 ELSE coalesce((SELECT max(seq) FROM hf_entry), 0) END ON CONFLICT (name) DO NOTHING`
	getFollower  = `SELECT tx::text, seq FROM hf_follower WHERE name = $1`
	moveFollower = `UPDATE hf_follower SET tx = $4::text::xid8, seq = $5 WHERE name = $1 AND tx = $2::text::xid8 AND seq = $3 RETURNING name`
	unreadSince  = `SELECT w.name, coalesce((SELECT e.at FROM hf_entry AS e
			LEFT JOIN LATERAL (SELECT seq FROM hf_message AS h WHERE h.seq = e.message OFFSET 0) AS m ON true
			WHERE (e.message IS NULL OR m.seq IS NOT NULL) AND (e.tx, e.seq) > (w.tx, w.seq) ORDER BY e.tx, e.seq LIMIT 1), 0)
		FROM hf_follower AS w ORDER BY w.name`
	// isElsewhere reports whether the journal has numbers of transactions that this cluster has not
	// given yet: then it was dumped from another cluster.
	isElsewhere = `SELECT coalesce((SELECT tx FROM hf_entry ORDER BY tx DESC, seq DESC LIMIT 1) >= pg_snapshot_xmax(pg_current_snapshot()), false)
		OR EXISTS (SELECT FROM hf_follower WHERE tx >= pg_snapshot_xmax(pg_current_snapshot()))`
	noTimeout   = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '60s', true)`
	lockJournal = `LOCK TABLE hf_entry, hf_follower IN SHARE ROW EXCLUSIVE MODE`
	// renumber keeps the order as far as followers need it. An entry's number becomes the count of
	// followers that have yet to read it, and a follower gets a number below the entries that it
	// has yet to read.
	renumber = `WITH entry AS (
			UPDATE hf_entry AS e SET tx = (SELECT count(*) FROM hf_follower AS w WHERE (w.tx, w.seq) < (e.tx, e.seq))::text::xid8)
		UPDATE hf_follower AS f SET tx = (SELECT count(*) FROM hf_follower AS w WHERE (w.tx, w.seq) < (f.tx, f.seq))::text::xid8, seq = 9223372036854775807`
	isFollowed  = `SELECT EXISTS (SELECT FROM hf_follower)`
	insertNotes = `INSERT INTO hf_entry (kind, at, outcome, code, error, actor, subject, detail)
		SELECT i.kind, now.t, i.outcome, i.code, i.error, i.actor, i.subject, i.detail FROM (SELECT hf_now() AS t) AS now,
			unnest($1::smallint[], $2::smallint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY
				AS i (kind, outcome, code, error, actor, subject, detail, n)
		WHERE EXISTS (SELECT FROM hf_follower) ORDER BY i.n`
	// purgeNotes deletes some journal entries that are not about a message of the outbox, from the
	// first on, if every follower has read them.
	purgeNotes = `WITH gone AS (DELETE FROM hf_entry AS e WHERE e.message IS NULL AND e.seq = ANY (ARRAY (
			SELECT p.seq FROM (SELECT tx, seq FROM hf_entry WHERE message IS NULL ORDER BY seq LIMIT $1) AS p
			WHERE (SELECT true FROM hf_follower AS w WHERE (p.tx, p.seq) > (w.tx, w.seq) LIMIT 1) IS NULL)) RETURNING 1)
		SELECT count(*) FROM gone`
	dropFollower = `DELETE FROM hf_follower WHERE name = $1 RETURNING name`
	// eventsAfter reads only entries that no earlier one can precede any more: those of
	// transactions older than every open one.
	eventsAfter = `SELECT e.tx::text, coalesce(m.id, e.id), coalesce(l.destination, ''), coalesce(e.subject, ''), coalesce(e.detail, ''),
			coalesce(r.source, ''), coalesce(r.kind, ''), coalesce(r.endpoint, ''), CASE WHEN $4 THEN m.headers END, coalesce(CASE WHEN $4 THEN m.corr END, ''), CASE WHEN $4 THEN m.created END,
			` + eventColumns + ` FROM hf_entry AS e
		LEFT JOIN LATERAL (SELECT id, lane, route, headers, corr, created FROM hf_message AS h WHERE h.seq = e.message OFFSET 0) AS m ON true
		LEFT JOIN LATERAL (SELECT destination FROM hf_lane AS h WHERE h.lane = m.lane OFFSET 0) AS l ON true
		LEFT JOIN LATERAL (SELECT source, kind, endpoint FROM hf_route AS h WHERE $4 AND h.route = m.route OFFSET 0) AS r ON true
		WHERE (e.message IS NULL OR m.id IS NOT NULL) AND (e.tx, e.seq) > ($1::text::xid8, $2) AND e.tx < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY e.tx, e.seq LIMIT $3`
)
