package postgres

// Notifications: notify_targets.go, notify_list.go, notify_kpis.go.

const (
	// notificationRow names columns in the order of noteColumns.
	notificationRow = `seq, bundle, copy, id, message, channel, type, list, subject, site, instance, script, execution, parent, enqueued`

	// noteDelivered is part of a settlement: it stores the final state of delivered notifications.
	// It is left out if no lane belongs to a channel.
	noteDelivered = `,
		note AS (
			INSERT INTO hf_notification_end (seq, site, state, settled, failures, tries, cycle, last_error, tried)
			SELECT g.seq, n.site, 2, now.t, g.failures + g.charged::integer, g.tries, g.cycle,
				(SELECT e.error FROM hf_entry AS e WHERE e.message = g.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1), now.t
			FROM now, gone AS g CROSS JOIN LATERAL (SELECT site FROM hf_notification AS h WHERE h.seq = g.seq OFFSET 0) AS n
			ON CONFLICT (seq) DO NOTHING)`

	// notificationStands finds the state of a copy, hf_notification AS n: in one of two tables
	// while its message exists, and in the third after that.
	notificationStands = ` LEFT JOIN LATERAL (SELECT * FROM hf_queue AS h WHERE h.seq = n.seq OFFSET 0) AS q ON true
		LEFT JOIN LATERAL (SELECT * FROM hf_final AS h WHERE h.seq = n.seq OFFSET 0) AS f ON true
		LEFT JOIN LATERAL (SELECT * FROM hf_notification_end AS h WHERE h.seq = n.seq OFFSET 0) AS e ON true`
	// walkColumns are the columns that notify.Query filters by.
	walkColumns = `n.seq, n.created, n.channel, n.list, n.type, n.site, n.script, n.subject,
		CASE WHEN q.seq IS NULL THEN coalesce(f.state, e.state, 0) ELSE 0 END, coalesce(q.tries, f.tries, e.tries, 0)`
	notificationColumns = walkColumns + `, n.id, n.message, n.instance, n.execution, n.parent, coalesce(n.enqueued, 0),
		q.seq IS NOT NULL OR f.seq IS NOT NULL, coalesce(f.settled, CASE WHEN q.seq IS NULL THEN e.settled END, 0),
		coalesce(q.failures, f.failures, e.failures, 0), coalesce(q.cycle, f.cycle, e.cycle, 0), coalesce(f.reason, e.reason, ''),
		coalesce((SELECT v.error FROM hf_entry AS v WHERE v.message = n.seq AND v.error IS NOT NULL ORDER BY v.seq DESC LIMIT 1), e.last_error, ''),
		coalesce((SELECT v.at FROM hf_entry AS v WHERE v.message = n.seq AND v.kind = 2 ORDER BY v.seq DESC LIMIT 1), e.tried, 0),
		CASE WHEN q.owner IS NULL AND q.blocked = 0 THEN q.due ELSE 0 END, coalesce(q.given_up, false), now.t`
	walkNotifications = `WITH now AS MATERIALIZED (SELECT hf_now() AS t)
		SELECT ` + walkColumns + `, n.seq, now.t FROM now, (SELECT * FROM hf_notification WHERE seq < $1 ORDER BY seq DESC LIMIT $2) AS n` + notificationStands + `
		ORDER BY n.seq DESC`
	// walkWaiting goes through undelivered notifications. Each part of it has a table or an index.
	// Some rows belong to messages without a notification.
	walkWaiting = `WITH now AS MATERIALIZED (SELECT hf_now() AS t),
		page AS MATERIALIZED (
			SELECT seq FROM (
				(SELECT seq FROM hf_queue WHERE seq < $1 ORDER BY seq DESC LIMIT $2)
				UNION ALL (SELECT seq FROM hf_final AS f WHERE f.state IN (3, 4, 5) AND f.lane > 0 AND (f.state, f.seq) < (3, $1) AND f.state >= 3 ORDER BY f.state DESC, f.seq DESC LIMIT $2)
				UNION ALL (SELECT seq FROM hf_final AS f WHERE f.state IN (3, 4, 5) AND f.lane > 0 AND (f.state, f.seq) < (4, $1) AND f.state >= 4 ORDER BY f.state DESC, f.seq DESC LIMIT $2)
				UNION ALL (SELECT seq FROM hf_final AS f WHERE f.state IN (3, 4, 5) AND f.lane > 0 AND (f.state, f.seq) < (5, $1) AND f.state >= 5 ORDER BY f.state DESC, f.seq DESC LIMIT $2)
				UNION ALL (SELECT seq FROM hf_notification_end AS e WHERE e.state > 2 AND e.seq < $1 ORDER BY e.seq DESC LIMIT $2)) AS x
			ORDER BY seq DESC LIMIT $2)
		SELECT coalesce(n.seq, 0), coalesce(n.created, 0), coalesce(n.channel, ''), coalesce(n.list, ''), coalesce(n.type, ''), coalesce(n.site, ''), coalesce(n.script, ''), coalesce(n.subject, ''),
			CASE WHEN q.seq IS NULL THEN coalesce(f.state, e.state, 0) ELSE 0 END, coalesce(q.tries, f.tries, e.tries, 0), p.seq, now.t
		FROM now, page AS p LEFT JOIN LATERAL (SELECT * FROM hf_notification AS h WHERE h.seq = p.seq OFFSET 0) AS n ON true` + notificationStands + `
		ORDER BY p.seq DESC`
	notificationFrom  = `SELECT seq, created FROM hf_notification WHERE seq >= $1 ORDER BY seq LIMIT 1`
	readNotifications = `WITH now AS MATERIALIZED (SELECT hf_now() AS t) SELECT ` + notificationColumns + ` FROM now, hf_notification AS n` + notificationStands + ` WHERE n.seq = ANY ($1::bigint[]) ORDER BY n.seq DESC`
	getNotification   = `WITH now AS MATERIALIZED (SELECT hf_now() AS t) SELECT ` + notificationColumns + ` FROM now, hf_bundle AS b
		CROSS JOIN LATERAL (` + copiesOf + `) AS c CROSS JOIN LATERAL (SELECT * FROM hf_notification AS h WHERE h.seq = c.seq OFFSET 0) AS n` + notificationStands + notificationNamed + ` ORDER BY n.copy`
	getNotificationBody = `SELECT b.payload FROM hf_bundle AS b` + notificationNamed
	notificationSites   = `SELECT source FROM hf_bundle WHERE id = $1 AND kind = 'notification' ORDER BY source`
	// copiesOf returns the numbers of the copies of hf_bundle AS b.
	copiesOf = `SELECT b.first AS seq UNION ALL SELECT h.seq FROM hf_notification AS h WHERE h.bundle = b.seq AND h.copy > 0`
	// notificationNamed finds the bundle of a notification.
	notificationNamed = ` WHERE b.id = $1 AND b.kind = 'notification' AND b.source = $2`

	targetColumns = `t.channel, t.address, t.name, t.result, t.code, t.text, t.receipt, t.maybe, t.attempts, t.cycle, t.server, t.tls, t.truncated, t.at`
	targetsOf     = `SELECT ` + targetColumns + ` FROM hf_target AS t WHERE t.seq = (SELECT seq FROM hf_message WHERE id = $1) ORDER BY t.channel, t.address`
	targetsOfSeq  = `SELECT ` + targetColumns + ` FROM hf_target AS t WHERE t.seq = $1 ORDER BY t.channel, t.address`
	findSeqs      = `SELECT id, seq, EXISTS (SELECT FROM hf_follower) FROM hf_message WHERE id = ANY ($1::bytea[])`
	// noteTargets tells followers of the journal about the targets that were just written.
	noteTargets = `INSERT INTO hf_entry (message, kind, at, cycle, attempt, outcome, code, subject, detail)
		SELECT t.seq, 8, t.at, t.cycle, t.attempts, CASE t.result WHEN 1 THEN 5 WHEN 2 THEN 0 WHEN 3 THEN 1 ELSE 4 END, nullif(t.code, ''), t.address, json_strip_nulls(json_build_object('channel', t.channel, 'answer', coalesce(nullif(t.text, ''), nullif(t.receipt, ''))))::text
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS i (seq, channel, address, result, attempts)
		CROSS JOIN LATERAL (SELECT * FROM hf_target AS h WHERE h.seq = i.seq AND h.channel = i.channel AND h.address = i.address OFFSET 0) AS t
		WHERE t.result = i.result AND t.attempts = i.attempts`
)

// The numbers of NO-17. The lanes of channels have a prefix in their names.
const (
	ofChannelLanes = ` WHERE l.destination >= 'channel:' AND l.destination < 'channel;' GROUP BY n.site`
	waitingBySite  = `WITH now AS MATERIALIZED (SELECT hf_now() AS t)
		SELECT n.site, count(*), count(*) FILTER (WHERE n.created < now.t - $1::bigint), max(now.t - n.created) FROM now, hf_lane AS l
		CROSS JOIN LATERAL (SELECT seq FROM hf_queue AS h WHERE h.lane = l.lane AND h.lane > 0 OFFSET 0) AS q
		CROSS JOIN LATERAL (SELECT site, created FROM hf_notification AS h WHERE h.seq = q.seq OFFSET 0) AS n` + ofChannelLanes
	parkedBySite = `SELECT n.site, count(*) FROM hf_lane AS l
		CROSS JOIN LATERAL (SELECT seq FROM hf_final AS h WHERE h.lane = l.lane AND h.state IN (3, 4) AND h.state IN (3, 4, 5) AND h.lane >= 0 OFFSET 0) AS f
		CROSS JOIN LATERAL (SELECT site FROM hf_notification AS h WHERE h.seq = f.seq OFFSET 0) AS n` + ofChannelLanes
	deliveredBySite = `SELECT site, count(*) FROM hf_notification_end AS e WHERE e.settled > (SELECT hf_now()) - $1::bigint AND e.settled > 0 AND e.state = 2 GROUP BY site`
)

// Retention of notifications. Their messages may have been gone for long.
const (
	pastNotifications = `SELECT e.settled, e.seq, n.bundle FROM hf_notification_end AS e
		CROSS JOIN LATERAL (SELECT bundle FROM hf_notification AS h WHERE h.seq = e.seq OFFSET 0) AS n
		WHERE e.settled < $1 AND e.settled > 0 AND (e.settled, e.seq) > ($2, $3) ORDER BY e.settled, e.seq LIMIT $4`
	// purgeNotifications skips bundles with a copy that is younger, or whose message still exists.
	purgeNotifications = `WITH old AS MATERIALIZED (
			SELECT b.seq, b.first FROM unnest($1::bigint[]) AS i (bundle)
			CROSS JOIN LATERAL (SELECT seq, first FROM hf_bundle AS h WHERE h.seq = i.bundle OFFSET 0) AS b
			WHERE NOT EXISTS (
				SELECT FROM (` + copiesOf + ` OFFSET 0) AS n
				LEFT JOIN LATERAL (SELECT settled FROM hf_notification_end AS h WHERE h.seq = n.seq OFFSET 0) AS e ON true
				LEFT JOIN LATERAL (SELECT seq FROM hf_message AS h WHERE h.seq = n.seq OFFSET 0) AS m ON true
				WHERE e.settled IS NULL OR e.settled >= $2::bigint OR m.seq IS NOT NULL)),
		gone AS (DELETE FROM hf_notification AS n WHERE n.seq = ANY (ARRAY (SELECT c.seq FROM old AS b CROSS JOIN LATERAL (` + copiesOf + ` OFFSET 0) AS c)) RETURNING seq),
		parent AS (DELETE FROM hf_bundle AS b WHERE b.seq = ANY (ARRAY (SELECT seq FROM old))),
		ends AS (DELETE FROM hf_notification_end AS e WHERE e.seq = ANY (ARRAY (SELECT seq FROM gone))),
		target AS (DELETE FROM hf_target AS t WHERE t.seq = ANY (ARRAY (SELECT seq FROM gone)))
		SELECT count(*) FROM gone`
)
