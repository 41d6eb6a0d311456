package sqlite

import "github.com/holdfast-mq/holdfast/notify"

// query numbers the SQL texts of the readers, which database/sql prepares on demand. plan_test.go
// checks every plan, as it does for the statements.
type query int

const (
	getRecord query = iota
	getHistory
	listRecords
	listTexts
	messageFrom
	listWindow
	listTop
	listParked
	listExpired
	listDiscarded
	listWaiting
	laneOf
	overdue
	laneNames
	expirable
	expirableAside
	purgeable
	forgettable
	knownID
	keptAll
	keptOf
	sourcesOf
	laneFaults
	laneDecisions
	countPending
	countParked
	countExpired
	countKept
	countInbox
	lastInstant
	notesRead
	pastOperation
	getFollower
	eventsAfter
	unreadSince
	changeMark
	storeIncarnation
	waitingLanes
	someParked
	checkedMessages
	checkedInbox
	wrongNames
	rootPages
	rowIDTables
	schemaTexts
	walkNotifications
	walkWaiting
	notificationFrom
	readNotifications
	getNotification
	notificationSites
	getNotificationText
	targetsOf
	targetsOfSeq
	waitingBySite
	deliveredBySite
	pastDelivered
	pastGone
	queryCount
)

// recordColumns are the columns that a Record needs besides its history and payload.
const recordColumns = `m.seq, m.id, m.state, m.reason, m.failures, m.tries, m.cycle, m.created, m.due, m.expires, m.settled, m.okey, m.force, m.blocked, m.given_up,
	r.source, r.kind, r.endpoint, l.destination, ` + sizeOf + `, b.headers, b.corr, b.retry, b.ttl,
	` + lastError + `, ` + lastCode + `, ` + lastTry + `, ` + lasts

// For hf_message AS m: its last error, the code of that, and its last attempt.
const (
	lastError = `(SELECT e.error FROM hf_entry AS e WHERE e.message = m.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1)`
	lastCode  = `(SELECT e.code FROM hf_entry AS e WHERE e.message = m.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1)`
	lastTry   = `(SELECT e.at FROM hf_entry AS e WHERE e.message = m.seq AND e.kind = 2 ORDER BY e.seq DESC LIMIT 1)`
)

// walkColumns are the columns that notify.Query filters by. notificationColumns are all columns of
// a copy. While there is a message, the copy's state is the message's.
const (
	walkColumns = `n.seq, n.created, n.channel, n.list, n.type, n.site, n.script, n.subject, coalesce(m.state, n.state), coalesce(m.tries, n.tries)`

	notificationColumns = walkColumns + `, n.id, n.message, n.instance, n.execution, n.parent, n.enqueued,
	m.id IS NOT NULL, coalesce(m.settled, n.settled), coalesce(m.failures, n.failures), coalesce(m.cycle, n.cycle), coalesce(m.reason, n.reason),
	coalesce(` + lastError + `, n.last_error), coalesce(` + lastTry + `, n.tried), CASE WHEN m.state = 0 AND m.blocked = 0 THEN m.due END, m.state = 0 AND m.given_up = 1`

	notificationTables = ` FROM hf_notification AS n LEFT JOIN hf_message AS m ON m.seq = n.seq`
)

const targetColumns = `t.channel, t.address, t.name, t.result, t.code, t.text, t.receipt, t.maybe, t.attempts, t.cycle, t.server, t.tls, t.truncated, t.at`

const recordTables = ` FROM hf_message AS m JOIN hf_route AS r ON r.route = m.route JOIN hf_lane AS l ON l.lane = m.lane JOIN hf_body AS b ON b.seq = m.seq`

// eventColumns are the columns that readEvent reads, of hf_entry AS e.
const eventColumns = `e.seq, e.kind, e.state, e.at, e.cycle, e.attempt, e.outcome, e.charged, e.maybe, e.took, e.reason, e.code, e.error, e.actor`

// byAll is the last entry that every follower has read.
const byAll = `SELECT coalesce(min(cursor), 9223372036854775807) FROM hf_follower`

// ofAside is the WHERE term of the index on rows that nobody tries.
const ofAside = ` AND state IN (1, 3, 4, 5)`

// listAside lists rows before ?1, newest first, of the lane ?2 or, if that is NULL, of all lanes.
const listAside = ofAside + ` AND seq < ?1 AND (?2 IS NULL OR lane = ?2) ORDER BY seq DESC LIMIT ?3`

const keptColumns = `SELECT x.seq, x.id, s.name, x.endpoint, x.received, b.kind, b.payload, b.headers, b.corr, b.hash FROM hf_inbox AS x
	JOIN hf_source AS s ON s.source = x.source JOIN hf_inbox_body AS b ON b.seq = x.seq WHERE x.kept = 1 AND x.seq > ?1`

var queries = append((&[queryCount]string{ //nolint:gochecknoglobals // constant texts
	getRecord:  `SELECT ` + payloadOf + `, ` + recordColumns + recordTables + ` WHERE m.id = ?1`,
	getHistory: `SELECT * FROM (SELECT ` + eventColumns + ` FROM hf_entry AS e WHERE e.message = ?1 AND e.kind < 8 ORDER BY e.seq DESC LIMIT ?2) ORDER BY 1`,

	// A list first finds the rows that it shows.
	listRecords: `SELECT ` + recordColumns + recordTables + ` WHERE m.seq IN (SELECT value FROM json_each(?1)) ORDER BY m.seq DESC`,
	listTexts:   `SELECT b.seq, substr(` + payloadOf + `, 1, 65536) FROM hf_body AS b WHERE b.seq IN (SELECT value FROM json_each(?1))`,
	messageFrom: `SELECT seq, created FROM hf_message WHERE seq >= ?1 ORDER BY seq LIMIT 1`,
	listWindow:  `SELECT seq, state FROM hf_message WHERE seq < ?1 AND seq >= ?2 AND (?3 IS NULL OR lane = ?3) ORDER BY seq DESC`,
	listTop:     `SELECT max(seq) FROM hf_message WHERE seq < ?1`,

	listParked:    `SELECT seq FROM hf_message WHERE state = 3` + listAside,
	listExpired:   `SELECT seq FROM hf_message WHERE state = 4` + listAside,
	listDiscarded: `SELECT seq FROM hf_message WHERE state = 5` + listAside,
	listWaiting:   `SELECT seq FROM hf_message WHERE state = 0 AND (?1 IS NULL OR lane = ?1)`,
	laneNames:     `SELECT destination FROM hf_lane`,
	laneOf:        `SELECT lane FROM hf_lane WHERE destination = ?1`,
	overdue: `SELECT l.destination, (SELECT due FROM hf_message WHERE lane = l.lane AND state = 0 ORDER BY due LIMIT 1) AS first
		FROM hf_lane AS l WHERE first <= ?1`,

	// Rows that wait for their key without an expiry all have the same due time. Pages could not
	// tell them apart.
	expirable: `SELECT lane, due, seq, expires, CASE WHEN expires <= ?5 THEN ` + lasts + ` END FROM hf_message AS m WHERE state = 0 AND (lane, due, seq) > (?1, ?2, ?3)
		AND due != 9223372036854775807 ORDER BY lane, due, seq LIMIT ?4`,
	expirableAside: `SELECT lane, due, seq, expires, CASE WHEN expires <= ?3 THEN ` + lasts + ` END FROM hf_message AS m WHERE state = 3` + ofAside + ` AND seq > ?1 ORDER BY seq LIMIT ?2`,
	purgeable: `SELECT m.seq, m.state, m.created, m.settled, l.destination, m.okey FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane
		WHERE m.seq > ?1 AND m.seq < (SELECT max(seq) FROM hf_message) ORDER BY m.seq LIMIT ?2`,
	forgettable: `SELECT seq, kept, received, expires, coalesce(processed, received) FROM hf_inbox WHERE seq > ?1 AND seq < (SELECT max(seq) FROM hf_inbox)
		ORDER BY seq LIMIT ?2`,

	knownID: `SELECT x.hash, x.response, x.answer FROM hf_inbox AS x JOIN hf_source AS s ON s.source = x.source WHERE s.name = ?1 AND x.id = ?2`,
	keptAll: keptColumns + ` ORDER BY x.seq LIMIT ?2`,
	keptOf:  keptColumns + ` AND x.endpoint = ?3 ORDER BY x.seq LIMIT ?2`,

	// CROSS JOIN keeps the order: otherwise SQLite reads the whole inbox.
	sourcesOf: `SELECT s.name, x.kept FROM hf_source AS s CROSS JOIN hf_inbox AS x ON x.source = s.source AND x.id = ?1 ORDER BY s.name`,

	laneDecisions: `SELECT destination, paused, coalesce(decided_by, ''), decided FROM hf_lane WHERE decided IS NOT NULL`,

	laneFaults: `SELECT destination, fault, fault_since FROM hf_lane WHERE fault IS NOT NULL`,

	countPending: `SELECT l.destination, x.n FROM (SELECT lane, count(*) AS n FROM hf_message WHERE state = 0 GROUP BY lane) AS x
		JOIN hf_lane AS l ON l.lane = x.lane`,
	countParked: `SELECT l.destination, x.n FROM (SELECT lane, count(*) AS n FROM hf_message WHERE state = 3` + ofAside + ` GROUP BY lane) AS x
		JOIN hf_lane AS l ON l.lane = x.lane`,
	countExpired: `SELECT l.destination, x.n FROM (SELECT lane, count(*) AS n FROM hf_message WHERE state = 4` + ofAside + ` GROUP BY lane) AS x
		JOIN hf_lane AS l ON l.lane = x.lane`,
	countKept:  `SELECT count(*) FROM hf_inbox WHERE kept = 1`,
	countInbox: `SELECT count(*) FROM hf_inbox`,

	// Runs once, when the file is opened.
	lastInstant: `SELECT max(coalesce((SELECT created FROM hf_message ORDER BY seq DESC LIMIT 1), 0),
		coalesce((SELECT at FROM hf_entry ORDER BY seq DESC LIMIT 1), 0),
		coalesce((SELECT received FROM hf_inbox ORDER BY seq DESC LIMIT 1), 0))`,
	pastOperation: `SELECT 1 FROM hf_operation WHERE settled < ?1 LIMIT 1`,
	notesRead:     `SELECT 1 FROM hf_entry WHERE message IS NULL AND seq <= (` + byAll + `) LIMIT 1`,
	getFollower:   `SELECT cursor FROM hf_follower WHERE name = ?1`,
	unreadSince: `SELECT name, (SELECT e.at FROM hf_entry AS e WHERE e.seq > cursor
		AND (e.message IS NULL OR EXISTS (SELECT 1 FROM hf_message AS m WHERE m.seq = e.message)) ORDER BY e.seq LIMIT 1) FROM hf_follower ORDER BY name`,
	eventsAfter: `SELECT ` + eventColumns + `, coalesce(m.id, e.id), l.destination, e.subject, e.detail, r.source, r.kind, r.endpoint, b.headers, b.corr, CASE WHEN ?3 THEN m.created END FROM hf_entry AS e
		LEFT JOIN hf_message AS m ON m.seq = e.message LEFT JOIN hf_lane AS l ON l.lane = m.lane
		LEFT JOIN hf_route AS r ON ?3 AND r.route = m.route LEFT JOIN hf_body AS b ON ?3 AND b.seq = m.seq
		WHERE e.seq > ?1 AND (e.message IS NULL OR m.seq IS NOT NULL) ORDER BY e.seq LIMIT ?2`,

	// Every change moves one of these values, except a claim and a purge of delivered messages.
	changeMark: `SELECT (SELECT value FROM hf_meta WHERE key = 'incarnation'),
		(SELECT max(seq) FROM hf_message), (SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'hf_entry'), (SELECT max(seq) FROM hf_inbox),
		(SELECT count(*) FROM hf_message WHERE state = 0) + (SELECT count(*) FROM hf_message WHERE state = 1` + ofAside + `),
		(SELECT count(*) FROM hf_message WHERE state IN (3, 4, 5)` + ofAside + `), (SELECT count(*) FROM hf_inbox WHERE kept = 1),
		(SELECT group_concat(name || ' ' || created) FROM hf_token), (SELECT group_concat(name || ' ' || changed || ' ' || coalesce(disabled, '')) FROM hf_person), (SELECT group_concat(name || ' ' || cursor) FROM hf_follower),
		(SELECT value FROM hf_meta WHERE key = 'book'), (SELECT group_concat(lane || ' ' || decided) FROM hf_lane WHERE decided IS NOT NULL)`,

	storeIncarnation: `SELECT value FROM hf_meta WHERE key = 'incarnation'`,

	// There can be millions, and the caller wants an answer soon.
	someParked: `SELECT l.destination, count(*) FROM (SELECT lane FROM hf_message WHERE state = 3` + ofAside + ` ORDER BY seq DESC LIMIT 100000) AS x
		JOIN hf_lane AS l ON l.lane = x.lane GROUP BY x.lane`,
	waitingLanes: `SELECT destination FROM hf_lane AS l WHERE EXISTS (SELECT 1 FROM hf_message WHERE lane = l.lane AND state = 0)
		ORDER BY destination`,

	checkedMessages: `SELECT m.seq, m.id, m.state, r.source, r.kind, r.endpoint, l.destination, m.okey, ` + payloadOf + `, b.headers, b.corr, b.retry, b.ttl, b.hash,
		(SELECT x.seq FROM hf_message AS x WHERE x.id = m.id),
		CASE m.state
			WHEN 0 THEN (SELECT x.seq FROM hf_message AS x INDEXED BY hf_message_due WHERE x.state = 0 AND x.lane = m.lane AND x.due = m.due AND x.seq = m.seq)
			WHEN 2 THEN m.seq
			ELSE (SELECT x.seq FROM hf_message AS x INDEXED BY hf_message_aside WHERE x.state = m.state AND x.seq = m.seq AND x.lane = m.lane AND x.state IN (1, 3, 4, 5)) END,
		CASE WHEN m.okey IS NULL OR m.state IN (2, 4, 5) THEN m.seq
			ELSE (SELECT x.seq FROM hf_message AS x INDEXED BY hf_message_key WHERE x.lane = m.lane AND x.state = m.state AND x.blocked = m.blocked AND x.okey = m.okey
				AND x.seq = m.seq AND x.okey IS NOT NULL AND x.state IN (0, 1, 3)) END, m.reason, b.seq
		FROM hf_message AS m LEFT JOIN hf_route AS r ON r.route = m.route LEFT JOIN hf_lane AS l ON l.lane = r.lane LEFT JOIN hf_body AS b ON b.seq = m.seq
		WHERE m.seq > ?1 ORDER BY m.seq LIMIT ?2`,
	checkedInbox: `SELECT x.seq, (SELECT y.seq FROM hf_inbox AS y WHERE y.source = x.source AND y.id = x.id),
		CASE x.kept WHEN 0 THEN x.seq ELSE (SELECT y.seq FROM hf_inbox AS y INDEXED BY hf_inbox_kept WHERE y.kept = 1 AND y.seq = x.seq) END,
		x.kept, s.name, x.id, x.endpoint, b.kind, b.payload, b.headers, b.corr, b.hash, x.response, x.answer
		FROM hf_inbox AS x LEFT JOIN hf_source AS s ON s.source = x.source LEFT JOIN hf_inbox_body AS b ON b.seq = x.seq AND x.kept = 1
		WHERE x.seq > ?1 ORDER BY x.seq LIMIT ?2`,

	// Names are in their table and in an index, and each must lead to the other. NOT INDEXED keeps
	// SQLite from reading the index alone. There are thousands of names at most.
	wrongNames: `SELECT 'destination', destination FROM hf_lane AS l NOT INDEXED WHERE (SELECT x.lane FROM hf_lane AS x WHERE x.destination = l.destination) IS NOT l.lane
		UNION ALL SELECT 'sender', name FROM hf_source AS s NOT INDEXED WHERE (SELECT x.source FROM hf_source AS x WHERE x.name = s.name) IS NOT s.source
		UNION ALL SELECT 'endpoint', endpoint FROM hf_route AS r NOT INDEXED WHERE
			(SELECT x.route FROM hf_route AS x WHERE x.lane = r.lane AND x.source = r.source AND x.kind = r.kind AND x.endpoint = r.endpoint) IS NOT r.route
		UNION ALL SELECT 'destination', destination FROM hf_lane AS l INDEXED BY sqlite_autoindex_hf_lane_1
			WHERE NOT EXISTS (SELECT 1 FROM hf_lane AS x NOT INDEXED WHERE x.lane = l.lane)
		UNION ALL SELECT 'sender', name FROM hf_source AS s INDEXED BY sqlite_autoindex_hf_source_1
			WHERE NOT EXISTS (SELECT 1 FROM hf_source AS x NOT INDEXED WHERE x.source = s.source)
		UNION ALL SELECT 'endpoint', endpoint FROM hf_route AS r INDEXED BY sqlite_autoindex_hf_route_1
			WHERE NOT EXISTS (SELECT 1 FROM hf_route AS x NOT INDEXED WHERE x.route = r.route)`,

	// Notifications: most are delivered, and those are not in the index hf_notification_rest.
	walkNotifications: `SELECT ` + walkColumns + notificationTables + ` WHERE n.seq < ?1 ORDER BY n.seq DESC LIMIT ?2`,
	walkWaiting: `SELECT ` + walkColumns + ` FROM hf_notification AS n INDEXED BY hf_notification_rest LEFT JOIN hf_message AS m ON m.seq = n.seq
		WHERE n.delivered IS NULL AND n.seq < ?1 ORDER BY n.seq DESC LIMIT ?2`,
	notificationFrom:  `SELECT seq, created FROM hf_notification WHERE seq >= ?1 ORDER BY seq LIMIT 1`,
	readNotifications: `SELECT ` + notificationColumns + notificationTables + ` WHERE n.seq IN (SELECT value FROM json_each(?1)) ORDER BY n.seq DESC`,
	getNotification:   `SELECT ` + notificationColumns + notificationTables + ` WHERE n.seq IN (` + copiesOf + `) AND n.bundle = ?1 ORDER BY n.seq`,
	notificationSites: `SELECT source FROM hf_bundle WHERE id = ?1 AND kind = '` + notify.BundleKind + `' ORDER BY source`,
	// A salvage marks a text that may differ from what was accepted: then the first message has no
	// hash.
	getNotificationText: `SELECT b.seq, CASE WHEN NOT EXISTS (SELECT 1 FROM hf_body AS f WHERE f.seq = b.first AND f.hash IS NULL) THEN b.payload END
		FROM hf_bundle AS b WHERE b.id = ?1 AND b.kind = '` + notify.BundleKind + `' AND b.source = ?2`,
	targetsOf:    `SELECT ` + targetColumns + ` FROM hf_target AS t WHERE t.seq = (SELECT seq FROM hf_message WHERE id = ?1) ORDER BY t.channel, t.address`,
	targetsOfSeq: `SELECT ` + targetColumns + ` FROM hf_target AS t WHERE t.seq = ?1 ORDER BY t.channel, t.address`,
	waitingBySite: `SELECT n.site, sum(m.state IN (0, 1)), sum(m.state IN (0, 1) AND n.created < ?1), sum(m.state IN (3, 4)), min(CASE WHEN m.state IN (0, 1) THEN n.created END)
		FROM hf_notification AS n INDEXED BY hf_notification_rest CROSS JOIN hf_message AS m ON m.seq = n.seq WHERE n.delivered IS NULL GROUP BY n.site`,
	deliveredBySite: `SELECT site, count(*) FROM hf_notification WHERE delivered > ?1 GROUP BY site`,
	pastDelivered: `SELECT delivered, seq, bundle FROM hf_notification WHERE delivered IS NOT NULL AND delivered < ?1 AND (delivered, seq) > (?2, ?3)
		ORDER BY delivered, seq LIMIT ?4`,
	pastGone: `SELECT settled, seq, bundle FROM hf_notification WHERE delivered IS NULL AND state IS NOT NULL AND settled < ?1 AND (settled, seq) > (?2, ?3)
		ORDER BY settled, seq LIMIT ?4`,

	rootPages:   `SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0`,
	rowIDTables: `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0`,
	// What others have added to our tables is their own.
	schemaTexts: `SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name LIKE 'hf\_%' ESCAPE '\' OR name LIKE 'sqlite\_autoindex\_hf\_%' ESCAPE '\'`,
})[:], rowQueries()...)
