package sqlite

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// mayUndo notes that the caller's SQL can undo a part of the transaction (ROLLBACK TO a savepoint),
// and with it rows of the store that memory would tell of.
func (t *Tx) mayUndo(query string) {
	if !t.joined && strings.Contains(strings.ToUpper(query), "ROLLBACK") {
		t.wtx.forgetNames()
		t.wtx.doubted = true
	}
}

// forgetNames drops what memory learned in the transaction. The next call that needs a name reads
// the table.
func (tx *writeTx) forgetNames() {
	for _, f := range slices.Backward(tx.undo) {
		f()
	}
	clear(tx.undo)
	tx.undo = tx.undo[:0]
}

// recall reads the rows that exist, in place of what the transaction would tell memory.
func (tx *writeTx) recall() error {
	tx.forgetNames()
	tx.moves, tx.fresh, tx.inboxed, tx.kept = tx.moves[:0], tx.fresh[:0], 0, 0
	f, err := readFile(tx.conn)
	if err != nil {
		return err
	}
	tx.last = f.last
	if tx.first.message > 0 {
		type row struct {
			due         int64
			destination string
		}
		var list []row
		if err := tx.conn.each(newMessages, func(v []driver.Value) error {
			list = append(list, row{asInt(v[3]), asText(v[6])})
			return nil
		}, tx.first.message-1); err != nil {
			return err
		}
		for _, r := range list {
			l, err := tx.lane(r.destination)
			if err != nil {
				return err
			}
			tx.moves = append(tx.moves, change{l, none, holdfast.Pending})
			tx.fresh = append(tx.fresh, freshRow{lane: l, due: r.due})
		}
	}
	if tx.first.inbox == 0 {
		return nil
	}
	_, err = tx.conn.one(newInInbox, func(v []driver.Value) error {
		tx.inboxed, tx.kept = asInt(v[0]), asInt(v[1])
		return nil
	}, tx.first.inbox-1)
	return err
}
