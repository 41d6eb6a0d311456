package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// Relaxed takes a server that does not sync, as tests have it.
func (o Options) Relaxed() Options {
	o.relaxed = true
	return o
}

// Audit looks for what must never be, and names it.
func (db *DB) Audit(ctx context.Context) (faults []string, err error) {
	for what, query := range map[string]string{
		"a message stands nowhere, or twice": `SELECT m.seq::text FROM hf_message AS m LEFT JOIN hf_queue AS q USING (seq) LEFT JOIN hf_final AS f USING (seq)
			WHERE (q.seq IS NULL) = (f.seq IS NULL)`,
		"a row stands without its message":       `SELECT seq::text FROM (SELECT seq FROM hf_queue UNION ALL SELECT seq FROM hf_final) AS x WHERE seq NOT IN (SELECT seq FROM hf_message)`,
		"a key has several messages to be tried": `SELECT lane || ' ' || okey FROM hf_queue WHERE okey IS NOT NULL AND blocked = 0 GROUP BY lane, okey HAVING count(*) > 1`,
		"a key waits for nothing": `SELECT q.lane || ' ' || q.okey FROM hf_queue AS q JOIN hf_lane AS l USING (lane) WHERE q.okey IS NOT NULL AND q.blocked = 1
			AND NOT EXISTS (SELECT FROM hf_queue AS h WHERE h.lane = q.lane AND h.okey = q.okey AND h.blocked IN (0, 2))
			AND NOT (l.strict AND EXISTS (SELECT FROM hf_final AS f WHERE f.lane = q.lane AND f.okey = q.okey AND f.state = 3 AND f.seq < q.seq))`,
		"a claim is of nobody":         `SELECT seq::text FROM hf_queue WHERE owner IS NOT NULL AND owner NOT IN (SELECT owner FROM hf_node)`,
		"an event is of no message":    `SELECT seq::text FROM hf_entry WHERE message > 0 AND message NOT IN (SELECT seq FROM hf_message)`,
		"a notification is of nothing": `SELECT seq::text FROM hf_notification WHERE seq NOT IN (SELECT seq FROM hf_message) AND seq NOT IN (SELECT seq FROM hf_notification_end)`,
		"a delivery is not noted": `SELECT seq::text FROM hf_notification AS n WHERE EXISTS (SELECT FROM hf_message AS m WHERE m.seq = n.seq)
			AND EXISTS (SELECT FROM hf_final AS f WHERE f.seq = n.seq AND f.state = 2) <> EXISTS (SELECT FROM hf_notification_end AS e WHERE e.seq = n.seq)`,
		"a bundle has no first notification":           `SELECT seq::text FROM hf_bundle WHERE (seq, first) NOT IN (SELECT bundle, seq FROM hf_notification WHERE copy = 0) AND seq NOT IN (SELECT seq FROM hf_event UNION ALL SELECT event FROM hf_delivery)`,
		"an event is of no bundle":                     `SELECT seq::text FROM hf_event WHERE seq NOT IN (SELECT seq FROM hf_bundle)`,
		"a delivery is of no event":                    `SELECT seq::text FROM hf_delivery WHERE coalesce(resends, event) NOT IN (SELECT seq FROM hf_event)`,
		"a delivery is of nothing":                     `SELECT seq::text FROM hf_delivery WHERE (state IS NULL) <> (seq IN (SELECT seq FROM hf_message))`,
		"a bundle is not there":                        `SELECT seq::text FROM (SELECT seq, bundle FROM hf_message UNION ALL SELECT seq, bundle FROM hf_notification) AS x WHERE bundle IS NOT NULL AND bundle NOT IN (SELECT seq FROM hf_bundle)`,
		"a bundled message has a payload":              `SELECT seq::text FROM hf_message WHERE bundle IS NOT NULL AND payload <> ''`,
		"a bundle is over before its first message is": `SELECT seq::text FROM hf_bundle AS b WHERE state IS NOT NULL AND EXISTS (SELECT FROM hf_message AS m WHERE m.seq = b.first AND m.bundle = b.seq)`,
		"the sums are wrong": `SELECT x.lane || ': ' || x.pending || ' pending, ' || x.parked || ' parked, ' || x.expired || ' expired by the changes, '
				|| y.pending || ', ' || y.parked || ', ' || y.expired || ' by a count'
			FROM (SELECT l.lane, coalesce(sum(t.pending), 0) AS pending, coalesce(sum(t.parked), 0) AS parked, coalesce(sum(t.expired), 0) AS expired
				FROM hf_lane AS l LEFT JOIN hf_tally AS t USING (lane) GROUP BY l.lane) AS x
			JOIN (SELECT l.lane, (SELECT count(*) FROM hf_queue AS q WHERE q.lane = l.lane) AS pending,
				(SELECT count(*) FROM hf_final AS f WHERE f.lane = l.lane AND f.state = 3) AS parked,
				(SELECT count(*) FROM hf_final AS f WHERE f.lane = l.lane AND f.state = 4) AS expired FROM hf_lane AS l) AS y USING (lane)
			WHERE (x.pending, x.parked, x.expired) IS DISTINCT FROM (y.pending, y.parked, y.expired)`,
	} {
		if err := db.read(ctx, query, nil, func(rows pgx.Rows) error {
			var text string
			err := rows.Scan(&text)
			faults = append(faults, fmt.Sprintf("%s: %s", what, text))
			return err
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return faults, nil
}

// Die ends the store as a process that is killed does: nothing is given back.
func (db *DB) Die() {
	db.gone.Store(true)
	db.cancel()
	db.stopGroups()
	db.parts.Wait()
	db.pools.close()
}

// ClaimPages is how many pages a claim from the lane's floor looks at.
func (db *DB) ClaimPages(ctx context.Context, destination string) (pages int, err error) {
	lane := db.names.number(destination)
	db.claim.mu.Lock()
	floor := db.claim.lane(lane).floor
	db.claim.mu.Unlock()
	err = db.read(ctx, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) "+claimMessages, []any{int64(-1), int64(0), claimBytes, []int32{lane}, []int64{10}, []int64{floor}},
		func(rows pgx.Rows) error {
			var line string
			err := rows.Scan(&line)
			if i := strings.Index(line, "shared hit="); i >= 0 && pages == 0 {
				_, err = fmt.Sscanf(line[i:], "shared hit=%d", &pages)
			}
			return err
		})
	return pages, err
}

// OwnConfig is that of the connections of the store's own statements.
func (db *DB) OwnConfig() *pgx.ConnConfig { return db.pools.own.Config().ConnConfig }

// ReadOnlyFromHere is how Inspect begins.
const ReadOnlyFromHere = readOnlyFromHere

// MoveConn is a connection of a copy.
func MoveConn(ctx context.Context, dsn string) (*pgx.Conn, error) { return moveConn(ctx, dsn) }

// The advisory locks of upkeep.
const (
	UpkeepClass  = upkeepClass
	UpkeepExpire = upkeepExpire
	UpkeepPurge  = upkeepPurge
)

// Owner is this node's number.
func (db *DB) Owner() int64 { return db.self.owner() }

// Bury takes an owner for dead, as a node does that looked at the list a moment ago.
func (db *DB) Bury(ctx context.Context, owner int64) error {
	return db.own(ctx, func(tx *ownTx) error { return tx.bury(owner) })
}

// StopBeats keeps the node from renewing its lease, as a pause would. What goOn
// does it does once.
func (db *DB) StopBeats() (goOn func()) {
	db.self.pulse <- struct{}{}
	return sync.OnceFunc(func() { <-db.self.pulse })
}

// TickClock has the database's clock go on, which other nodes see to.
func (db *DB) TickClock(ctx context.Context) error { return db.tickClock(ctx) }

// FindLost looks for claims that are in doubt, as a heartbeat does.
func (db *DB) FindLost(ctx context.Context) error { return db.findLost(ctx) }

// Trusts tells whether the lease certainly holds.
func (db *DB) Trusts() bool { return db.self.isTrusted() }

// BeatNow renews the lease while the beats are stopped.
func (db *DB) BeatNow(ctx context.Context) error { return db.renew(ctx) }

// ClaimWith is Claim with something between the commit and the note of it.
func (db *DB) ClaimWith(ctx context.Context, slots map[string]int, between func()) ([]holdfast.Claim, error) {
	owner, err := db.self.trusted()
	if err != nil {
		return nil, err
	}
	k := &taking{db: db, owner: owner, number: db.claim.next(), want: map[int32]int{}, names: map[int32]string{}}
	if err := k.ask(ctx, slots); err != nil {
		return nil, err
	}
	if err := db.own(ctx, func(tx *ownTx) error {
		tx.after = append(tx.after, between)
		return k.run(tx)
	}); err != nil {
		return nil, err
	}
	if k.late {
		return nil, errLeaseOver
	}
	return k.finish(ctx)
}

// Turn is as if the next connection led to another server.
func (db *DB) Turn() {
	db.past.mu.Lock()
	defer db.past.mu.Unlock()
	db.past.next()
}

// LookAround looks at all hosts of the address now.
func (db *DB) LookAround(ctx context.Context) { db.lookAround(ctx, hosts(db.OwnConfig())) }

// OwnAcross runs a transaction that the server undoes, while another history
// begins, and tells how often it ran.
func (db *DB) OwnAcross(ctx context.Context, unbound bool) (ran int, err error) {
	run := db.own
	if unbound {
		run = db.unbound
	}
	err = run(ctx, func(tx *ownTx) error {
		if ran++; ran > 1 {
			return tx.exec("SELECT 1")
		}
		db.Turn()
		return errUndone
	})
	return ran, err
}

// ProveByAbsence looks for a proof that rows are gone, which they are, of a
// transaction after which another history may have begun.
func (db *DB) ProveByAbsence(ctx context.Context, turned bool) error {
	turn, _ := db.past.is()
	if turned {
		db.Turn()
	}
	return db.prove(ctx, turn, &proof{rows: &proofRows{"SELECT 1 WHERE false", nil}, unless: true}, ErrUnknown)
}

// Welcome is as if a new connection led to a server of another system, while
// the address is the one of dsn.
func (db *DB) Welcome(ctx context.Context, dsn string) error {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	c.ConnectTimeout = time.Minute
	return db.past.welcome(ctx, c, server{system: "another", timeline: "00000001"})
}

// RowStatements are those that are made of the tables' descriptions.
func RowStatements() map[string]string {
	all := map[string]string{}
	for t, texts := range rowStatements() {
		all["put "+t.Name], all["add "+t.Name], all["first "+t.Name], all["later "+t.Name] = texts.put, texts.add, texts.first, texts.later
	}
	return all
}
