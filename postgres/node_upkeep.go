package postgres

import "github.com/jackc/pgx/v5"

// Upkeep takes an advisory lock: each kind is done by one node at a time, and the others skip it.
const upkeepClass int32 = 0x68667570 // "hfup"

const (
	upkeepInbox int32 = iota + 1
	upkeepExpire
	upkeepPurge
	upkeepTally
)

// upkeep reports whether this transaction does the upkeep of a kind now.
func (tx *ownTx) upkeep(kind int32) (mine bool, err error) {
	err = tx.query(lockUpkeep, []any{upkeepClass, kind}, func(rows pgx.Rows) error { return rows.Scan(&mine) })
	return mine, err
}
