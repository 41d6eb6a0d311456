package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast"
)

// With returns the options with every connection of the driver wrapped; one of
// them is the writer's.
func (o Options) With(wrap func(c driver.Conn, writer bool) driver.Conn) Options {
	o.connect = func(name string) (driver.Conn, error) {
		c, err := (&moderncsqlite.Driver{}).Open(name)
		if err != nil {
			return nil, err
		}
		return wrap(c, strings.Contains(name, "_txlock")), nil
	}
	return o
}

// On returns the options with another machine's clock.
func (o Options) On(read func() (wall time.Time, ran time.Duration)) Options {
	o.clock = read
	return o
}

// Looking returns the options with another interval between two looks for
// what others have committed.
func (o Options) Looking(every time.Duration) Options {
	o.look = every
	return o
}

// Statements and Queries are every SQL text that is run more than once.
func Statements() []string { return slices.Clone(statements) }
func Queries() []string    { return slices.Clone(queries) }

// Text of statements that tests look for.
var (
	CommitNow = statements[commitNow]
	ClaimPage = statements[claimPage]
)

// SQL runs a query on the writer's connection and returns its rows.
func (db *DB) SQL(ctx context.Context, text string) (list [][]any, err error) {
	err = db.writer.inspect(ctx, func(c *conn) error {
		return c.rows(text, func(v []driver.Value) error {
			row := make([]any, len(v))
			for i := range v {
				row[i] = v[i]
			}
			list = append(list, row)
			return nil
		})
	})
	return list, err
}

// Careful is how many settlements are missing until claims stay in memory.
func (db *DB) Careful() int {
	db.lanes.mu.Lock()
	defer db.lanes.mu.Unlock()
	return db.lanes.careful
}

// Clock tells the store's time, and whether it would let messages expire.
func (db *DB) Clock() (now int64, mayExpire bool) {
	ok, doubt := db.clock.look()
	return db.clock.now(), ok && doubt == 0
}

// Audit looks for what must never be, in the file and in memory.
func (db *DB) Audit(ctx context.Context) (faults []string, err error) {
	<-db.background
	for name, text := range map[string]string{
		"two heads of one key":         `SELECT lane, okey FROM hf_message WHERE okey IS NOT NULL AND state IN (0, 1) AND blocked = 0 GROUP BY lane, okey HAVING count(*) > 1`,
		"a blocked row that is due":    `SELECT id FROM hf_message WHERE state = 0 AND blocked = 1 AND due != coalesce(expires, 9223372036854775807)`,
		"a blocked row without a key":  `SELECT id FROM hf_message WHERE state = 0 AND blocked = 1 AND okey IS NULL`,
		"a key that nobody will free":  keyThatNobodyFrees,
		"a message without a body":     `SELECT id FROM hf_message WHERE seq NOT IN (SELECT seq FROM hf_body)`,
		"a body without a message":     `SELECT seq FROM hf_body WHERE seq NOT IN (SELECT seq FROM hf_message)`,
		"an event without a message":   `SELECT seq FROM hf_entry WHERE message > 0 AND message NOT IN (SELECT seq FROM hf_message)`,
		"a message without its route":  `SELECT id FROM hf_message WHERE route NOT IN (SELECT route FROM hf_route)`,
		"a route of another lane":      `SELECT m.id FROM hf_message AS m JOIN hf_route AS r USING (route) WHERE r.lane != m.lane`,
		"a parked row without reason":  `SELECT id FROM hf_message WHERE state = 3 AND reason IS NULL`,
		"a final row without an end":   `SELECT id FROM hf_message WHERE (state > 1) != (settled IS NOT NULL)`,
		"a kept row without its body":  `SELECT seq FROM hf_inbox WHERE kept = 1 AND seq NOT IN (SELECT seq FROM hf_inbox_body)`,
		"an inbox body of nothing":     `SELECT seq FROM hf_inbox_body WHERE seq NOT IN (SELECT seq FROM hf_inbox WHERE kept = 1)`,
		"an inbox row without an end":  `SELECT seq FROM hf_inbox WHERE (kept = 0) != (processed IS NOT NULL)`,
		"an inbox row of nobody":       `SELECT seq FROM hf_inbox WHERE source NOT IN (SELECT source FROM hf_source)`,
		"a notification of nothing":    `SELECT seq FROM hf_notification WHERE (state IS NULL) != (seq IN (SELECT seq FROM hf_message))`,
		"a delivery that is not noted": `SELECT seq FROM hf_notification JOIN hf_message AS m USING (seq) WHERE (m.state = 2) != (delivered IS NOT NULL)`,
		"a bundle of nothing":          `SELECT seq FROM hf_bundle WHERE seq NOT IN (SELECT bundle FROM hf_notification UNION ALL SELECT seq FROM hf_event UNION ALL SELECT event FROM hf_delivery)`,
		"an event of no bundle":        `SELECT seq FROM hf_event WHERE seq NOT IN (SELECT seq FROM hf_bundle)`,
		"a delivery of no event":       `SELECT seq FROM hf_delivery WHERE coalesce(resends, event) NOT IN (SELECT seq FROM hf_event)`,
		"a delivery of nothing":        `SELECT seq FROM hf_delivery WHERE (state IS NULL) != (seq IN (SELECT seq FROM hf_message))`,
		"a notification of no bundle":  `SELECT seq FROM hf_notification WHERE bundle NOT IN (SELECT seq FROM hf_bundle)`,
		"a bundle that is over early":  `SELECT seq FROM hf_bundle WHERE state IS NOT NULL AND first IN (SELECT seq FROM hf_message)`,
		"a payload that stands twice":  `SELECT seq FROM hf_body WHERE bundle IS NOT NULL AND (payload != x'' OR bundle NOT IN (SELECT seq FROM hf_bundle))`,
		"a fault that the file has":    `SELECT * FROM (SELECT integrity_check AS fault FROM pragma_integrity_check) WHERE fault != 'ok'`,
		"an inbox counter that is off": fmt.Sprintf(`SELECT count(*) FROM hf_inbox HAVING count(*) != %d`, db.Counts().Inbox),
	} {
		rows, err := db.SQL(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(rows) > 0 {
			faults = append(faults, fmt.Sprintf("%s: %v", name, rows))
		}
	}
	return append(faults, db.lanes.audit()...), nil
}

// A key with blocked messages and no head, which no parked one stops either.
const keyThatNobodyFrees = `SELECT b.lane, b.okey FROM (SELECT lane, okey, min(seq) AS first FROM hf_message WHERE state = 0 AND blocked = 1 GROUP BY lane, okey) AS b
	JOIN hf_lane AS l ON l.lane = b.lane
	WHERE NOT EXISTS (SELECT 1 FROM hf_message AS h WHERE h.lane = b.lane AND h.okey = b.okey AND h.state IN (0, 1) AND h.blocked = 0)
	AND NOT (l.strict = 1 AND EXISTS (SELECT 1 FROM hf_message AS p WHERE p.lane = b.lane AND p.okey = b.okey AND p.state = 3 AND p.seq < b.first))
	AND l.strict != 2`

func (ls *lanes) audit() (faults []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	total, leased := 0, map[*lane]int{}
	for _, l := range ls.byName {
		bytes := 0
		for _, c := range l.fresh {
			bytes += len(c.Message.Payload)
		}
		if bytes != l.freshBytes {
			faults = append(faults, fmt.Sprintf("lane %s: %d bytes in fresh, counted %d", l.name, bytes, l.freshBytes))
		}
		total += bytes
	}
	for _, held := range ls.leases {
		leased[held.lane]++
	}
	for _, l := range ls.byName {
		if l.leased != leased[l] {
			faults = append(faults, fmt.Sprintf("lane %s: %d leases, counted %d", l.name, leased[l], l.leased))
		}
	}
	if total != ls.bytes {
		faults = append(faults, fmt.Sprintf("%d bytes in fresh of all lanes, counted %d", total, ls.bytes))
	}
	return faults
}

// Plan explains how SQLite runs a text.
func (db *DB) Plan(ctx context.Context, text string) (lines []string, err error) {
	var args []driver.Value
	for strings.Contains(text, fmt.Sprint("?", len(args)+1)) || strings.Count(text, "?,")+strings.Count(text, "?)") > len(args) {
		args = append(args, int64(2))
	}
	err = db.writer.inspect(ctx, func(c *conn) error {
		return c.rows("EXPLAIN QUERY PLAN "+text, func(v []driver.Value) error {
			lines = append(lines, asText(v[3]))
			return nil
		}, args...)
	})
	return lines, err
}

// Queued is how many calls wait for the writer.
func (db *DB) Queued() int {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return len(db.writer.queue)
}

// Look looks for room on the disk at once, and not after a second.
func (db *DB) Look(ctx context.Context) { db.look(ctx) }

// FreshBytes is what the lanes hold in memory.
func (db *DB) FreshBytes() int {
	db.lanes.mu.Lock()
	defer db.lanes.mu.Unlock()
	return db.lanes.bytes
}

// ForgetFresh makes the next claim of a lane read the table.
func (db *DB) ForgetFresh(lane string) {
	db.lanes.mu.Lock()
	defer db.lanes.mu.Unlock()
	db.lanes.rewind(db.lanes.locked(lane))
}

// PageCopier is a copy under way, of the driver or of a test.
type PageCopier = pageCopier

// Copying returns the options with every backup wrapped, and told how far it is.
func (o Options) Copying(wrap func(k PageCopier) PageCopier, at func(point string)) Options {
	o.at = at
	o.copier = func(dc driver.Conn, to string) (pageCopier, error) {
		k, err := newPageCopier(dc, to)
		if err == nil && wrap != nil {
			k = wrap(k)
		}
		return k, err
	}
	return o
}

// RestoreAt is Restore that tells how far it is.
func RestoreAt(ctx context.Context, from, to string, at func(point string)) error {
	_, err := restore(ctx, from, to, RestoreOptions{}, at)
	return err
}

// IDFrom reads an id as it is stored.
func IDFrom(v any) holdfast.ID { return idFrom(v) }

// DropReaders has the next read open a connection of its own.
func (db *DB) DropReaders() {
	db.readers.SetMaxIdleConns(0)
	db.readers.SetMaxIdleConns(4)
}

// Want shows that somebody wants the file, until end.
func Want(path string) (end func() error, err error) {
	a := &attached{}
	return a.unwant, a.want(path)
}

// IsWanted says whether a dispatcher shows that it wants the file.
func IsWanted(path string) (bool, error) { return isWanted(path) }
