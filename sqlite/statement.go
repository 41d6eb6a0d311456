package sqlite

import "github.com/holdfast-mq/holdfast"

// statement numbers the SQL texts that are kept prepared.
type statement int

const (
	beginImmediate statement = iota
	commitNow
	rollbackNow
	beginProbe
	getMeta
	takeLock
	fileState
	joinState
	newMessages
	newDecisions
	newInInbox
	countInboxPage
	saveHere
	backToHere
	releaseHere
	setMeta
	insertLane
	findLane
	setLaneOrder
	setLaneFault
	restoreFault
	restoreDecision
	pauseLane
	resumeLane
	insertRoute
	findRoute
	insertMessage
	insertBody
	findMessage
	findBody
	keyHead
	keyHeld
	keyNext
	keyWake
	keyBack
	setStart
	clearStart
	requeuedKeys
	keyAfter
	claimPage
	claimOne
	claimDurably
	nextDue
	settleDelivered
	settleMany
	settledAt
	settleEntries
	settlePending
	settleBack
	hastenOne
	retriesPage
	moveRetry
	settleAside
	insertEvent
	insertNote
	endedRow
	expireOne
	requeueOne
	holdOne
	heldOf
	letGo
	discardOne
	markGivenUp
	givenUpRows
	givenUpRow
	rescheduleOne
	findSource
	insertSource
	findInbox
	insertInbox
	insertInboxBody
	finishInbox
	deleteInboxBody
	readRoute
	findForOperator
	findPending
	purgeMessage
	purgeBody
	purgeEvents
	lastFailure
	purgeOperations
	purgeNotes
	addFollower
	moveFollower
	dropFollower
	lowestCursor
	lastEvent
	claimedRows
	reclaimEvents
	reclaimClaims
	forgetClaims
	purgeInbox
	setResponse
	dropResponse
	brokenRow
	brokenNames
	emptyBody
	salvageKnown
	salvageMessage
	salvageBody
	salvageInbox
	salvageEvent
	salvageSequence
	salvageFollower
	findBundle
	lastMessage
	insertBundle
	bundlePayload
	endBundle
	purgeBundle
	firstOfBundle
	endDelivery
	salvageDelivery
	insertNotification
	markDelivered
	archiveNotification
	notificationNeeded
	purgeTargets
	purgeNotification
	findSeq
	bumpBook
	insertAbove
	lastNotification
	salvageNotification
	statementCount
)

// claimColumns are the columns of a message and its body that a claim needs.
const claimColumns = `m.seq, m.id, m.route, m.due, m.expires, m.failures, m.tries, m.cycle, m.first_try, m.okey, m.force, m.blocked,
	` + payloadOf + `, b.headers, b.corr, b.retry, b.ttl, b.hash, ` + lasts + `, m.revision, b.bundle, m.created`

// lasts is for how long a message was given until its expiry. It counts from when an operator last
// began its TTL anew, if one has.
const lasts = `CASE WHEN m.cycle > 1 THEN m.expires - coalesce((SELECT max(CASE e.kind WHEN 7 THEN e.at + e.took ELSE e.at END) FROM hf_entry AS e
		WHERE e.message = m.seq AND (e.kind = 3 OR e.kind = 7 AND e.code = '` + holdfast.CodeRenewed + `')), m.created)
	ELSE (SELECT ttl FROM hf_body WHERE seq = m.seq) END`

// payloadOf and sizeOf are for hf_body AS b. They use the bundle's payload if there is a bundle,
// and are NULL if the bundle is lost.
const (
	payloadOf = `CASE WHEN b.bundle IS NULL THEN b.payload ELSE (SELECT p.payload FROM hf_bundle AS p WHERE p.seq = b.bundle) END`
	sizeOf    = `CASE WHEN b.bundle IS NULL THEN length(b.payload) ELSE (SELECT length(p.payload) FROM hf_bundle AS p WHERE p.seq = b.bundle) END`
)

// copiesOf are the numbers of the copies of the notification with bundle ?1.
const copiesOf = `SELECT first FROM hf_bundle WHERE seq = ?1 UNION ALL SELECT seq FROM hf_notification WHERE bundle = ?1 AND copy > 0`

// ofKey is the WHERE term of the index on ordering keys.
const ofKey = ` AND okey IS NOT NULL AND state IN (0, 1, 3)`

// statements are the SQL texts. The most frequent inserts have parameters without numbers, which
// bind faster: by position, not by name. A query on a partial index repeats the index's WHERE term
// word for word; otherwise SQLite would not use it. plan_test.go looks for scans and sorts in every
// plan.
var statements = append((&[statementCount]string{ //nolint:gochecknoglobals // constant texts
	beginImmediate: `BEGIN IMMEDIATE`,
	commitNow:      `COMMIT`,
	rollbackNow:    `ROLLBACK`,
	beginProbe:     `BEGIN`,

	getMeta: `SELECT value FROM hf_meta WHERE key = ?1`,
	setMeta: `INSERT INTO hf_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,

	// For the caller's own database: attach.go, start_counters.go, attach_join.go.
	takeLock: `UPDATE hf_meta SET value = value WHERE key = ''`,
	fileState: `SELECT coalesce((SELECT value FROM hf_meta WHERE key = 'epoch'), 0), coalesce((SELECT value FROM hf_meta WHERE key = 'exclusive'), 0),
		coalesce((SELECT max(seq) FROM hf_message), 0), coalesce((SELECT created FROM hf_message ORDER BY seq DESC LIMIT 1), 0),
		coalesce((SELECT max(seq) FROM hf_entry), 0), coalesce((SELECT max(seq) FROM hf_inbox), 0),
		coalesce((SELECT 1 FROM hf_follower LIMIT 1), 0), coalesce((SELECT value FROM hf_meta WHERE key = 'notify'), 0)`,
	joinState: `SELECT coalesce((SELECT value FROM hf_meta WHERE key = 'exclusive'), 0), coalesce((SELECT created FROM hf_message ORDER BY seq DESC LIMIT 1), 0),
		coalesce((SELECT 1 FROM hf_follower LIMIT 1), 0), (SELECT synchronous FROM pragma_synchronous)`,
	newMessages: `SELECT m.seq, m.lane, m.state, m.due, m.expires, m.route, l.destination, l.strict
		FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane WHERE m.seq > ?1 ORDER BY m.seq`,
	newDecisions:   `SELECT 1 FROM hf_entry WHERE seq > ?1 AND kind IN (3, 4, 7) LIMIT 1`,
	newInInbox:     `SELECT count(*), coalesce(sum(kept), 0) FROM hf_inbox WHERE seq > ?1`,
	countInboxPage: `SELECT count(*), coalesce(sum(kept), 0) FROM hf_inbox WHERE seq > ?1 AND seq <= ?2`,

	// For parts of a transaction that can be undone alone.
	saveHere:    `SAVEPOINT hf_here`,
	backToHere:  `ROLLBACK TO hf_here`,
	releaseHere: `RELEASE hf_here`,

	insertLane:      `INSERT INTO hf_lane (destination) VALUES (?1) ON CONFLICT (destination) DO NOTHING`,
	findLane:        `SELECT lane, strict FROM hf_lane WHERE destination = ?1`,
	setLaneOrder:    `UPDATE hf_lane SET strict = ?2 WHERE lane = ?1`,
	setLaneFault:    `UPDATE hf_lane SET fault = ?2, fault_since = ?3 WHERE lane = ?1`,
	restoreFault:    `UPDATE hf_lane SET fault = ?2, fault_since = ?3 WHERE lane = ?1 AND fault IS NULL`,
	restoreDecision: `UPDATE hf_lane SET paused = ?2, decided = ?3, decided_by = ?4 WHERE lane = ?1 AND (decided IS NULL OR decided < ?3)`,
	pauseLane:       `UPDATE hf_lane SET paused = 1, decided = ?2, decided_by = ?3 WHERE lane = ?1 AND paused = 0`,
	resumeLane:      `UPDATE hf_lane SET paused = 0, decided = ?2, decided_by = ?3, fault = NULL, fault_since = NULL WHERE lane = ?1`,

	insertRoute: `INSERT INTO hf_route (lane, source, kind, endpoint) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`,
	findRoute:   `SELECT route FROM hf_route WHERE lane = ?1 AND source = ?2 AND kind = ?3 AND endpoint = ?4`,

	insertMessage: `INSERT INTO hf_message (id, route, lane, due, created, expires, okey, blocked)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
	// insertAbove skips the numbers up to ?9.
	insertAbove: `INSERT INTO hf_message (seq, id, route, lane, due, created, expires, okey, blocked)
		VALUES (1 + max(?9, coalesce((SELECT max(seq) FROM hf_message), 0)), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING`,
	insertBody: `INSERT INTO hf_body (seq, bundle, payload, headers, corr, retry, ttl, start, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	findMessage: `SELECT m.seq, m.lane, m.state, r.source, r.kind, r.endpoint
		FROM hf_message AS m JOIN hf_route AS r ON r.route = m.route WHERE m.id = ?1`,
	findBody: `SELECT ` + payloadOf + `, b.hash FROM hf_body AS b WHERE b.seq = ?1`,

	keyHead: `SELECT seq, state, due, expires FROM hf_message WHERE lane = ?1 AND state IN (0, 1) AND blocked = 0 AND okey = ?2` + ofKey + ` LIMIT 1`,
	keyHeld: `SELECT 1 FROM hf_message WHERE lane = ?1 AND state = 3 AND blocked = 0 AND okey = ?2 AND seq < ?3` + ofKey + ` LIMIT 1`,
	keyNext: `SELECT m.seq, m.expires, b.start FROM hf_message AS m JOIN hf_body AS b ON b.seq = m.seq
		WHERE m.lane = ?1 AND m.state = 0 AND m.blocked = 1 AND m.okey = ?2 AND m.okey IS NOT NULL AND m.state IN (0, 1, 3) ORDER BY m.seq LIMIT 1`,
	keyWake:  `UPDATE hf_message SET blocked = 0, due = ?2 WHERE seq = ?1 AND state = 0 AND blocked = 1`,
	keyBack:  `UPDATE hf_message SET blocked = 1, due = ?2 WHERE seq = ?1 AND state = 0 AND blocked = 0`,
	setStart: `UPDATE hf_body SET start = ?2 WHERE seq = ?1`,
	// A body may be large, so it is rewritten only if that changes something.
	clearStart: `UPDATE hf_body SET start = NULL WHERE seq = ?1 AND start IS NOT NULL`,
	requeuedKeys: `SELECT l.destination, m.okey FROM hf_entry AS e JOIN hf_message AS m ON m.seq = e.message JOIN hf_lane AS l ON l.lane = m.lane
		WHERE e.seq > ?1 AND e.kind = 3 AND m.okey IS NOT NULL`,
	keyAfter: `SELECT okey FROM hf_message WHERE lane = ?1 AND state = 0 AND blocked = 1 AND okey > ?2` + ofKey + ` ORDER BY okey LIMIT 1`,

	claimPage: `SELECT ` + claimColumns + ` FROM hf_message AS m LEFT JOIN hf_body AS b ON b.seq = m.seq
		WHERE m.lane = ?1 AND m.state = 0 AND m.given_up = 0 AND m.due <= ?2 AND (m.due, m.seq) > (?3, ?4)
		ORDER BY m.due, m.seq LIMIT ?5`,
	claimOne: `SELECT ` + claimColumns + ` FROM hf_message AS m LEFT JOIN hf_body AS b ON b.seq = m.seq
		WHERE m.seq = ?1 AND m.state = 0 AND m.given_up = 0 AND m.blocked = 0 AND m.due <= ?2`,
	claimDurably: `UPDATE hf_message SET state = 1 WHERE seq = ?1 AND state = 0`,
	nextDue:      `SELECT due FROM hf_message WHERE lane = ?1 AND state = 0 AND due > ?2 ORDER BY due LIMIT 1`,

	settleMany: `UPDATE hf_message SET state = 2, tries = tries + 1, settled = ?1
		WHERE state = 0 AND seq IN (SELECT value FROM json_each(?2))`,
	settledAt: `SELECT seq FROM hf_message WHERE state = 2 AND settled = ?1 AND seq IN (SELECT value FROM json_each(?2))`,
	// settleEntries writes the entries of the messages that settleMany has settled: those with this
	// very instant. ?2 has how long each attempt took.
	settleEntries: `INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, maybe, took)
		SELECT m.seq, 2, 2, m.settled, m.cycle, m.tries, 5, 0, 0, json_each.value FROM json_each(?2) CROSS JOIN hf_message AS m
		WHERE m.seq = CAST(json_each.key AS INTEGER) AND m.state = 2 AND m.settled = ?1`,
	settleDelivered: `UPDATE hf_message SET state = 2, tries = ?3, failures = ?4, settled = ?5 WHERE seq = ?1 AND state = ?2`,
	settlePending: `UPDATE hf_message SET state = 0, tries = ?3, failures = ?4, due = CASE WHEN revision = ?7 THEN ?5 ELSE due END, first_try = coalesce(first_try, ?6)
		WHERE seq = ?1 AND state = ?2`,
	hastenOne: `UPDATE hf_message SET due = ?2 WHERE seq = ?1 AND state = 0 AND blocked = 0 AND revision = 0 AND due > ?2 AND due <= ?3`,
	retriesPage: `SELECT m.seq, m.due, m.tries, coalesce((SELECT e.at FROM hf_entry AS e WHERE e.message = m.seq AND e.kind = 2 ORDER BY e.seq DESC LIMIT 1), 0)
		FROM hf_message AS m WHERE m.lane = (SELECT lane FROM hf_lane WHERE destination = ?1) AND m.state = 0 AND (m.due, m.seq) > (?2, ?3)
		AND m.due < 4611686018427387904 AND m.tries > 0 AND m.blocked = 0 AND m.revision = 0 ORDER BY m.due, m.seq LIMIT ?4`,
	moveRetry:  `UPDATE hf_message SET due = min(?3, coalesce(expires, ?3)) WHERE seq = ?1 AND state = 0 AND due = ?2`,
	settleBack: `UPDATE hf_message SET state = 0 WHERE seq = ?1 AND state = ?2`,
	settleAside: `UPDATE hf_message SET state = ?8, tries = ?3, failures = ?4, settled = ?5, first_try = coalesce(first_try, ?6), reason = ?7
		WHERE seq = ?1 AND state = ?2`,

	insertEvent: `INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, maybe, took, reason, code, error, actor)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,

	insertNote: `INSERT INTO hf_entry (message, kind, at, cycle, attempt, outcome, code, error, actor, subject, id, detail)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,

	endedRow: `SELECT m.id, r.source, r.kind, r.endpoint, b.corr, m.okey, m.reason, m.cycle, m.tries,
		e.error, e.code FROM hf_message AS m JOIN hf_route AS r ON r.route = m.route JOIN hf_body AS b ON b.seq = m.seq
		LEFT JOIN hf_entry AS e ON e.seq = (SELECT seq FROM hf_entry WHERE message = ?1 AND error IS NOT NULL ORDER BY seq DESC LIMIT 1)
		WHERE m.seq = ?1`,
	expireOne: `UPDATE hf_message SET state = 4, settled = ?3 WHERE seq = ?1 AND state = ?2`,
	requeueOne: `UPDATE hf_message SET state = 0, due = ?3, expires = ?4, failures = 0, tries = 0, cycle = cycle + 1, settled = NULL, reason = NULL,
		force = ?5, blocked = ?6, revision = 0, given_up = 0 WHERE seq = ?1 AND state = ?2`,
	// A message that is blocked by its key is due when the key is free.
	holdOne: `UPDATE hf_message SET due = 4611686018427387904 + seq WHERE seq = ?1 AND state = 0`,
	heldOf:  `SELECT seq FROM hf_message WHERE lane = ?1 AND state = 0 AND due >= 4611686018427387904 AND due < 9223372036854775807 LIMIT ?2`,
	letGo: `UPDATE hf_message SET due = CASE blocked WHEN 0 THEN ?2 ELSE coalesce(expires, 9223372036854775807) END
		WHERE seq = ?1 AND state = 0 AND due >= 4611686018427387904 AND due < 9223372036854775807`,
	discardOne:  `UPDATE hf_message SET state = 5, settled = ?3, reason = ?4, given_up = 0 WHERE seq = ?1 AND state = ?2`,
	markGivenUp: `UPDATE hf_message SET given_up = 1 WHERE seq = ?1 AND state = ?2`,
	givenUpRows: `SELECT m.seq, l.destination FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane WHERE m.given_up = 1 AND m.state IN (0, 1)`,
	givenUpRow: `SELECT m.state, m.cycle, m.tries, m.okey, l.destination,
		(SELECT e.actor FROM hf_entry AS e WHERE e.message = m.seq AND e.kind = 4 ORDER BY e.seq DESC LIMIT 1)
		FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane WHERE m.seq = ?1 AND m.given_up = 1 AND m.state IN (0, 1, 3)`,
	// A message that is blocked by its key is due at its expiry; ?4 is the expiry if it is new.
	rescheduleOne: `UPDATE hf_message SET due = CASE blocked WHEN 1 THEN coalesce(?4, due) ELSE ?3 END, expires = coalesce(?4, expires), revision = revision + 1
		WHERE seq = ?1 AND state = ?2`,

	findSource:   `SELECT source FROM hf_source WHERE name = ?1`,
	insertSource: `INSERT INTO hf_source (name) VALUES (?1) ON CONFLICT DO NOTHING`,
	findInbox:    `SELECT seq, hash, kept, response, answer FROM hf_inbox WHERE source = ?1 AND id = ?2`,
	insertInbox: `INSERT INTO hf_inbox (source, id, endpoint, hash, kept, received, processed, expires, response, answer)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, id) DO NOTHING`,
	insertInboxBody: `INSERT INTO hf_inbox_body (seq, kind, payload, headers, corr, hash) VALUES (?, ?, ?, ?, ?, ?)`,
	finishInbox: `UPDATE hf_inbox SET kept = 0, processed = ?2, response = ?3, answer = ?4, expires = max(expires, ?2 + (expires - received))
		WHERE seq = ?1 AND kept = 1`,
	purgeMessage: `DELETE FROM hf_message WHERE seq = ?1 AND state = ?2
		AND NOT EXISTS (SELECT 1 FROM hf_entry AS e WHERE e.message = ?1 AND e.seq > ?3)
		RETURNING id, route, created, settled, failures, tries, cycle, reason`,
	purgeBody:       `DELETE FROM hf_body WHERE seq = ?1 RETURNING bundle, headers, retry`,
	lastFailure:     `SELECT coalesce(` + lastError + `, ''), coalesce(` + lastCode + `, ''), ` + lastTry + ` FROM (SELECT ?1 AS seq) AS m`,
	purgeOperations: `DELETE FROM hf_operation WHERE seq IN (SELECT seq FROM hf_operation WHERE settled < ?1 ORDER BY settled LIMIT ?2)`,
	purgeEvents:     `DELETE FROM hf_entry WHERE message = ?1`,
	purgeNotes:      `DELETE FROM hf_entry WHERE seq IN (SELECT seq FROM hf_entry WHERE message IS NULL AND seq <= (` + byAll + `) ORDER BY seq LIMIT ?1)`,

	addFollower:  `INSERT INTO hf_follower (name, cursor) VALUES (?1, ?2) ON CONFLICT DO NOTHING`,
	moveFollower: `UPDATE hf_follower SET cursor = ?3 WHERE name = ?1 AND cursor = ?2`,
	dropFollower: `DELETE FROM hf_follower WHERE name = ?1`,
	lowestCursor: byAll,
	lastEvent:    `SELECT coalesce(max(seq), 0) FROM main.sqlite_sequence WHERE name = 'hf_entry'`, // the caller may have a TEMP table sqlite_sequence

	claimedRows: `SELECT m.seq, l.destination, l.lane, l.strict FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane
		WHERE m.state = 1 AND m.state IN (1, 3, 4, 5)`,
	reclaimEvents: `INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, outcome, charged, maybe, took, error)
		SELECT seq, 6, 0, ?1, cycle, tries + 1, 0, ?2, 1, 0, 'the process died during the attempt' FROM hf_message WHERE state = 1` + ofAside,
	reclaimClaims: `UPDATE hf_message SET state = 0, tries = tries + 1, failures = failures + ?2, first_try = coalesce(first_try, ?1) WHERE state = 1` + ofAside,

	forgetClaims: `UPDATE hf_message SET state = 0 WHERE state = 1` + ofAside,

	setResponse:  `UPDATE hf_inbox SET response = ?2, answer = ?3 WHERE seq = ?1`,
	dropResponse: `UPDATE hf_inbox SET response = NULL WHERE seq = ?1 AND kept = 0 AND answer IS NOT NULL`,
	purgeInbox:   `DELETE FROM hf_inbox WHERE seq = ?1 AND kept = 0 AND expires < ?2`,

	readRoute: `SELECT source, kind, endpoint FROM hf_route WHERE route = ?1`,
	findForOperator: `SELECT m.seq, m.state, m.cycle, m.tries, m.okey, l.destination, b.ttl, m.expires, m.blocked, m.given_up, ` + lasts + `
		FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane JOIN hf_body AS b ON b.seq = m.seq WHERE m.id = ?1`,
	findPending: `SELECT m.state, m.expires, m.okey, m.cycle, m.tries, l.destination, ` + lasts + `
		FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane WHERE m.seq = ?1`,
	deleteInboxBody: `DELETE FROM hf_inbox_body WHERE seq = ?1`,

	brokenRow: `SELECT m.state, m.failures, m.tries, m.cycle, m.okey, l.destination FROM hf_message AS m JOIN hf_lane AS l ON l.lane = m.lane WHERE m.seq = ?1`,
	brokenNames: `SELECT r.route, l.lane, (SELECT x.route FROM hf_route AS x WHERE x.lane = r.lane AND x.source = r.source AND x.kind = r.kind AND x.endpoint = r.endpoint),
		(SELECT y.lane FROM hf_lane AS y WHERE y.destination = l.destination)
		FROM hf_message AS m LEFT JOIN hf_route AS r ON r.route = m.route LEFT JOIN hf_lane AS l ON l.lane = r.lane WHERE m.seq = ?1`,
	emptyBody: `INSERT INTO hf_body (seq, payload) VALUES (?1, x'') ON CONFLICT DO NOTHING`,

	salvageKnown: `SELECT 1 FROM hf_message WHERE id = ?1`,
	salvageMessage: `INSERT INTO hf_message (seq, id, route, lane, state, due, created, expires, failures, tries, cycle, first_try, settled, reason, okey, blocked, force, given_up)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) ON CONFLICT DO NOTHING`,
	salvageBody: `INSERT INTO hf_body (seq, bundle, payload, headers, corr, retry, ttl, start, hash)
		VALUES (?1, (SELECT seq FROM hf_bundle WHERE seq = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9)
		ON CONFLICT (seq) DO NOTHING`,
	salvageInbox: `INSERT INTO hf_inbox (seq, source, id, endpoint, hash, kept, received, processed, expires, response, answer)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING`,
	salvageEvent: `INSERT INTO hf_entry (seq, message, kind, state, at, cycle, attempt, outcome, charged, maybe, took, reason, code, error, actor, subject, id, detail)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18 WHERE ?2 IS NULL OR EXISTS (SELECT 1 FROM hf_message WHERE seq = ?2)
		ON CONFLICT DO NOTHING`,
	salvageSequence: `INSERT INTO sqlite_sequence (name, seq) SELECT 'hf_entry', ?1
		WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'hf_entry')`,
	salvageFollower: `INSERT INTO hf_follower (name, cursor) VALUES (?1, ?2) ON CONFLICT DO NOTHING`,

	// A first message that is gone without a state was delivered: outbox_purge.go.
	findBundle: `SELECT b.hash, b.first, coalesce(b.state, (SELECT state FROM hf_message WHERE seq = b.first), 2)
		FROM hf_bundle AS b WHERE b.id = ?1 AND b.kind = ?2 AND b.source = ?3`,
	lastMessage:   `SELECT coalesce(max(seq), 0) FROM hf_message`,
	insertBundle:  `INSERT INTO hf_bundle (seq, kind, source, id, hash, created, first, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id, kind, source) DO NOTHING`,
	bundlePayload: `SELECT payload FROM hf_bundle WHERE seq = ?1`,
	endBundle:     `UPDATE hf_bundle SET state = ?3 WHERE seq = ?1 AND first = ?2`,
	purgeBundle:   `DELETE FROM hf_bundle WHERE seq = ?1`,
	firstOfBundle: `UPDATE hf_bundle SET first = ?2 WHERE seq = ?1 AND first = 0`,

	endDelivery: `UPDATE hf_delivery SET state = ?2, settled = ?3 WHERE seq = ?1`,
	// A delivery that waits without its message never comes.
	salvageDelivery: `INSERT INTO hf_delivery (seq, event, subscription, version, message, state, settled, resends, request, actor)
		SELECT ?1, ?2, ?3, ?4, ?5, CASE WHEN m.seq IS NULL THEN ?6 END, CASE WHEN m.seq IS NULL THEN ?7 END, ?8, ?9, ?10
		FROM (SELECT 1) LEFT JOIN hf_message AS m ON m.seq = ?1
		WHERE (m.seq IS NOT NULL OR ?6 IS NOT NULL) AND EXISTS (SELECT 1 FROM hf_event WHERE seq = coalesce(?8, ?2)) ON CONFLICT DO NOTHING`,

	// For notifications (notify_copy.go) and the record of targets (notify_targets.go).
	insertNotification: `INSERT INTO hf_notification (seq, id, copy, message, channel, type, list, subject, site, instance, script, execution, parent, enqueued, bundle, created)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	markDelivered: `UPDATE hf_notification SET delivered = ?1 WHERE seq IN (SELECT value FROM json_each(?2))
		AND EXISTS (SELECT 1 FROM hf_message AS m WHERE m.seq = hf_notification.seq AND m.state = 2 AND m.settled = ?1)`,
	archiveNotification: `UPDATE hf_notification SET (state, settled, failures, tries, cycle, reason, delivered, last_error, tried) = (
		SELECT m.state, m.settled, m.failures, m.tries, m.cycle, m.reason, CASE m.state WHEN 2 THEN m.settled END, ` + lastError + `,
			coalesce(` + lastTry + `, CASE m.state WHEN 2 THEN m.settled END) FROM hf_message AS m WHERE m.seq = ?1)
		WHERE seq = ?1 AND EXISTS (SELECT 1 FROM hf_message AS x WHERE x.seq = ?1 AND x.state = ?2
			AND NOT EXISTS (SELECT 1 FROM hf_entry AS e WHERE e.message = ?1 AND e.seq > ?3))`,
	notificationNeeded: `SELECT 1 FROM hf_notification AS n WHERE n.seq IN (` + copiesOf + `) AND n.bundle = ?1
		AND (n.state IS NULL OR n.settled >= ?2) LIMIT 1`,
	// For notifications none of whose copies has a message any more.
	purgeTargets:      `DELETE FROM hf_target WHERE seq IN (` + copiesOf + `)`,
	purgeNotification: `DELETE FROM hf_notification WHERE seq IN (` + copiesOf + `) AND bundle = ?1`,

	findSeq:  `SELECT seq FROM hf_message WHERE id = ?1`,
	bumpBook: `INSERT INTO hf_meta (key, value) VALUES ('book', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1`,

	lastNotification: `SELECT max(coalesce((SELECT max(seq) FROM hf_notification), 0), coalesce((SELECT max(seq) FROM hf_bundle), 0), coalesce((SELECT max(seq) FROM hf_operation), 0)),
		coalesce((SELECT max(seq) FROM hf_message), 0)`,

	// A message that will be delivered again was not delivered.
	salvageNotification: `INSERT INTO hf_notification (seq, id, copy, message, channel, type, list, subject, site, instance, script, execution, parent, enqueued, bundle, created,
			delivered, state, settled, failures, tries, cycle, reason, last_error, tried)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
			CASE WHEN NOT EXISTS (SELECT 1 FROM hf_message WHERE seq = ?1) THEN ?17
				ELSE (SELECT coalesce(?17, settled) FROM hf_message WHERE seq = ?1 AND state = 2) END,
			CASE WHEN NOT EXISTS (SELECT 1 FROM hf_message WHERE seq = ?1) THEN coalesce(?18, 2) END,
			CASE WHEN NOT EXISTS (SELECT 1 FROM hf_message WHERE seq = ?1) THEN coalesce(?19, ?17) END, ?20, ?21, ?22, ?23, ?24, ?25
		WHERE ?17 IS NOT NULL OR ?18 IS NOT NULL OR EXISTS (SELECT 1 FROM hf_message WHERE seq = ?1) ON CONFLICT DO NOTHING`,
})[:], rowTexts()...)
