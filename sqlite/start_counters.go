package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
)

// Others write the caller's database too: the caller's own transactions, in this process and in
// others. Every transaction of the store therefore begins by reading what is new, and every
// lookEvery there is one without another purpose. So no wake-up can be missed, because none is
// needed.

// seen is how much of the file this process knows: the highest keys.
type seen struct{ message, event, inbox int64 }

// fileInfo is the result of one look at the file.
type fileInfo struct {
	epoch    int64
	alone    bool // a node owns the whole file
	last     seen
	created  int64 // of the last message
	followed bool
	notify   int64
}

func readFile(c *conn) (f fileInfo, err error) {
	_, err = c.one(fileState, func(v []driver.Value) error {
		f.epoch, f.alone = asInt(v[0]), asInt(v[1]) == 1
		f.last, f.created = seen{asInt(v[2]), asInt(v[4]), asInt(v[5])}, asInt(v[3])
		f.followed, f.notify = asInt(v[6]) == 1, asInt(v[7])
		return nil
	})
	return f, err
}

func (s *seen) read(c *conn) error {
	f, err := readFile(c)
	*s = f.last
	return err
}

// after takes note of what a transaction of this store has committed.
func (s *seen) after(tx *writeTx) {
	s.message, s.event, s.inbox = max(s.message, tx.last.message), max(s.event, tx.last.event), max(s.inbox, tx.last.inbox)
}

// enter is the first step of each transaction. In a file of its own, the store checks that it still
// owns the file. In the caller's database, it reads what others have done.
func (db *DB) enter(c *conn) error {
	if db.attached == nil {
		return db.checkEpoch(c)
	}
	f, err := readFile(c)
	if err != nil {
		return err
	}
	if f.alone {
		return fmt.Errorf("%w: a node has taken %s for itself", ErrOwned, db.path)
	}
	if db.owns.Load() && f.epoch != db.epoch {
		db.disown(f.epoch)
	}
	return db.loadCounters(c, f)
}

// disown gives up the claims of an owner whose lock did not hold.
func (db *DB) disown(epoch int64) {
	db.log.Error("another process has taken the file over", slog.Int64("epoch", epoch))
	db.owns.Store(false)
	ls := db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.forget()
}

func (db *DB) loadCounters(c *conn, f fileInfo) error {
	a := db.attached
	db.clock.reach(f.created)
	db.followed.Store(f.followed)
	db.notify.Store(f.notify)
	switch more := f.last.message - a.seen.message; {
	case more > learnMost:
		if err := db.startAfresh(c); err != nil {
			return err
		}
	case more > 0:
		if err := db.loadMessageCounters(c); err != nil {
			return err
		}
	}
	a.seen.message = f.last.message // step by step: after an error nothing is counted twice
	if f.last.event > a.seen.event {
		if err := db.loadJournal(c, f); err != nil {
			return err
		}
	}
	a.seen.event = f.last.event
	if f.last.inbox > a.seen.inbox {
		if _, err := c.one(newInInbox, func(v []driver.Value) error {
			db.inboxSize.Add(asInt(v[0]))
			db.keptSize.Add(asInt(v[1]))
			return nil
		}, a.seen.inbox); err != nil {
			return err
		}
	}
	a.seen.inbox = f.last.inbox
	return nil
}

// learnMost is the largest number of new messages that are read one by one. A process that was
// suspended for hours must not read a million messages into memory.
const learnMost = 10_000

// loadMessageCounters tells the lanes about messages that others have enqueued.
func (db *DB) loadMessageCounters(c *conn) error {
	type row struct {
		seq, lane, order, due, expires, route int64
		state                                 holdfast.State
		destination                           string
	}
	var list []row
	if err := c.each(newMessages, func(v []driver.Value) error {
		r := row{
			seq: asInt(v[0]), lane: asInt(v[1]), state: holdfast.State(asInt(v[2])), due: asInt(v[3]),
			expires: never, route: asInt(v[5]), destination: asText(v[6]), order: asInt(v[7]),
		}
		if v[4] != nil {
			r.expires = asInt(v[4])
		}
		list = append(list, r)
		return nil
	}, db.attached.seen.message); err != nil {
		return err
	}
	for i := range list {
		n, err := db.routeNames(c, list[i].route)
		if err != nil {
			return err
		}
		k := routeKey{n.source, list[i].destination, n.endpoint, n.kind}
		db.attached.names.put(k, list[i].route, list[i].lane)
	}
	ls := db.lanes
	now := db.clock.now()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range list {
		r := &list[i]
		if r.state != holdfast.Pending {
			continue // the owner was faster; this process is not the owner
		}
		l := ls.locked(r.destination)
		l.id, l.order = r.lane, r.order
		l.count(holdfast.Pending, 1)
		ls.nextExpiry = min(ls.nextExpiry, r.expires)
		if r.due != never {
			ls.addFresh(&freshRow{lane: l, due: r.due}, now)
			ls.wakes.Ring(l.name)
		}
	}
	return nil
}

// loadJournal wakes followers of the journal. If others have decided about messages, it starts
// afresh, since a requeue makes a message due again.
func (db *DB) loadJournal(c *conn, f fileInfo) error {
	if f.followed {
		db.followers.RingAll()
	}
	decided, err := c.one(newDecisions, exists, db.attached.seen.event)
	if err != nil || !decided {
		return err
	}
	db.heard = min(db.heard, db.attached.seen.event)
	db.decided.Store(true)
	return db.startAfresh(c)
}

// startAfresh counts again, and makes the next claims read the table.
func (db *DB) startAfresh(c *conn) error {
	ls := db.lanes
	ls.mu.Lock()
	for _, l := range ls.byName {
		ls.rewind(l)
	}
	ls.nextExpiry = 0
	ls.wakes.RingAll()
	ls.mu.Unlock()
	return db.seed(c)
}

// inboxPage is how many inbox rows one transaction on the caller's pool counts.
const inboxPage = 100_000

// countInbox seeds the inbox gauges, in pages: the pool may have one connection, and the inbox tens
// of millions of rows.
func (db *DB) countInbox(ctx context.Context) error {
	top := db.attached.uncounted // later rows are counted already
	for from := int64(0); from < top; from += inboxPage {
		if err := db.writer.inspect(ctx, func(c *conn) error {
			_, err := c.one(countInboxPage, func(v []driver.Value) error {
				db.inboxSize.Add(asInt(v[0]))
				db.keptSize.Add(asInt(v[1]))
				return nil
			}, from, min(from+inboxPage, top))
			return err
		}); err != nil {
			return errors.Join(errors.New("count inbox"), err)
		}
	}
	return nil
}
