package postgres

// Moves between stores: storecopy_export.go, storecopy_import.go. No node uses the database then.
const (
	lockNodes = `LOCK TABLE hf_node IN EXCLUSIVE MODE`
	// hf_now stands still if no node is left to write it.
	liveNodes   = `SELECT n.name, n.about FROM hf_node AS n, hf_clock AS c WHERE n.until >= c.at + greatest(hf_raw() - c.raw, 0) ORDER BY n.name`
	exportUse   = `SELECT coalesce(pg_sequence_last_value('hf_owner'::regclass), 0)::text`
	exportMeta  = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = $1), '')`
	exportMarks = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = $1), ''), coalesce((SELECT value FROM hf_meta WHERE key = $2), '')`
	// leaveNobody ends the leases and claims that are left of nodes that are gone: a node that was
	// only suspended must not continue in a store that was moved.
	leaveNobody = `WITH gone AS (DELETE FROM hf_node)
		UPDATE hf_queue SET owner = NULL, claim = NULL WHERE owner IS NOT NULL`
	dropMeta = `DELETE FROM hf_meta WHERE key = $1`
	// exportNow is what tickClock makes of the row when a node starts. hf_now lacks all the time in
	// which no node ran, and instants are copied as distances from it.
	exportNow = `SELECT c.at + greatest(c.shows - CASE WHEN c.high > c.raw AND c.high <= c.shows THEN c.high ELSE c.raw END, 0)
		FROM (SELECT at, raw, high, hf_raw() AS shows FROM hf_clock) AS c`

	exportTotals = `SELECT (SELECT count(*) FROM hf_message), (SELECT count(*) FROM hf_entry AS e WHERE EXISTS (SELECT FROM hf_message AS m WHERE m.seq = e.message) AND e.kind < 8),
		(SELECT count(*) FROM hf_inbox), (SELECT count(*) FROM hf_notification),
		greatest((SELECT max(seq) FROM hf_message), (SELECT max(seq) FROM hf_notification), 0), coalesce((SELECT max(seq) FROM hf_entry), 0), coalesce((SELECT max(seq) FROM hf_inbox), 0)`
	exportLeaps = `SELECT leaps FROM hf_clock`

	exportMessages = `SELECT x.seq, x.id, r.source, l.destination, r.kind, r.endpoint, x.created, x.payload, x.bundle IS NOT NULL, coalesce((SELECT b.seq FROM hf_bundle AS b WHERE b.seq = x.bundle), 0), coalesce(x.headers, ''), coalesce(x.corr, ''), coalesce(x.retry, ''),
			coalesce(x.ttl, 0), coalesce(x.okey, ''), q.seq IS NOT NULL, q.owner IS NOT NULL, coalesce(q.due, 0), coalesce(q.start, 0), coalesce(q.blocked, 0) <> 0, f.state, f.settled,
			coalesce(q.expires, f.expires, 0), coalesce(q.failures, f.failures, 0), coalesce(q.tries, f.tries, 0), coalesce(q.cycle, f.cycle, 0), coalesce(q.first_try, f.first_try),
			coalesce(q.force, f.force, false), coalesce(q.given_up, false), coalesce(f.reason, '')
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
			FROM (SELECT * FROM hf_entry AS o WHERE o.seq > $1 AND o.kind < 8 AND EXISTS (SELECT FROM hf_message AS m WHERE m.seq = o.message) ORDER BY o.seq LIMIT $2) AS p) AS e
		WHERE e.before < $3 ORDER BY e.seq`
	exportInbox = `SELECT x.seq, s.name, x.id, x.endpoint, x.hash, x.kept, x.received, x.processed, x.expires, x.response, x.kind, x.payload, coalesce(x.headers, ''), coalesce(x.corr, '')
		FROM (
			SELECT p.*, b.kind, b.payload, b.headers, b.corr, sum(n) OVER (ORDER BY p.seq) - n AS before
			FROM (SELECT * FROM hf_inbox WHERE seq > $1 ORDER BY seq LIMIT $2) AS p LEFT JOIN LATERAL (SELECT * FROM hf_inbox_body AS h WHERE h.seq = p.seq AND p.kept OFFSET 0) AS b ON true,
				LATERAL (SELECT coalesce(octet_length(p.response), 0) + coalesce(octet_length(b.payload), 0) AS n) AS size) AS x
		LEFT JOIN hf_source AS s ON s.source = x.source
		WHERE x.before < $3 ORDER BY x.seq`

	exportSettings = `SELECT coalesce((SELECT value::bigint FROM hf_meta WHERE key = 'notify'), 0), coalesce((SELECT value::bigint FROM hf_meta WHERE key = 'book'), 0)`
	// exportNotifications returns the final state of a copy only if its message is purged.
	exportNotifications = `SELECT n.seq, n.bundle, n.copy, n.id, n.message, n.channel, n.type, n.list, n.subject, n.site, n.instance, n.script, n.execution, n.parent, n.enqueued, n.created,
			CASE e.state WHEN 2 THEN e.settled END, m.seq IS NULL, coalesce(e.state, 0), e.settled, e.tried, coalesce(e.failures, 0), coalesce(e.tries, 0), coalesce(e.cycle, 0), coalesce(e.reason, ''), coalesce(e.last_error, '')
		FROM (
			SELECT *, sum(octet_length(subject)) OVER (ORDER BY seq) - octet_length(subject) AS before
			FROM (SELECT * FROM hf_notification WHERE seq > $1 ORDER BY seq LIMIT $2) AS p) AS n
		LEFT JOIN LATERAL (SELECT * FROM hf_notification_end AS h WHERE h.seq = n.seq OFFSET 0) AS e ON true
		LEFT JOIN LATERAL (SELECT seq FROM hf_message AS h WHERE h.seq = n.seq OFFSET 0) AS m ON true
		WHERE n.before < $3 ORDER BY n.seq`

	// importDelivered writes, for delivered messages that still exist, what their settlement would
	// have written.
	importDelivered = `INSERT INTO hf_notification_end (seq, site, state, settled, failures, tries, cycle, last_error, tried)
		SELECT f.seq, n.site, 2, n.delivered, f.failures, f.tries, f.cycle,
			(SELECT e.error FROM hf_entry AS e WHERE e.message = f.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1), n.delivered
		FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS n (seq, site, delivered)
		CROSS JOIN LATERAL (SELECT * FROM hf_final AS h WHERE h.seq = n.seq OFFSET 0) AS f`

	// importNumbers makes new rows get numbers above all copied ones.
	importNumbers = `SELECT setval('hf_seq'::regclass, greatest($1::bigint, $2, 1)), setval(pg_get_serial_sequence('hf_entry', 'seq')::regclass, greatest($3::bigint, 1))`
	// importBundled does the same for bundles, which may have had numbers of their own in the other
	// store, and for records of messages that are gone.
	importBundled = `SELECT setval('hf_seq'::regclass, greatest(coalesce(pg_sequence_last_value('hf_seq'::regclass), 1), (SELECT max(seq) FROM hf_bundle), (SELECT max(seq) FROM hf_operation)))`
	importBook    = `INSERT INTO hf_meta (key, value) VALUES ('book', $1::bigint::text) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	importLanes   = `SELECT lane FROM hf_lane ORDER BY lane`
	analyze       = `ANALYZE hf_bundle, hf_message, hf_queue, hf_final, hf_entry, hf_inbox, hf_inbox_body, hf_notification, hf_notification_end, hf_target, hf_operation`
	importLeaps   = `UPDATE hf_clock SET leaps = $1`
)
