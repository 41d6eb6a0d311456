package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// settleMost bounds the weight of one transaction, in messages.
const settleMost = 1000

// settle is the work of one Settle call.
type settle struct {
	list []holdfast.Settlement
	won  []bool
}

// Settle implements holdfast.Store. Concurrent calls share transactions.
func (db *DB) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := db.usable(ctx); err != nil {
		return nil, fmt.Errorf("settle %d messages: %w", len(list), err)
	}
	for i := range list {
		switch s := &list[i]; s.State {
		case holdfast.Delivered, holdfast.Pending, holdfast.Parked, holdfast.Discarded:
		case holdfast.Claimed, holdfast.Expired:
			fallthrough
		default:
			return nil, fmt.Errorf("settle seq %d: a claim cannot become %s: %w", s.Seq, s.State, holdfast.ErrState)
		}
	}
	k := &settle{list: list, won: make([]bool, len(list))}
	if err := db.settles.do(ctx, k, len(list)); err != nil {
		return nil, fmt.Errorf("settle %d messages: %w", len(list), err)
	}
	return k.won, nil
}

// settled is one settlement of a claim in hand.
type settled struct {
	s    *holdfast.Settlement
	won  *bool
	hold hold

	givenUp bool // an operator has discarded it meanwhile
}

func (db *DB) settleAll(ctx context.Context, list []*call[*settle]) {
	err := db.settleGroup(ctx, list)
	if err != nil && len(list) > 1 && blames(err) {
		for _, c := range list {
			c.done <- db.settleGroup(ctx, []*call[*settle]{c})
		}
		return
	}
	answer(list, err)
}

func (db *DB) settleGroup(ctx context.Context, list []*call[*settle]) error {
	var rows []settled
	turn, _ := db.past.is() // the claims in hand belong to it
	for _, c := range list {
		clear(c.work.won)
		rows = db.claim.settling(rows, c.work)
	}
	if len(rows) == 0 {
		return nil
	}
	var err error
	if plain(rows) {
		err = db.settlePlain(ctx, turn, rows)
	} else {
		err = db.own(ctx, func(tx *ownTx) error {
			if err := tx.still(turn); err != nil {
				return err
			}
			return tx.settle(rows)
		})
	}
	db.claim.settled(rows, err == nil)
	return err
}

// plain reports whether all rows were delivered, under one owner number, and no key needs a
// decision. Then one statement is enough.
func plain(rows []settled) bool {
	for i := range rows {
		if r := &rows[i]; r.s.State != holdfast.Delivered || r.s.Outcome == holdfast.NotStarted || r.hold.key != "" || r.hold.owner != rows[0].hold.owner {
			return false
		}
	}
	return true
}

func (db *DB) settlePlain(ctx context.Context, turn uint64, rows []settled) error {
	slices.SortFunc(rows, bySeq)
	var o outcomes
	for i := range rows {
		o.add(&rows[i])
	}
	text := settlePlain
	if db.names.notifies(o.rows) {
		text = settlePlainNotified
	}
	err := db.atOnce(ctx, turn, func(tx *ownTx) once {
		for i := range rows {
			*rows[i].won = false
		}
		return once{
			text,
			[]any{rows[0].hold.owner, o.seqs, o.claims, o.took, o.charged, o.detail, tx.owner},
			func(r pgx.Rows) error {
				var seq int64
				err := r.Scan(&seq, &tx.xid)
				if row := o.at[seq]; row != nil {
					*row.won = true
					tx.count(row.hold.lane, holdfast.LaneCounts{Pending: -1})
				}
				return err
			},
			proof{rows: &proofRows{isClaimed, claimed(rows)}, unless: true, then: func() {
				// Nothing is claimed any more: the settlement is done, only its answer was lost.
				for i := range rows {
					if !*rows[i].won {
						*rows[i].won = true
						tx.count(rows[i].hold.lane, holdfast.LaneCounts{Pending: -1})
					}
				}
			}},
		}
	})
	return err
}

func bySeq(a, b settled) int { return cmp.Compare(a.s.Seq, b.s.Seq) }

// settling finds the settlements of claims in hand, each once.
func (c *claims) settling(rows []settled, k *settle) []settled {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range k.list {
		s := &k.list[i]
		h, ok := c.held[s.Seq]
		if !ok || h.token != s.Token || h.settling {
			continue // another owner's claim, or one that has ended: their decision stands
		}
		h.settling = true
		c.held[s.Seq] = h
		rows = append(rows, settled{s: s, won: &k.won[i], hold: h})
	}
	return rows
}

func (c *claims) settled(rows []settled, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range rows {
		seq := rows[i].s.Seq
		h, ok := c.held[seq]
		if !ok || h.token != rows[i].hold.token || h.owner != rows[i].hold.owner {
			continue
		}
		if !done {
			h.settling = false
			c.held[seq] = h
			continue
		}
		delete(c.held, seq)
		if h.suspect {
			c.suspect--
		}
		if s := rows[i].s; s.State == holdfast.Pending {
			// A row that is given back keeps its due time, which is before the floor.
			if s.Outcome == holdfast.NotStarted {
				c.lane(h.lane).reread(h.tries > 0)
			}
		}
	}
}

// settle writes the outcomes of several calls in the order of their rows, one statement per kind.
// There is more than one owner number only for a moment after a lease was lost.
func (tx *ownTx) settle(rows []settled) error {
	slices.SortFunc(rows, bySeq)
	var keys []orderingKey
	for i := range rows {
		*rows[i].won, rows[i].givenUp = false, false
		if r := &rows[i]; r.hold.key != "" {
			keys = append(keys, orderingKey{r.hold.lane, r.hold.key})
		}
	}
	if err := tx.lockKeys(keys); err != nil {
		return err
	}
	tx.proof = proof{rows: &proofRows{isClaimed, claimed(rows)}, unless: true}
	for len(rows) > 0 {
		n := 0
		same, other := make([]settled, 0, len(rows)), rows[:0:0]
		for ; n < len(rows); n++ {
			if rows[n].hold.owner == rows[0].hold.owner {
				same = append(same, rows[n])
			} else {
				other = append(other, rows[n])
			}
		}
		if err := tx.settleOf(same[0].hold.owner, same); err != nil {
			return err
		}
		rows = other
	}
	return tx.placeKeys(keys)
}

// claimed returns the parameters of isClaimed. The rows of one owner are enough.
func claimed(rows []settled) []any {
	var seqs, claims []int64
	owner := rows[0].hold.owner
	for i := range rows {
		if r := &rows[i]; r.hold.owner == owner {
			seqs, claims = append(seqs, r.s.Seq), append(claims, r.s.Token)
		}
	}
	return []any{owner, seqs, claims}
}

func (tx *ownTx) settleOf(owner int64, rows []settled) error {
	var delivered, aside, pending, back outcomes
	for i := range rows {
		switch s := rows[i].s; {
		case s.Outcome == holdfast.NotStarted:
			back.add(&rows[i])
		case s.State == holdfast.Delivered:
			delivered.add(&rows[i])
		case s.State == holdfast.Parked || s.State == holdfast.Discarded:
			aside.add(&rows[i])
		default:
			pending.add(&rows[i])
		}
	}
	text := settleDelivered
	if tx.db.names.notifies(delivered.rows) {
		text = settleNotified
	}
	if err := tx.write(text, &delivered, owner, delivered.took, delivered.charged, delivered.detail); err != nil {
		return err
	}
	if err := tx.write(settleAside, &aside, owner, append(aside.words(), aside.state)...); err != nil {
		return err
	}
	if err := tx.write(settlePending, &pending, owner, append(pending.words(), pending.wait, pending.revision, pending.ends)...); err != nil {
		return err
	}
	if err := tx.write(giveBack, &back, owner); err != nil {
		return err
	}
	for _, r := range delivered.won() {
		tx.count(r.hold.lane, holdfast.LaneCounts{Pending: -1})
	}
	again := append(pending.won(), back.won()...)
	for _, r := range again {
		tx.wakes(r.hold.lane)
	}
	if slices.ContainsFunc(again, func(r *settled) bool { return r.givenUp }) {
		if err := tx.endGivenUp(); err != nil {
			return err
		}
	}
	return tx.setAside(aside.won())
}

// setAside completes rows that ended parked or discarded.
func (tx *ownTx) setAside(rows []*settled) error {
	var parked, givenUp []int64
	for _, r := range rows {
		state := r.s.State
		switch {
		case r.givenUp:
			state = holdfast.Discarded
			givenUp = append(givenUp, r.s.Seq)
		case state == holdfast.Parked:
			parked = append(parked, r.s.Seq)
		}
		tx.count(r.hold.lane, moved(holdfast.Pending, state))
	}
	if len(givenUp) > 0 {
		if err := tx.exec(discardFinal, givenUp, string(holdfast.ReasonOperator), nil); err != nil {
			return err
		}
	}
	return tx.notices(parked, holdfast.Parked)
}

// outcomes are settlements of one kind, as the parameters of its statement.
type outcomes struct {
	rows                 []*settled
	at                   map[int64]*settled
	seqs, claims         []int64
	took, wait, ends     []int64
	charged, maybe       []bool
	tried                []bool
	outcome, state       []int16
	revision             []int32
	reason, code, errors []*string
	detail               []*string
}

func (o *outcomes) add(r *settled) {
	s := r.s
	if o.at == nil {
		o.at = map[int64]*settled{}
	}
	o.rows, o.at[s.Seq] = append(o.rows, r), r
	o.seqs, o.claims = append(o.seqs, s.Seq), append(o.claims, s.Token)
	o.took, o.wait = append(o.took, micros(max(s.Took, 0))), append(o.wait, micros(max(s.RetryIn, 0)))
	o.state, o.revision = append(o.state, int16(s.State)), append(o.revision, int32(r.hold.revision))
	o.ends = append(o.ends, r.hold.ends)
	o.charged, o.maybe, o.outcome = append(o.charged, s.Charged), append(o.maybe, s.Maybe), append(o.outcome, int16(s.Outcome))
	// tried is whether a receiver may know the id since this attempt. An attempt that certainly
	// handed nothing over does not count (OI-10).
	o.tried = append(o.tried, s.Outcome != holdfast.Unreachable && s.Outcome != holdfast.LaneFault)
	o.reason, o.code = append(o.reason, nullText(cleanText(string(s.Reason)))), append(o.code, nullText(cleanText(s.Code)))
	o.errors, o.detail = append(o.errors, nullText(cleanText(s.Error))), append(o.detail, nullText(cleanText(string(s.Detail))))
}

func (o *outcomes) words() []any {
	return []any{o.took, o.charged, o.outcome, o.maybe, o.tried, o.reason, o.code, o.errors, o.detail}
}

// write runs the statement of one kind. It does not return the rows that belong to another claim.
func (tx *ownTx) write(sql string, o *outcomes, owner int64, more ...any) error {
	if len(o.seqs) == 0 {
		return nil
	}
	return tx.query(sql, append([]any{owner, o.seqs, o.claims}, more...), func(rows pgx.Rows) error {
		var seq int64
		var givenUp bool
		fields := rows.FieldDescriptions()
		dest := make([]any, len(fields))
		if dest[0] = &seq; len(fields) > 1 { // the last column
			dest[len(fields)-1] = &givenUp
		}
		err := rows.Scan(dest...)
		if r := o.at[seq]; r != nil {
			*r.won, r.givenUp = true, givenUp
		}
		return err
	})
}

func (o *outcomes) won() (list []*settled) {
	for _, r := range o.rows {
		if *r.won {
			list = append(list, r)
		}
	}
	return list
}

// cleanText replaces what PostgreSQL cannot store in a text from outside: NUL bytes and invalid
// UTF-8.
func cleanText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "�"), "�")
}

// settleUntried settles, in the background, claims that nobody else will settle.
func (db *DB) settleUntried(list []taken, s holdfast.Settlement) {
	settlements := make([]holdfast.Settlement, len(list))
	for i := range list {
		s.Seq, s.Token = list[i].claim.Seq, list[i].claim.Token
		settlements[i] = s
	}
	db.parts.Go(func() {
		if _, err := db.Settle(db.life, settlements...); err != nil {
			db.log.Error("could not settle claims that were not tried", slog.Int("count", len(list)), slog.Any("error", err))
			db.claim.letGo(list)
		}
	})
}
