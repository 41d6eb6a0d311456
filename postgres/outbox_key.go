package postgres

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// An ordering key has at most one message that may be tried. Every other unfinished message of the
// key is blocked, and due at its expiry or never. So claims do not meet it, however many there are.
//
// Every decision about a key is made under an advisory lock on it, by a statement that begins after
// the lock is taken. So that statement sees what the former holder of the lock has committed. Only
// short transactions of the store take these locks. A caller's transaction leaves its keyed rows
// undecided (blocked = 2), and the next Claim of any node decides about them.

type orderingKey struct {
	lane int32
	key  string
}

// lockClass separates the store's advisory locks from those of others.
const lockClass = 0x68666b79 // "hfky"

func (k orderingKey) number() int32 {
	h := fnv.New32a()
	_, _ = h.Write(strconv.AppendInt(nil, int64(k.lane), 10)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(k.key))
	return int32(h.Sum32())
}

// lockKeys waits for the locks of keys, in one order. They are held until the transaction ends. Two
// keys with the same number merely wait for each other more than needed.
func (tx *ownTx) lockKeys(keys []orderingKey) error {
	if len(keys) == 0 {
		return nil
	}
	numbers := make([]int32, len(keys))
	for i, k := range keys {
		numbers[i] = k.number()
	}
	slices.Sort(numbers)
	return tx.exec(lockKeys, int32(lockClass), slices.Compact(numbers))
}

// placeKeys decides about keys whose locks the transaction holds.
func (tx *ownTx) placeKeys(keys []orderingKey) error {
	if len(keys) == 0 {
		return nil
	}
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b orderingKey) int { return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.key, b.key)) })
	keys = slices.Compact(keys)
	lanes, names := make([]int32, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		lanes[i], names[i] = k.lane, k.key
	}
	return tx.query(placeKeys, []any{lanes, names}, func(rows pgx.Rows) error {
		var lane int32
		err := rows.Scan(&lane)
		tx.wakes(lane)
		return err
	})
}

// placeSome decides about keys that callers' transactions have left undecided, and reports whether
// there may be more.
func (tx *ownTx) placeSome() (more bool, err error) {
	const most = 200
	var keys []orderingKey
	if err := tx.query(unplaced, []any{most}, func(rows pgx.Rows) error {
		var k orderingKey
		err := rows.Scan(&k.lane, &k.key)
		keys = append(keys, k)
		return err
	}); err != nil {
		return false, err
	}
	if err := tx.lockKeys(keys); err != nil {
		return false, err
	}
	return len(keys) == most, tx.placeKeys(keys)
}
