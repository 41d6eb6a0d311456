package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// ingest is the work of one Ingest call.
type ingest struct {
	list    []ingested
	results []holdfast.Result
	bytes   int
	turn    uint64 // the history that the names are of
}

// ingested is a notification on its way into the tables.
type ingested struct {
	notify.Incoming

	id      []byte
	site    string // as the tables hold it
	copies  enqueue
	invalid error
}

// Ingest implements notify.Store. Of several nodes that ingest one id at once
// one stores it, and the others see a duplicate.
func (db *DB) Ingest(ctx context.Context, list ...notify.Incoming) ([]holdfast.Result, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := db.usable(ctx); err != nil {
		return nil, fmt.Errorf("ingest notifications: %w", err)
	}
	var k *ingest
	if err := anew(func() (err error) {
		if k, err = db.newIngest(ctx, list); err != nil {
			return err
		}
		return db.ingests.do(ctx, k, k.bytes)
	}); err != nil {
		return nil, fmt.Errorf("ingest notifications: %w", err)
	}
	k.tell(ctx, db.log)
	return k.results, nil
}

// newIngest checks the notifications and looks the names of their copies up.
func (db *DB) newIngest(ctx context.Context, list []notify.Incoming) (*ingest, error) {
	k := &ingest{list: make([]ingested, len(list))}
	k.turn, _ = db.past.is()
	for i := range list {
		in := &k.list[i]
		in.Incoming = list[i]
		if in.invalid = in.prepare(db.opts.Source); in.invalid != nil {
			in.invalid = fmt.Errorf("ingest notification %s: %w", list[i].Notification.ID, in.invalid)
			continue
		}
		for j := range in.copies.entries {
			e := &in.copies.entries[j]
			var err error
			if e.route, err = db.route(ctx, e.names()); err != nil {
				return nil, err
			}
		}
		k.bytes += in.copies.bytes + len(in.Notification.Body) + len(in.Notification.Data) + 512
	}
	return k, nil
}

// prepare checks and encodes.
func (in *ingested) prepare(source string) error {
	ms, err := in.Normalized(source)
	if err != nil {
		return err
	}
	in.id, in.site = idBytes(in.Notification.ID), cleanText(in.Notification.Origin.Site)
	in.copies = enqueue{entries: make([]entry, len(ms))}
	for i := range ms {
		e := &in.copies.entries[i]
		if err := e.fill(ms[i]); err != nil {
			return err
		}
		e.sourced = true
		in.copies.bytes += len(ms[i].Payload) + 256
	}
	return nil
}

// tell logs what is new, once it is committed (OI-18).
func (k *ingest) tell(ctx context.Context, log *slog.Logger) {
	if !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for i := range k.list {
		if n := &k.list[i].Notification; k.results[i].Err == nil && !k.results[i].Receipt.Duplicate {
			log.LogAttrs(ctx, slog.LevelInfo, "notification stored", slog.String("message_id", string(n.ID)),
				slog.String("site", n.Origin.Site), slog.Int("copies", len(k.list[i].copies.entries)))
		}
	}
}

// ingestAll writes the calls of one group. A fault that may be one call's is
// found by writing each by itself.
func (db *DB) ingestAll(ctx context.Context, list []*call[*ingest]) {
	err := db.ingestGroup(ctx, list, true)
	if len(list) > 1 && blames(err) || isLocked(err) {
		byThemselves(db, list, db.ingestAlone)
		return
	}
	answer(list, err)
}

// ingestAlone writes one call, and waits for whom it has to wait.
func (db *DB) ingestAlone(ctx context.Context, list []*call[*ingest]) {
	answer(list, db.ingestGroup(ctx, list, false))
}

// ingestTries bounds how often others may be faster in between.
const ingestTries = 10

func (db *DB) ingestGroup(ctx context.Context, list []*call[*ingest], impatient bool) (err error) {
	for range ingestTries {
		if err = db.own(ctx, func(tx *ownTx) error {
			for _, c := range list {
				if err := tx.still(c.work.turn); err != nil {
					return err
				}
			}
			tx.impatient = impatient
			return tx.ingest(list)
		}); !errors.Is(err, errFaster) {
			return err
		}
	}
	return err
}

// errFaster says that an id came from elsewhere after it was looked for.
var errFaster = fmt.Errorf("another node has taken the id of a message meanwhile: %w", holdfast.ErrUnavailable)

// noteName names a notification.
type noteName struct{ id, site string }

func (in *ingested) name() noteName { return noteName{string(in.id), in.site} }

// knownNote is a notification that is there, or about to be.
type knownNote struct {
	hash  []byte
	state holdfast.State
}

// ingest stores what is new of several calls, and makes their results.
func (tx *ownTx) ingest(calls []*call[*ingest]) error {
	known, taken, err := tx.lookUpNotes(calls)
	if err != nil {
		return err
	}
	var fresh []*ingested
	for _, c := range calls {
		c.work.results = make([]holdfast.Result, len(c.work.list))
		for i := range c.work.list {
			in := &c.work.list[i]
			if in.decide(&c.work.results[i], known, taken) {
				fresh = append(fresh, in)
			}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	works := make([]*enqueue, len(fresh))
	for i, in := range fresh {
		works[i] = &in.copies
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
	return tx.exec(insertNotifications, noteArgs(fresh)...)
}

// lookUpNotes finds which notifications are known, and which ids messages have.
func (tx *ownTx) lookUpNotes(calls []*call[*ingest]) (known map[noteName]knownNote, taken map[string]bool, err error) {
	known, taken = map[noteName]knownNote{}, map[string]bool{}
	var ids, messages [][]byte
	var sites []string
	for _, c := range calls {
		for i := range c.work.list {
			in := &c.work.list[i]
			if in.invalid != nil {
				continue
			}
			ids, sites = append(ids, in.id), append(sites, in.site)
			for j := range in.copies.entries {
				messages = append(messages, in.copies.entries[j].id)
			}
		}
	}
	// In this order: whoever commits both in between is seen by the second.
	if err := tx.query(takenIDs, []any{messages}, func(rows pgx.Rows) error {
		var id []byte
		err := rows.Scan(&id)
		taken[string(id)] = true
		return err
	}); err != nil {
		return nil, nil, err
	}
	return known, taken, tx.query(findNotifications, []any{ids, sites}, func(rows pgx.Rows) error {
		var id []byte
		var site string
		var k knownNote
		var state int16
		err := rows.Scan(&id, &site, &k.hash, &state)
		k.state = holdfast.State(state)
		known[noteName{string(id), site}] = k
		return err
	})
}

// decide makes the result, and says whether the notification is to be stored.
func (in *ingested) decide(r *holdfast.Result, known map[noteName]knownNote, taken map[string]bool) bool {
	if r.Err = in.invalid; r.Err != nil {
		return false
	}
	conflict := func(why string) {
		r.Err = fmt.Errorf("ingest notification %s: %s: %w", in.Notification.ID, why, holdfast.ErrConflict)
	}
	if k, ok := known[in.name()]; ok {
		if string(k.hash) != string(in.Hash[:]) {
			conflict("its site has sent the id with other content")
			return false
		}
		r.Receipt = holdfast.Receipt{ID: in.Notification.ID, State: k.state, Duplicate: true}
		return false
	}
	for i := range in.copies.entries {
		if e := &in.copies.entries[i]; taken[string(e.id)] {
			conflict("another message has the id " + string(e.m.ID))
			return false
		}
	}
	for i := range in.copies.entries {
		taken[string(in.copies.entries[i].id)] = true
	}
	known[in.name()] = knownNote{in.Hash[:], holdfast.Pending}
	r.Receipt = holdfast.Receipt{ID: in.Notification.ID, State: holdfast.Pending}
	return true
}

// noteArgs are the parameters of insertNotifications.
func noteArgs(list []*ingested) []any {
	var ids, messages, hashes [][]byte
	var copies []int32
	var texts [9][]string // channel, type, list, subject, site, instance, script, execution, parent
	var enqueued []*int64
	for _, in := range list {
		n := &in.Notification
		o := &n.Origin
		for i := range in.copies.entries {
			ids, copies, messages = append(ids, in.id), append(copies, int32(i)), append(messages, in.copies.entries[i].id)
			for j, s := range [...]string{in.Channels[i], n.Type, n.List, n.Subject, in.site, o.Instance, o.Script, o.Execution, o.ParentExecution} {
				texts[j] = append(texts[j], cleanText(s))
			}
			var at *int64
			if !o.Enqueued.IsZero() {
				us := o.Enqueued.UnixMicro()
				at = &us
			}
			enqueued, hashes = append(enqueued, at), append(hashes, in.Hash[:])
		}
	}
	args := []any{ids, copies, messages}
	for _, list := range texts {
		args = append(args, list)
	}
	return append(args, enqueued, hashes)
}
