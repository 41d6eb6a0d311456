package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// bundling is the work of one Bundle call.
type bundling struct {
	list    []bundle
	results []holdfast.Result
	bytes   int
	turn    uint64 // the history in which the numbers of names are valid
}

// bundle is a bundle on its way into the tables.
type bundle struct {
	holdfast.Bundle
	id       []byte
	seq      int64 // of a new bundle
	messages enqueue
	invalid  error
}

// Bundle implements holdfast.Bundler. If several nodes write a bundle of the same name at once, one
// of them does, and the others see a duplicate.
func (db *DB) Bundle(ctx context.Context, list ...holdfast.Bundle) ([]holdfast.Result, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := db.usable(ctx); err != nil {
		return nil, fmt.Errorf("write bundles: %w", err)
	}
	var k *bundling
	if err := anew(func() (err error) {
		if k, err = db.newBundling(ctx, list); err != nil {
			return err
		}
		return db.bundles.do(ctx, k, k.bytes)
	}); err != nil {
		return nil, fmt.Errorf("write bundles: %w", err)
	}
	return k.results, nil
}

// newBundling checks the bundles and looks up the names of their messages.
func (db *DB) newBundling(ctx context.Context, list []holdfast.Bundle) (*bundling, error) {
	k := &bundling{list: make([]bundle, len(list))}
	k.turn, _ = db.past.is()
	for i := range list {
		b := &k.list[i]
		if b.invalid = b.fill(&list[i], db.opts.Source); b.invalid != nil {
			b.invalid = fmt.Errorf("write bundle %s: %w", list[i].ID, b.invalid)
			continue
		}
		for j := range b.messages.entries {
			e := &b.messages.entries[j]
			var err error
			if e.route, err = db.route(ctx, e.names()); err != nil {
				return nil, err
			}
		}
		k.bytes += len(b.Payload) + 768*len(b.Messages)
	}
	return k, nil
}

// fill checks and encodes a bundle.
func (b *bundle) fill(from *holdfast.Bundle, source string) (err error) {
	if b.Bundle, err = from.Normalize(source); err != nil {
		return err
	}
	if err := cmp.Or(rows.CheckParent(b.Parent), rows.CheckBeside(b.Rows...)); err != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	if b.Payload == nil {
		b.Payload = []byte{}
	}
	b.id = idBytes(b.ID)
	b.messages.entries = make([]entry, len(b.Messages))
	for i := range b.Messages {
		e := &b.messages.entries[i]
		if err := e.fill(b.Messages[i]); err != nil {
			return err
		}
		e.sourced = true
	}
	return nil
}

// bundleAll writes the calls of one group. If a fault may be one call's, it writes each call by
// itself to find out.
func (db *DB) bundleAll(ctx context.Context, list []*call[*bundling]) {
	err := db.bundleGroup(ctx, list, true)
	if len(list) > 1 && blames(err) || isLocked(err) {
		byThemselves(db, list, db.bundleAlone)
		return
	}
	answer(list, err)
}

// bundleAlone writes one call, and waits for the locks that it needs.
func (db *DB) bundleAlone(ctx context.Context, list []*call[*bundling]) {
	answer(list, db.bundleGroup(ctx, list, false))
}

// bundleTries bounds how often others may be faster.
const bundleTries = 10

func (db *DB) bundleGroup(ctx context.Context, list []*call[*bundling], impatient bool) (err error) {
	for try := range bundleTries {
		if err = db.own(ctx, func(tx *ownTx) error {
			for _, c := range list {
				if err := tx.still(c.work.turn); err != nil {
					return err
				}
			}
			tx.impatient = impatient
			return tx.bundle(list, try)
		}); !isTaken(err) {
			return db.unnamed(err)
		}
	}
	return errFaster
}

func isTaken(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, errFaster) || ok && e.ConstraintName == "hf_bundle_name"
}

// errFaster means that another node took a name after it was looked up, or that an id is taken,
// which the next attempt looks up.
var errFaster = fmt.Errorf("another node has taken the name of a bundle, or the id of a message, meanwhile: %w", holdfast.ErrUnavailable)

// bundleName names a bundle.
type bundleName struct {
	kind, source string
	id           holdfast.ID
}

func (b *bundle) name() bundleName { return bundleName{b.Kind, b.Source, b.ID} }

// knownBundle is a bundle that is stored, or about to be.
type knownBundle struct {
	hash  []byte         // empty: it is lost, and the name alone decides
	state holdfast.State // of its first message
}

// bundle stores the new bundles of several calls, and makes their results. It looks up the ids of
// messages only after an attempt has found one taken. An id that is taken is looked up once more: the
// message and its bundle may be purged between the two queries of one look.
func (tx *ownTx) bundle(calls []*call[*bundling], try int) error {
	known, taken, err := tx.lookUpBundles(calls, try > 0)
	if err != nil {
		return err
	}
	var fresh []*bundle
	clash := false
	for _, c := range calls {
		c.work.results = make([]holdfast.Result, len(c.work.list))
		for i := range c.work.list {
			b := &c.work.list[i]
			isNew, idTaken := b.decide(&c.work.results[i], known, taken)
			if isNew {
				fresh = append(fresh, b)
			}
			clash = clash || idTaken
		}
	}
	if clash && try == 1 {
		return errFaster
	}
	if len(fresh) == 0 {
		return nil
	}
	works := make([]*enqueue, 0, len(fresh))
	for _, b := range fresh {
		if len(b.messages.entries) == 0 {
			continue
		}
		works = append(works, &b.messages)
		for j := range b.messages.entries {
			b.messages.entries[j].bundle = b.seq
		}
	}
	if len(works) == 0 {
		return tx.insertBundles(fresh)
	}
	conflicts, err := tx.insert(works)
	if err != nil {
		return err
	}
	for i, k := range works {
		if conflicts[i] != nil {
			return errFaster
		}
		for _, r := range k.receipts {
			if r.Duplicate {
				return errFaster
			}
		}
	}
	return tx.insertBundles(fresh)
}

// lookUpBundles finds out which bundles are known, and, if ids is set, which ids messages have.
func (tx *ownTx) lookUpBundles(calls []*call[*bundling], ids bool) (known map[bundleName]knownBundle, taken map[string]bool, err error) {
	known, taken = map[bundleName]knownBundle{}, map[string]bool{}
	var list []*bundle
	var names, messages [][]byte
	var kinds, sources []string
	for _, c := range calls {
		for i := range c.work.list {
			b := &c.work.list[i]
			if b.invalid != nil {
				continue
			}
			list, names, kinds, sources = append(list, b), append(names, b.id), append(kinds, b.Kind), append(sources, b.Source)
			for j := range b.messages.entries {
				messages = append(messages, b.messages.entries[j].id)
			}
		}
	}
	// The order matters: if another transaction commits both in between, the second query sees it.
	if ids {
		if err := tx.query(takenIDs, []any{messages}, func(found pgx.Rows) error {
			var id []byte
			err := found.Scan(&id)
			taken[string(id)] = true
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	return known, taken, tx.query(findBundles, []any{names, kinds, sources}, func(found pgx.Rows) error {
		var n, seq int64
		var hash []byte
		var state int16
		if err := found.Scan(&n, &seq, &hash, &state); err != nil {
			return err
		}
		b := list[n-1]
		if b.seq = seq; seq == 0 {
			known[b.name()] = knownBundle{hash, holdfast.State(state)}
		}
		return nil
	})
}

// decide makes the result. It reports whether the bundle must be stored, and whether another message
// has the id of one of its messages.
func (b *bundle) decide(r *holdfast.Result, known map[bundleName]knownBundle, taken map[string]bool) (isNew, idTaken bool) {
	if r.Err = b.invalid; r.Err != nil {
		return false, false
	}
	conflict := func(why string) {
		r.Err = fmt.Errorf("write %s %s of %s: %s: %w", b.Kind, b.ID, b.Source, why, holdfast.ErrConflict)
	}
	if k, ok := known[b.name()]; ok {
		if len(k.hash) > 0 && !bytes.Equal(k.hash, b.Hash[:]) {
			conflict("it is known with other content")
			return false, false
		}
		r.Receipt = holdfast.Receipt{ID: b.ID, State: k.state, Duplicate: true}
		return false, false
	}
	for i := range b.messages.entries {
		if e := &b.messages.entries[i]; taken[string(e.id)] {
			conflict("another message has the id " + string(e.m.ID))
			return false, true
		}
	}
	for i := range b.messages.entries {
		taken[string(b.messages.entries[i].id)] = true
	}
	known[b.name()] = knownBundle{b.Hash[:], holdfast.Pending}
	r.Receipt = holdfast.Receipt{ID: b.ID, State: holdfast.Pending}
	return true, false
}

// insertBundles writes the bundles whose messages are written, and the rows beside those messages,
// in one round trip with the commit.
func (tx *ownTx) insertBundles(list []*bundle) error {
	var parents parentColumns
	var notes noteColumns
	var plain []rows.Row
	for _, b := range list {
		messages := b.messages.entries
		parents.add(b)
		if b.Parent != nil {
			plain = append(plain, rows.Parent(b.Parent, b.seq))
		}
		for j, r := range b.Rows {
			if n, ok := r.(*rows.Notification); ok {
				notes.add(n, &messages[j])
			} else {
				plain = append(plain, rows.Beside(r, messages[j].seq, b.seq))
			}
		}
	}
	if tx.proof.rows == nil { // none has a message
		tx.proof = proof{rows: &proofRows{isBundled, []any{parents.seqs}}}
	}
	tx.last = append(tx.last, statement{insertBundles, append(parents.args(), notes.args()...), nil})
	return tx.put(plain...)
}

// parentColumns are parameters of insertBundles, one array for each column of hf_bundle.
type parentColumns struct {
	seqs, firsts          []int64
	kinds, sources        []string
	ids, hashes, payloads [][]byte
}

func (c *parentColumns) add(b *bundle) {
	first := int64(0)
	if len(b.messages.entries) > 0 {
		first = b.messages.entries[0].seq
	}
	c.seqs, c.firsts = append(c.seqs, b.seq), append(c.firsts, first)
	c.kinds, c.sources = append(c.kinds, b.Kind), append(c.sources, b.Source)
	c.ids, c.hashes, c.payloads = append(c.ids, b.id), append(c.hashes, b.Hash[:]), append(c.payloads, b.Payload)
}

func (c *parentColumns) args() []any {
	return []any{c.seqs, c.kinds, c.sources, c.ids, c.hashes, c.payloads, c.firsts}
}

// noteColumns are parameters of insertBundles, one array for each column that notificationRow names.
type noteColumns struct {
	seqs, bundles, copies []int64
	ids, messages         [][]byte
	texts                 [9][]string // noteTexts
	enqueued              []*int64
}

// add adds the row that stands beside a message of a bundle.
func (c *noteColumns) add(n *rows.Notification, m *entry) {
	c.seqs, c.bundles, c.copies = append(c.seqs, m.seq), append(c.bundles, m.bundle), append(c.copies, n.Copy)
	c.ids, c.messages = append(c.ids, idBytes(n.ID)), append(c.messages, m.id)
	for i, s := range noteTexts(n) {
		c.texts[i] = append(c.texts[i], s)
	}
	c.enqueued = append(c.enqueued, noteEnqueued(n))
}

func (c *noteColumns) args() []any {
	args := []any{c.seqs, c.bundles, c.copies, c.ids, c.messages}
	for _, list := range c.texts {
		args = append(args, list)
	}
	return append(args, c.enqueued)
}

// noteTexts has the texts of notificationRow.
func noteTexts(n *rows.Notification) [9]string {
	texts := [...]string{n.Channel, n.Type, n.List, n.Subject, n.Site, n.Instance, n.Script, n.Execution, n.Parent}
	for i, s := range texts {
		texts[i] = cleanText(s)
	}
	return texts
}

// noteEnqueued is the instant of its site; nil: it is unknown.
func noteEnqueued(n *rows.Notification) *int64 {
	if n.Enqueued == int64(rows.None) {
		return nil
	}
	return &n.Enqueued
}
