package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// oldMessage is a message to be written into the new file.
type oldMessage struct {
	m     holdfast.Message
	row   sqlitefile.Row // of hf_message, with its seq
	body  sqlitefile.Row
	sound bool // the message is what was accepted
}

// unknownDestination is the destination of messages of which only the id is left.
const unknownDestination = "$unknown"

// messages salvages the rows that the table's tree leads to: the live ones or the final ones.
func (s *salvage) messages(ctx context.Context, final bool) (err error) {
	s.eachOf("hf_message", messageColumns, func(r sqlitefile.Row) {
		state := holdfast.State(r.Int(4))
		if err == nil && (state == holdfast.Delivered || state == holdfast.Discarded) == final {
			err = s.message(ctx, r)
		}
	})
	return err
}

// message salvages one row, if its body is found and matches.
func (s *salvage) message(ctx context.Context, r sqlitefile.Row) error {
	if idFrom(r.Values[1]) == "" {
		s.misfits++
		return nil // the index has it
	}
	if body, ok := s.body(r.ID); ok {
		if m, ok := s.match(r, body); ok {
			// By damage, another row may have this one's number: that row is still missing.
			if other, ok := s.missing[r.ID]; ok && idFrom(other.Values[1]) == m.ID {
				delete(s.missing, r.ID)
			}
			return s.put(ctx, oldMessage{m, r, body, true})
		}
	}
	s.missing[r.ID] = r
	return nil
}

func (s *salvage) body(seq int64) (sqlitefile.Row, bool) {
	if r, ok := s.stray[seq]; ok {
		return r, true
	}
	r, ok := s.old.Find(s.roots["hf_body"], seq)
	return r, ok && len(r.Values) == bodyColumns
}

// match finds the names with which the message is what was accepted.
func (s *salvage) match(r, body sqlitefile.Row) (holdfast.Message, bool) {
	hash, ok := body.Values[8].(int64)
	if !ok {
		return holdfast.Message{}, false
	}
	for _, route := range s.routes[r.Int(2)] {
		for _, destination := range s.lanes[route.lane] {
			if m := s.messageFrom(r, body, route, destination); messageHash(&m, body.Text(2), body.Text(5)) == hash {
				return m, true
			}
		}
	}
	return holdfast.Message{}, false
}

// matchAny is match for a row that has lost even the number of its route.
func (s *salvage) matchAny(r, body sqlitefile.Row) (m holdfast.Message, ok bool) {
	r.Values = slices.Clone(r.Values)
	for number := range s.routes {
		r.Values[2] = number
		if m, ok = s.match(r, body); ok {
			break
		}
	}
	return m, ok
}

func (s *salvage) messageFrom(r, body sqlitefile.Row, route oldRoute, destination string) holdfast.Message {
	return holdfast.Message{
		ID: idFrom(r.Values[1]), Source: route.source, Destination: destination, Kind: holdfast.Kind(route.kind), Endpoint: route.endpoint,
		OrderingKey: r.Text(14), Payload: s.contentOf(body), CorrelationID: body.Text(3), TTL: duration(body.Int(6)),
	}
}

// strayBytes limits the payloads of stray bodies and bundles in memory.
const strayBytes = 256 << 20

// strayMessages looks for bodies, bundles and messages on pages that no tree leads to.
func (s *salvage) strayMessages(ctx context.Context) (err error) {
	if len(s.missing) > 0 {
		s.eachOf("hf_body", bodyColumns, func(r sqlitefile.Row) {
			if _, ok := s.missing[r.ID]; ok {
				s.stray[r.ID] = r
			}
		})
	}
	bytes := 0
	s.orphans(func(table bool, r sqlitefile.Row) {
		if !table || len(r.Values) != bodyColumns || !r.Null(0) || bytes >= strayBytes {
			return
		}
		switch content := last(r).(type) {
		case int64: // a hash
			s.stray[r.ID] = r
			bytes += len(r.Bytes(4))
		case []byte: // of a bundle, which has as many columns as a body
			s.strayBundles[r.ID] = r
			bytes += len(content)
		}
	})
	for _, r := range s.missing {
		if err := s.message(ctx, r); err != nil {
			return err
		}
	}
	s.orphans(func(table bool, r sqlitefile.Row) {
		if _, known := s.missing[r.ID]; err == nil && table && len(r.Values) == messageColumns && r.Null(0) && !known {
			err = s.message(ctx, r)
		}
	})
	return err
}

// byIndex looks for messages that only the index of ids has, or that it has under another number.
func (s *salvage) byIndex(ctx context.Context) (err error) {
	if pages, rows := s.old.Damage(); pages+rows+s.misfits+len(s.missing) == 0 {
		return nil
	}
	s.byID = make(map[holdfast.ID]int64, len(s.missing))
	for seq, r := range s.missing {
		s.byID[idFrom(r.Values[1])] = seq
	}
	page := map[int64]driver.Value{}
	s.entries("sqlite_autoindex_hf_message_1", messageIndex, func(r sqlitefile.Row) {
		if err != nil || idFrom(r.Values[0]) == "" {
			return
		}
		page[r.Int(1)] = r.Values[0]
		if len(page) == 1000 {
			err = s.indexPage(ctx, page)
			clear(page)
		}
	})
	if err != nil {
		return err
	}
	return s.indexPage(ctx, page)
}

func (s *salvage) indexPage(ctx context.Context, page map[int64]driver.Value) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	if err := s.db.writer.inspect(ctx, func(c *conn) error {
		for seq, id := range page {
			found, err := c.one(salvageKnown, exists, id)
			if err != nil {
				return err
			}
			if found {
				delete(page, seq)
			}
		}
		return nil
	}); err != nil || len(page) == 0 {
		return err
	}
	for seq, id := range page {
		if err := s.lostRow(ctx, seq, id); err != nil {
			return err
		}
	}
	return nil
}

// lostRow salvages a message whose row is lost, or does not match its id.
func (s *salvage) lostRow(ctx context.Context, seq int64, id driver.Value) error {
	row, had := s.missing[seq]
	under := seq
	if !had {
		under = s.byID[idFrom(id)]
		row, had = s.missing[under]
	}
	if !had {
		row = s.stateRow(seq)
	}
	row.ID, row.Values = seq, slices.Clone(row.Values)
	row.Values[1] = id
	body, ok := s.body(seq)
	if !ok {
		body = sqlitefile.Row{Values: make([]any, bodyColumns)}
	}
	m, sound := s.match(row, body)
	if !sound && ok {
		m, sound = s.matchAny(row, body)
	}
	if had && !sound {
		return nil // broken salvages it
	}
	delete(s.missing, under)
	if !sound {
		m = s.guess(row, body)
	}
	return s.put(ctx, oldMessage{m, row, body, sound})
}

// oldState is what the indexes on states say about a message.
type oldState struct{ lane, state, due int64 }

// stateRow makes a row for a message whose own row is lost, from the indexes on states. A message
// in none of them was delivered, unless they are damaged too. Then it counts as pending: better
// twice than never.
func (s *salvage) stateRow(seq int64) sqlitefile.Row {
	if s.states == nil {
		s.states = map[int64]oldState{}
		due := s.entries("hf_message_due", 3, func(r sqlitefile.Row) {
			s.states[r.Int(2)] = oldState{r.Int(0), int64(holdfast.Pending), r.Int(1)}
		})
		aside := s.entries("hf_message_aside", 4, func(r sqlitefile.Row) {
			s.states[r.Int(1)] = oldState{r.Int(2), r.Int(0), 0}
		})
		s.listed = due && aside
	}
	now := s.db.clock.now()
	st, ok := s.states[seq]
	if !ok && s.listed {
		st.state = int64(holdfast.Delivered)
	}
	v := make([]any, messageColumns)
	v[3], v[4], v[5], v[6], v[10] = st.lane, st.state, max(st.due, now), now, int64(1)
	return sqlitefile.Row{ID: seq, Values: v}
}

// broken keeps what is left of messages whose content is lost. Operators find those that still had
// to be delivered parked.
func (s *salvage) broken(ctx context.Context) error {
	for _, r := range s.missing {
		body, ok := s.body(r.ID)
		if !ok {
			body = sqlitefile.Row{Values: make([]any, bodyColumns)}
		}
		if err := s.put(ctx, oldMessage{s.guess(r, body), r, body, false}); err != nil {
			return err
		}
	}
	return nil
}

// guess takes the first names to which a row leads.
func (s *salvage) guess(r, body sqlitefile.Row) holdfast.Message {
	destination := unknownDestination
	if names := s.lanes[r.Int(3)]; len(names) > 0 {
		destination = names[0]
	}
	route := oldRoute{}
	if list := s.routes[r.Int(2)]; len(list) > 0 {
		route = list[0]
		if names := s.lanes[route.lane]; len(names) > 0 {
			destination = names[0]
		}
	}
	return s.messageFrom(r, body, route, destination)
}

func (s *salvage) put(ctx context.Context, o oldMessage) error {
	return s.add(ctx, len(o.m.Payload), func(tx *writeTx) error { return s.insert(tx, &o) })
}

// salvageReason is the last error of messages that were parked because of their content.
const salvageReason = "the database file was damaged: the content of this message is lost or in doubt, and it was not sent"

// insert writes the row unless it exists: a row that an interrupted salvage has written may have
// been delivered since.
func (s *salvage) insert(tx *writeTx, o *oldMessage) error {
	r := &o.row
	state := holdfast.State(max(min(r.Int(4), 255), 0))
	if state > holdfast.Discarded {
		state = holdfast.Pending
	}
	tries, reason := max(r.Int(9), 0), r.Text(13)
	final := state == holdfast.Delivered || state == holdfast.Discarded
	switch {
	case !o.sound && !final:
		state, reason = holdfast.Parked, string(holdfast.ReasonUndecodable)
	case r.Int(18) == 1 && !state.Final(): // discarded while it was in hand
		state, reason = holdfast.Discarded, string(holdfast.ReasonOperator)
	case state == holdfast.Claimed:
		state, tries = holdfast.Pending, tries+1
	case state == holdfast.Parked && reason == "":
		reason = string(holdfast.ReasonUndecodable)
	}
	l, route, err := s.routeOf(tx, &o.m)
	if err != nil {
		return err
	}
	now := tx.tick()
	t := placeOld(r, state, now)
	if okey := r.Text(14); okey != "" && state == holdfast.Pending {
		if t.blocked, err = tx.keyIsBlocked(l, okey, r.ID); err != nil {
			return err
		}
		if t.blocked {
			t.due = t.expires
		}
	}
	seq, err := tx.conn.insert(salvageMessage, r.ID, r.Values[1], route, l.id, int64(state), t.due, t.created, nullInstant(t.expires),
		max(r.Int(8), 0), tries, max(r.Int(10), 1), t.firstTry, t.settled, nullText(reason), nullText(r.Text(14)), asBit(t.blocked), asBit(r.Int(16) == 1), asBit(false))
	if err != nil || seq == 0 {
		return err
	}
	var hash driver.Value
	if o.sound {
		hash = o.body.Int(8)
	}
	bundle, content := intOrNull(o.body, 1), o.body.Bytes(4)
	if bundle != nil {
		known, ok := s.notified(r.ID)
		if !ok {
			known, ok = s.published(r.ID)
		}
		if !ok || known.Seq != bundle { // nothing beside it would keep the bundle
			bundle, content = nil, o.m.Payload
		} else if err := s.keepBundle(tx, known, false); err != nil {
			return err
		}
	}
	if _, err := tx.exec(salvageBody, r.ID, bundle, payload(content), nullText(o.body.Text(2)), nullText(o.body.Text(3)),
		nullText(o.body.Text(5)), intOrNull(o.body, 6), intOrNull(o.body, 7), hash); err != nil {
		return err
	}
	if !o.sound && !final {
		if err := tx.event(&event{
			message: r.ID, kind: holdfast.Attempted, state: holdfast.Parked, cycle: int(max(r.Int(10), 1)), attempt: int(tries), outcome: holdfast.NotStarted,
			reason: reason, error: salvageReason,
		}); err != nil {
			return err
		}
	}
	tx.moves = append(tx.moves, change{l, none, state})
	if state == holdfast.Pending || state == holdfast.Parked {
		tx.expires(t.expires)
	}
	if state == holdfast.Pending {
		tx.fresh = append(tx.fresh, freshRow{lane: l, due: t.due})
	}
	s.count(func(d *Damage) { d.Salvaged.message(state, o.sound || final) })
	return nil
}

func (n *Salvaged) message(state holdfast.State, sound bool) {
	switch {
	case !sound:
		n.Broken++
	case state == holdfast.Pending:
		n.Pending++
	case state == holdfast.Parked:
		n.Parked++
	case state == holdfast.Expired:
		n.Expired++
	default:
		n.Final++
	}
}

// routeOf interns names. With the first message of a lane, it restores the lane's settings.
func (s *salvage) routeOf(tx *writeTx, m *holdfast.Message) (*lane, int64, error) {
	r, err := tx.route(m)
	if err != nil {
		return nil, 0, err
	}
	if old, ok := s.orders[m.Destination]; ok {
		if err := tx.restoreLane(r.lane, &old); err != nil {
			return nil, 0, err
		}
		tx.after = append(tx.after, func() { delete(s.orders, m.Destination) })
	}
	return r.lane, r.route, nil
}

// restoreLane gives a lane its settings from the old file, unless an operator has decided since, or
// the lane has another fault.
func (tx *writeTx) restoreLane(l *lane, old *oldLane) error {
	if err := tx.setOrder(l, old.order); err != nil {
		return err
	}
	if was := old.row; was.Decided != rows.None {
		if _, err := tx.exec(restoreDecision, l.id, asBit(was.Paused), int64(was.Decided), nullText(was.DecidedBy)); err != nil {
			return err
		}
	}
	if old.row.Fault == "" {
		return nil
	}
	_, err := tx.exec(restoreFault, l.id, old.row.Fault, nullInstant(old.row.FaultSince.From(0, never)))
	return err
}

// oldTimes are the times of a row, corrected to possible values.
type oldTimes struct {
	due, created, expires int64
	firstTry, settled     any
	blocked               bool
}

// placeOld keeps the times of a row if they are possible: the hash covers none of them.
func placeOld(r *sqlitefile.Row, state holdfast.State, now int64) oldTimes {
	t := oldTimes{due: r.Int(5), created: min(max(r.Int(6), 0), now), expires: never}
	if !r.Null(7) {
		t.expires = max(r.Int(7), t.created)
	}
	if !r.Null(11) {
		t.firstTry = min(r.Int(11), now)
	}
	if state != holdfast.Pending {
		t.settled = now
		if !r.Null(12) {
			t.settled = min(r.Int(12), now)
		}
		return t
	}
	const far = int64(10 * 365 * 24 * time.Hour / time.Microsecond)
	if r.Int(15) == 1 || t.due > now+far { // the message was blocked, or the delay is too long to be real
		t.due = now
	}
	t.due = min(t.due, t.expires)
	return t
}
