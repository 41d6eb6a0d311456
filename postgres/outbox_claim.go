package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// claimBytes bounds the payload that one Claim call reads, approximately, in bytes.
const claimBytes = 8 << 20

// Claim implements holdfast.Store. Nodes that claim at the same time get different messages: a
// claim skips rows that another claim has locked.
func (db *DB) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	return db.take(ctx, slots, false)
}

// ClaimFirst implements holdfast.Store. It looks back five minutes at most, since it passes over
// all messages that were tried before and are due.
func (db *DB) ClaimFirst(ctx context.Context, slots map[string]int) ([]holdfast.Claim, error) {
	batch, err := db.take(ctx, slots, true)
	return batch.Claims, err
}

func (db *DB) take(ctx context.Context, slots map[string]int, first bool) (holdfast.Batch, error) {
	batch := holdfast.Batch{Next: map[string]time.Duration{}}
	if err := db.usable(ctx); err != nil {
		return batch, fmt.Errorf("claim: %w", err)
	}
	db.claim.flying.Add(1) // before the lease is checked: leave ends the lease first
	defer db.claim.flying.Add(-1)
	turn, _ := db.past.is() // before the owner number, which belongs to it
	owner, err := db.self.trusted()
	if err != nil {
		return batch, fmt.Errorf("claim: %w", err)
	}
	k := &taking{db: db, first: first, turn: turn, owner: owner, number: db.claim.next(), want: map[int32]int{}, names: map[int32]string{}}
	if err := k.ask(ctx, slots); err != nil {
		return batch, fmt.Errorf("claim: %w", err)
	}
	maps.Copy(batch.Next, k.soon)
	if len(k.lanes) == 0 {
		return batch, nil
	}
	if err := db.own(ctx, k.run); err != nil {
		if errors.Is(err, ErrUnknown) {
			db.claim.lose(owner, k.number)
		}
		return batch, fmt.Errorf("claim: %w", err)
	}
	if k.late {
		return batch, fmt.Errorf("claim: %w", errLeaseOver)
	}
	batch.Claims, err = k.finish(ctx)
	for id, wait := range k.next {
		batch.Next[k.names[id]] = wait
	}
	return batch, err
}

// taking is the work of one Claim call.
type taking struct {
	db            *DB
	first         bool // only messages that were never tried
	owner, number int64
	lanes         []int32
	want          map[int32]int
	whole         []int32 // lanes that are read as a whole
	late          bool    // the lease was lost meanwhile
	turn          uint64  // the history in which the lanes' numbers are valid

	rows    []taken
	expired []int64
	aside   map[int64]int64 // rows that are not handed out now, and when they are due: outbox_held.go
	bytes   int
	now     int64 // the database's time at the claim
	names   map[int32]string
	next    map[int32]time.Duration  // time until the next row of a lane is due
	soon    map[string]time.Duration // time until others know that this node shares a lane
	began   time.Time
}

// taken is one row of a claim.
type taken struct {
	claim  holdfast.Claim
	due    int64
	lane   int32
	route  int32
	bundle int64 // the bundle that has the payload; 0: none
	lost   bool  // the payload's bundle is gone
	hold   hold

	expires, lasts int64
	first          *int64
	blocked        bool // blocked by its key, and due only because it may have expired

	id             []byte
	headers, retry *string
}

// ask looks up the lanes. It skips a lane that never had a message.
func (k *taking) ask(ctx context.Context, slots map[string]int) error {
	var lanes []int32
	known, err := k.db.knownLanes(ctx, slices.Sorted(maps.Keys(slots)))
	if err != nil {
		return err
	}
	for name, id := range known {
		if slots[name] > 0 {
			lanes, k.want[id], k.names[id] = append(lanes, id), slots[name], name
		}
	}
	slices.Sort(lanes)
	if err := k.db.self.serve(ctx, lanes); err != nil {
		return err
	}
	for _, id := range lanes {
		wait := k.db.self.ready(id)
		if wait == 0 {
			k.lanes = append(k.lanes, id)
			continue
		}
		if k.soon == nil {
			k.soon = map[string]time.Duration{}
		}
		k.soon[k.names[id]] = wait
	}
	return nil
}

func (k *taking) run(tx *ownTx) error {
	if err := tx.still(k.turn); err != nil {
		return err
	}
	k.rows, k.expired, k.aside, k.whole, k.bytes, k.next, k.began = nil, nil, nil, nil, 0, map[int32]time.Duration{}, time.Now()
	c := &k.db.claim
	c.mu.Lock()
	place, suspects := c.unplaced && !k.first, c.suspects && c.suspect == 0 && !k.first
	c.mu.Unlock()
	if place {
		more, err := tx.placeSome()
		if err != nil {
			return err
		}
		tx.after = append(tx.after, func() { c.set(&c.unplaced, more) })
	}
	if suspects {
		if err := k.takeSuspects(tx); err != nil {
			return err
		}
	}
	lanes, most, floors := k.wants()
	if len(lanes) > 0 {
		statement := claimMessages
		if k.first {
			statement = claimFirst
		}
		if err := tx.query(statement, []any{k.owner, k.number, claimBytes - k.bytes, lanes, most, floors}, k.read); err != nil {
			return err
		}
	}
	if err := k.judge(tx); err != nil {
		return err
	}
	if err := k.readBundles(tx); err != nil {
		return err
	}
	if len(k.rows) > 0 {
		seqs, claims := make([]int64, len(k.rows)), make([]int64, len(k.rows))
		for i := range k.rows {
			seqs[i], claims[i] = k.rows[i].claim.Seq, k.number
		}
		slices.Sort(seqs)
		tx.proof = proof{rows: &proofRows{isClaimed, []any{k.owner, seqs, claims}}}
	}
	if err := k.expire(tx); err != nil {
		return err
	}
	if !k.first {
		k.look(tx)
	}
	tx.after = append(tx.after, k.hold)
	return nil
}

// wants returns the parameters of claimMessages.
func (k *taking) wants() (lanes []int32, most, floors []int64) {
	c := &k.db.claim
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[int32]int{}
	for i := range k.rows {
		got[k.rows[i].lane]++
	}
	for _, id := range k.lanes {
		n := k.want[id] - got[id]
		if n <= 0 {
			continue
		}
		l, floor := c.lane(id), int64(0)
		switch {
		case k.first:
			floor = l.first
		case k.began.Before(l.whole):
			floor = l.floor
		default:
			k.whole = append(k.whole, id)
		}
		lanes, most, floors = append(lanes, id), append(most, int64(n)), append(floors, floor)
	}
	return lanes, most, floors
}

// read reads one row of claimMessages or claimSuspects.
func (k *taking) read(rows pgx.Rows) error {
	if rows.RawValues()[1] == nil {
		return rows.Scan(append([]any{&k.now}, make([]any, len(rows.FieldDescriptions())-1)...)...)
	}
	var t taken
	var blocked int16
	var corr, key *string
	var ttl *int64
	var size int
	var created int64
	m := &t.claim.Message
	if err := rows.Scan(&k.now, &t.claim.Seq, &t.lane, &t.due, &t.expires, &t.claim.Failures, &t.claim.Tries, &m.Attempt.Cycle, &t.first, &m.Attempt.Forced, &t.claim.Revision,
		&t.id, &t.route, &m.Payload, &t.headers, &corr, &t.retry, &ttl, &key, &blocked, &t.lasts, &t.bundle, &size, &created); err != nil {
		return err
	}
	t.blocked, t.claim.Created = blocked != 0, k.db.clock.wall(created)
	if ttl != nil {
		m.TTL = duration(*ttl)
	}
	m.CorrelationID, m.OrderingKey = text(corr), text(key)
	t.claim.Token = k.number
	m.Attempt.Number = t.claim.Tries + 1
	t.hold = hold{
		owner: k.owner, token: k.number, lane: t.lane, key: m.OrderingKey,
		tries: t.claim.Tries, cycle: m.Attempt.Cycle, failures: t.claim.Failures, revision: t.claim.Revision,
	}
	k.bytes += size
	k.rows = append(k.rows, t)
	return nil
}

// full reports whether there may be more rows than the call may read.
func (k *taking) full() bool { return k.bytes >= claimBytes }

// Of the messages that an owner had in hand when it died, one may be the cause. Those that met the
// fewest deaths are tried first, a few at a time. A message that met aloneAfter deaths in a row is
// tried by itself, and from then on a death is charged to it. So it runs out of attempts, and the
// others pay nothing.
const aloneAfter = 3

func (k *taking) takeSuspects(tx *ownTx) error {
	deaths, limit := 0, 0
	if err := tx.query(fewestDeaths, []any{k.lanes}, func(rows pgx.Rows) error {
		var n int64
		err := rows.Scan(&deaths, &n)
		limit = int(max(n/10, 10))
		return err
	}); err != nil || limit == 0 {
		return err
	}
	switch {
	case deaths >= aloneAfter:
		limit = 1
	case deaths > 1:
		limit = min(limit, 10)
	}
	had := len(k.rows)
	if err := tx.query(claimSuspects, []any{k.owner, k.number, claimBytes, k.lanes, deaths, limit}, k.read); err != nil {
		return err
	}
	for i := had; i < len(k.rows); i++ {
		k.rows[i].hold.suspect = true
	}
	return nil
}

// expire ends messages that have expired, instead of handing them out.
func (k *taking) expire(tx *ownTx) error {
	if len(k.expired) == 0 {
		return nil
	}
	var keys []orderingKey
	if err := tx.query(expireClaimed, []any{k.expired, k.owner}, func(rows pgx.Rows) error {
		var seq int64
		var lane int32
		var key *string
		err := rows.Scan(&seq, &lane, &key)
		tx.count(lane, holdfast.LaneCounts{Pending: -1, Expired: 1})
		if key != nil {
			keys = append(keys, orderingKey{lane, *key})
		}
		return err
	}); err != nil {
		return err
	}
	if err := tx.notices(k.expired, holdfast.Expired); err != nil {
		return err
	}
	// Here the locks come after the rows. Nobody who holds a lock waits for these rows, since this
	// claim owns them.
	if err := tx.lockKeys(keys); err != nil {
		return err
	}
	return tx.placeKeys(keys)
}

// look reads what else is in the lanes, in one round trip with the commit.
func (k *taking) look(tx *ownTx) {
	got := map[int32]int{}
	for i := range k.rows {
		got[k.rows[i].lane]++
	}
	for _, id := range k.lanes {
		if got[id] >= k.want[id] || k.full() {
			k.next[id] = 0
		}
	}
	tx.last = append(tx.last, statement{nextDue, []any{k.lanes, k.now}, func(rows pgx.Rows) error {
		var now int64
		var lane int32
		var due *int64
		var unplaced, suspects bool
		if err := rows.Scan(&now, &lane, &due, &unplaced, &suspects); err != nil {
			return err
		}
		_, more := k.next[lane] // set above: the next row is due now
		switch {
		case unplaced:
			k.next[lane] = 0
		case !more && due != nil && *due < heldDue:
			k.next[lane] = max(duration(*due-now), 0)
		}
		tx.after = append(tx.after, func() { k.db.claim.saw(unplaced, suspects) })
		return nil
	}})
}

// hold records what is in hand now, and where the next claim reads the lanes.
func (k *taking) hold() {
	c := &k.db.claim
	took := time.Since(k.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number>>32 != k.owner { // others have taken over these rows
		k.late, k.rows = true, nil
		return
	}
	if c.held == nil {
		c.held = map[int64]hold{}
	}
	got, last := map[int32]int{}, map[int32]int64{}
	for i := range k.rows {
		t := &k.rows[i]
		c.held[t.claim.Seq] = t.hold
		if t.hold.suspect {
			c.suspect++
			continue
		}
		got[t.lane]++
		last[t.lane] = max(last[t.lane], t.due)
	}
	for _, id := range k.whole {
		l := c.lane(id)
		l.whole = time.Now().Add(max(wholeEvery, wholeShare*took))
	}
	for _, id := range k.lanes {
		l := c.lane(id)
		floor := &l.floor
		if k.first {
			floor = &l.first
		}
		switch due := last[id]; {
		case due > 0 && (got[id] >= k.want[id] || k.full()):
			*floor = due
		case !k.full() && k.now > 0:
			*floor = k.now - floorSlack
		}
	}
}
