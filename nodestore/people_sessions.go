package nodestore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/people"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	ofSession    = `s.id, s.person, s.via, s.sender, s.pending, s.idle, s.created, s.seen, s.until`
	findSession  = `SELECT ` + ofSession + `, hf_now() - s.seen, p.role FROM hf_session AS s JOIN hf_person AS p ON p.name = s.person WHERE s.hash = $1 AND p.disabled IS NULL`
	sessionsOf   = `SELECT ` + ofSession + ` FROM hf_session AS s WHERE s.person = $1 ORDER BY s.person, s.id`
	endSession   = `UPDATE hf_session SET until = created + $2 WHERE id = $1`
	noteSession  = `UPDATE hf_session SET seen = hf_now() WHERE id = $1`
	dropOver     = `DELETE FROM hf_session WHERE id IN (SELECT id FROM hf_session WHERE until < hf_now() ORDER BY until LIMIT 100)`
	dropSession  = `DELETE FROM hf_session WHERE id = $1 AND ($2 = '' OR person = $2)`
	dropSessions = `DELETE FROM hf_session WHERE person = $1 AND id <> $2`
)

// sessionNoted is the precision with which a session's last request is recorded.
const sessionNoted = time.Minute

// OpenSession implements people.Store.
func (s *People) OpenSession(ctx context.Context, o *people.Opening) error {
	if err := s.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) error { return s.open(tx, o) }); err != nil {
		return fmt.Errorf("begin a session of %q: %w", o.Person, err)
	}
	return nil
}

func (s *People) open(tx side.Tx, o *people.Opening) error {
	var now people.Person
	if err := tx.Read(lockPerson, []any{o.Person}, func(scan side.Scan) error { return s.scanPerson(scan, &now) }); err != nil {
		return err
	}
	if now.Name == "" || !now.Disabled.IsZero() || o.As != nil && (now.Password != o.As.Password || now.Guarded() != o.As.Guarded()) {
		return holdfast.ErrNotFound
	}
	if o.After != "" {
		if n, err := tx.Exec(dropSession, o.After, o.Person); err != nil || n == 0 {
			return cmp.Or(err, holdfast.ErrNotFound)
		}
	}
	err := tx.Put(&rows.Session{
		ID: o.ID, Person: o.Person, Hash: o.Hash[:], Via: o.Via, Sender: o.From, Pending: o.Pending, Idle: rows.Micros(o.Idle),
		Created: rows.Now, Seen: rows.Now, Until: rows.Now,
	})
	if err == nil {
		_, err = tx.Exec(endSession, o.ID, rows.Micros(o.Lasts))
	}
	if err == nil && !o.Pending {
		_, err = tx.Exec(signedInPerson, o.Person)
	}
	if err == nil {
		_, err = tx.Exec(dropOver)
	}
	return err
}

// session is a session as it is read.
type session struct {
	people.Session

	idle, created, seen, until int64
}

func (k *session) fields() []any {
	return []any{&k.ID, &k.Person, &k.Via, &k.From, &k.Pending, &k.idle, &k.created, &k.seen, &k.until}
}

// lives judges both ends of a session. In doubt about the clock it is over.
func (k *session) lives(clock side.Clock) bool {
	idle := rows.Duration(k.idle)
	return clock.Judge(rows.Instant(k.until), rows.Duration(k.until-k.created)) == belief.Lives &&
		clock.Judge(rows.Instant(k.seen+k.idle), idle) == belief.Lives
}

func (s *People) told(k *session, clock side.Clock) *people.Session {
	k.Idle, k.Ended = rows.Duration(k.idle), !k.lives(clock)
	k.Created, k.Seen, k.Until = s.db.Time(rows.Instant(k.created)), s.db.Time(rows.Instant(k.seen)), s.db.Time(rows.Instant(k.until))
	return &k.Session
}

// FindSession implements people.Store.
func (s *People) FindSession(ctx context.Context, hash [32]byte, counts bool) (found people.Session, rights string, err error) {
	var k session
	var quiet int64
	err = s.db.Read(ctx, findSession, []any{hash[:]}, func(scan side.Scan) error { return scan(append(k.fields(), &quiet, &rights)...) })
	if err == nil && k.ID != "" {
		var clock side.Clock
		if clock, err = s.db.Clock(ctx); err == nil {
			found = *s.told(&k, clock)
		}
	}
	if err == nil && (k.ID == "" || found.Ended) {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return people.Session{}, "", fmt.Errorf("find session: %w", err)
	}
	if counts && quiet > rows.Micros(sessionNoted) {
		// On a full disk too: a person must not be sent away for want of a write.
		if err := s.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) error {
			_, err := tx.Exec(noteSession, k.ID)
			return err
		}); err != nil {
			s.log.WarnContext(ctx, "use of a session not noted", slog.String("person", k.Person), slog.Any("error", err))
		}
	}
	return found, rights, nil
}

// EndSession implements people.Store.
func (s *People) EndSession(ctx context.Context, id, person string) error {
	n := int64(0)
	err := s.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) (err error) {
		n, err = tx.Exec(dropSession, id, person)
		return err
	})
	if err == nil && n == 0 {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// EndSessions implements people.Store.
func (s *People) EndSessions(ctx context.Context, person string) (n int64, err error) {
	if err := s.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) (err error) {
		n, err = tx.Exec(dropSessions, person, "")
		return err
	}); err != nil {
		return 0, fmt.Errorf("end sessions of %q: %w", person, err)
	}
	return n, nil
}

// EachSession implements people.Store.
func (s *People) EachSession(ctx context.Context, person string, yield func(k *people.Session)) error {
	clock, err := s.db.Clock(ctx)
	switch {
	case err != nil:
	case person != "":
		err = s.db.Read(ctx, sessionsOf, []any{person}, func(scan side.Scan) error {
			var k session
			if err := scan(k.fields()...); err != nil {
				return err
			}
			yield(s.told(&k, clock))
			return nil
		})
	default:
		err = s.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.Session)(nil))}, func(r rows.Row) error {
			n := r.(*rows.Session) //nolint:forcetypeassert // asked for
			k := session{people.Session{ID: n.ID, Person: n.Person, Via: n.Via, From: n.Sender, Pending: n.Pending}, n.Idle, int64(n.Created), int64(n.Seen), int64(n.Until)}
			yield(s.told(&k, clock))
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	return nil
}
