package main

// The bare loop's statements, on the library's own tables and indexes, so that it is the ceiling
// for these rows. Destination n is lane n + 1.
const (
	// seq, id, lane, state, now; route is 1, due and created are now.
	bareInsert = `INSERT INTO hf_message (seq, id, route, lane, state, due, created) VALUES (?1, ?2, 1, ?3 + 1, ?4, ?5, ?5)`
	// seq, payload
	bareInsertBody = `INSERT INTO hf_body (seq, payload) VALUES (?1, ?2)`
	// seq, now
	bareSettle = `UPDATE hf_message SET state = 2, tries = 1, settled = ?2 WHERE seq = ?1 AND state = 0`
	// lane, now, limit
	barePage = `SELECT m.seq, b.payload FROM hf_message m JOIN hf_body b ON b.seq = m.seq
WHERE m.state = 0 AND m.lane = ?1 + 1 AND m.due <= ?2 ORDER BY m.due LIMIT ?3`

	bareLast  = `SELECT ifnull(max(seq), 0) FROM hf_message`
	bareCount = `SELECT count(*) FROM hf_message WHERE state = 0`
)

// States as the table has them.
const (
	statePending   = 0
	stateDelivered = 2
	stateParked    = 3
)
