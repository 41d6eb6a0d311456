package postgres

// Moves between stores: export.go, import.go. No node uses the database then.
const (
	lockNodes   = `LOCK TABLE hf_node IN EXCLUSIVE MODE`
	liveNodes   = `SELECT name, about FROM hf_node WHERE until >= hf_now() ORDER BY name`
	exportUse   = `SELECT coalesce(pg_sequence_last_value('hf_owner'::regclass), 0)::text`
	exportMeta  = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = $1), '')`
	exportMarks = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = $1), ''), coalesce((SELECT value FROM hf_meta WHERE key = $2), '')`
	// leaveNobody ends what leases and claims are left of nodes that were gone:
	// one that was only paused must not go on in a store that was moved.
	leaveNobody = `WITH gone AS (DELETE FROM hf_node)
		UPDATE hf_queue SET owner = NULL, claim = NULL WHERE owner IS NOT NULL`
	dropMeta  = `DELETE FROM hf_meta WHERE key = $1`
	exportNow = `SELECT hf_now()`

	exportTotals = `SELECT (SELECT count(*) FROM hf_message), (SELECT count(*) FROM hf_event AS e WHERE EXISTS (SELECT FROM hf_message AS m WHERE m.seq = e.message)),
		(SELECT count(*) FROM hf_inbox), coalesce((SELECT max(seq) FROM hf_message), 0), coalesce((SELECT max(seq) FROM hf_event), 0), coalesce((SELECT max(seq) FROM hf_inbox), 0)`
	exportHolds = `SELECT CASE WHEN EXISTS (SELECT FROM hf_message) THEN 'messages' WHEN EXISTS (SELECT FROM hf_inbox) THEN 'ids of an inbox'
		WHEN EXISTS (SELECT FROM hf_event) THEN 'a history' WHEN EXISTS (SELECT FROM hf_token) THEN 'tokens' WHEN EXISTS (SELECT FROM hf_lane) THEN 'lanes' ELSE '' END`
	exportLanes   = `SELECT destination, strict, coalesce(fault, ''), fault_since FROM hf_lane ORDER BY destination`
	exportNotices = `SELECT coalesce((SELECT value::bigint FROM hf_meta WHERE key = 'notify'), 0)`
	exportAccess  = `SELECT name, role, hash, created, used FROM hf_token ORDER BY name`

	exportMessages = `SELECT x.seq, x.id, r.source, l.destination, r.kind, r.endpoint, x.created, x.payload, coalesce(x.headers, ''), coalesce(x.corr, ''), coalesce(x.retry, ''),
			coalesce(x.ttl, 0), coalesce(x.okey, ''), q.seq IS NOT NULL, q.owner IS NOT NULL, coalesce(q.due, 0), coalesce(q.start, 0), coalesce(q.blocked, 0) <> 0, f.state, f.settled,
			coalesce(q.expires, f.expires, 0), coalesce(q.failures, f.failures, 0), coalesce(q.tries, f.tries, 0), coalesce(q.cycle, f.cycle, 0), coalesce(q.first_try, f.first_try),
			coalesce(q.force, f.force, false), coalesce(f.reason, '')
		FROM (
			SELECT *, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before
			FROM (SELECT * FROM hf_message WHERE seq > $1 ORDER BY seq LIMIT $2) AS p) AS x
		LEFT JOIN hf_route AS r ON r.route = x.route LEFT JOIN hf_lane AS l ON l.lane = x.lane
		LEFT JOIN LATERAL (SELECT * FROM hf_queue AS h WHERE h.seq = x.seq OFFSET 0) AS q ON true
		LEFT JOIN LATERAL (SELECT * FROM hf_final AS h WHERE h.seq = x.seq OFFSET 0) AS f ON true
		WHERE x.before < $3 ORDER BY x.seq`
	exportEvents = `SELECT e.seq, e.message, e.kind, e.state, e.at, e.cycle, e.attempt, e.outcome, e.charged, e.maybe, e.took,
			coalesce(e.reason, ''), coalesce(e.code, ''), coalesce(e.error, ''), coalesce(e.actor, '')
		FROM (
			SELECT *, sum(coalesce(octet_length(error), 0)) OVER (ORDER BY seq) - coalesce(octet_length(error), 0) AS before
			FROM (SELECT * FROM hf_event AS o WHERE o.seq > $1 AND EXISTS (SELECT FROM hf_message AS m WHERE m.seq = o.message) ORDER BY o.seq LIMIT $2) AS p) AS e
		WHERE e.before < $3 ORDER BY e.seq`
	exportInbox = `SELECT x.seq, s.name, x.id, x.endpoint, x.hash, x.kept, x.received, x.processed, x.expires, x.response, x.kind, x.payload, coalesce(x.headers, ''), coalesce(x.corr, '')
		FROM (
			SELECT p.*, b.kind, b.payload, b.headers, b.corr, sum(n) OVER (ORDER BY p.seq) - n AS before
			FROM (SELECT * FROM hf_inbox WHERE seq > $1 ORDER BY seq LIMIT $2) AS p LEFT JOIN LATERAL (SELECT * FROM hf_inbox_body AS h WHERE h.seq = p.seq AND p.kept OFFSET 0) AS b ON true,
				LATERAL (SELECT coalesce(octet_length(p.response), 0) + coalesce(octet_length(b.payload), 0) AS n) AS size) AS x
		LEFT JOIN hf_source AS s ON s.source = x.source
		WHERE x.before < $3 ORDER BY x.seq`

	// A new row gets a number above all that were copied.
	importNumbers = `SELECT setval('hf_seq'::regclass, greatest($1::bigint, $2, 1)), setval(pg_get_serial_sequence('hf_event', 'seq')::regclass, greatest($3::bigint, 1))`
	importLane    = `UPDATE hf_lane SET strict = $2, fault = $3, fault_since = $4 WHERE lane = $1`
	importAccess  = `INSERT INTO hf_token (name, role, hash, created, used) VALUES ($1, $2, $3, $4, $5)`
	importLanes   = `SELECT lane FROM hf_lane ORDER BY lane`
	analyze       = `ANALYZE hf_message, hf_queue, hf_final, hf_event, hf_inbox, hf_inbox_body`
)
