package nodestore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/people"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	ofPerson       = `name, display, role, password, subject, totp, step, codes, created, coalesce(signed_in, 0), coalesce(disabled, 0)`
	readPerson     = `SELECT ` + ofPerson + ` FROM hf_person WHERE name = $1`
	lockPerson     = `SELECT ` + ofPerson + ` FROM hf_person WHERE name = $1 FOR UPDATE`
	readSubject    = `SELECT ` + ofPerson + ` FROM hf_person WHERE subject = $1 AND subject <> ''`
	changePerson   = `UPDATE hf_person SET display = $2, role = $3, password = $4, totp = $5, step = $6, codes = $7, changed = hf_now() WHERE name = $1`
	disablePerson  = `UPDATE hf_person SET disabled = hf_now() WHERE name = $1`
	enablePerson   = `UPDATE hf_person SET disabled = NULL WHERE name = $1`
	dropPerson     = `DELETE FROM hf_person WHERE name = $1`
	signedInPerson = `UPDATE hf_person SET signed_in = hf_now() WHERE name = $1`
)

// People keeps who signs in, and their sessions.
type People struct {
	db  side.Store
	log *slog.Logger
}

var _ people.Store = (*People)(nil)

// scanPerson reads the columns ofPerson.
func (s *People) scanPerson(scan side.Scan, p *people.Person) error {
	var created, signedIn, disabled int64
	err := scan(&p.Name, &p.Display, &p.Rights, &p.Password, &p.Subject, &p.TOTP, &p.Step, &p.Codes, &created, &signedIn, &disabled)
	p.Created, p.SignedIn, p.Disabled = s.db.Time(rows.Instant(created)), s.since(signedIn), s.since(disabled)
	return err
}

// since converts an instant that may be absent.
func (s *People) since(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return s.db.Time(rows.Instant(at))
}

// AddPerson implements people.Store.
func (s *People) AddPerson(ctx context.Context, p *people.Person, actor string) error {
	detail, err := json.Marshal(map[string]string{"role": p.Rights})
	if err == nil {
		e := &holdfast.Entry{Kind: holdfast.PersonPut, Subject: p.Name, Code: "added", Actor: actor, Detail: detail}
		err = named(ctx, s.db, side.Cost{LastRoom: true}, e, holdfast.ErrConflict, func(tx side.Tx) (int64, error) {
			if all, err := lockAdmins(tx); err != nil || len(all) == 0 && !p.Administers() {
				return 0, cmp.Or(err, people.ErrNoAdmin)
			}
			return tx.Add(&rows.Person{
				Name: p.Name, Display: p.Display, Role: p.Rights, Password: p.Password, Subject: p.Subject, TOTP: p.TOTP, Step: p.Step, Codes: p.Codes,
				Created: rows.Now, Changed: rows.Now, SignedIn: rows.None, Disabled: rows.None,
			})
		})
	}
	if err != nil {
		return fmt.Errorf("add person %q: %w", p.Name, err)
	}
	return nil
}

// ChangePerson implements people.Store.
func (s *People) ChangePerson(ctx context.Context, c *people.Change) error {
	if err := s.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) error { return s.change(tx, c) }); err != nil {
		return fmt.Errorf("change person %q: %w", c.Name, err)
	}
	return nil
}

func (s *People) change(tx side.Tx, c *people.Change) error {
	var admins []admin
	if !c.Quiet {
		var err error
		if admins, err = lockAdmins(tx); err != nil {
			return err
		}
	}
	var p people.Person
	if err := tx.Read(lockPerson, []any{c.Name}, func(scan side.Scan) error { return s.scanPerson(scan, &p) }); err != nil {
		return err
	}
	if p.Name == "" {
		return holdfast.ErrNotFound
	}
	before := p.Rights
	if c.Apply != nil {
		if err := c.Apply(&p); err != nil {
			return err
		}
	}
	if stays := p.Administers() && !c.Disable; !stays && !c.Force && len(admins) == 1 && admins[0] == (admin{person: p.Name}) {
		return people.ErrNoAdmin
	}
	_, err := tx.Exec(changePerson, p.Name, p.Display, p.Rights, p.Password, p.TOTP, p.Step, p.Codes)
	if err == nil && c.Disable {
		_, err = tx.Exec(disablePerson, p.Name)
	}
	if err == nil && c.Enable {
		_, err = tx.Exec(enablePerson, p.Name)
	}
	if err == nil && c.Ends {
		_, err = tx.Exec(dropSessions, p.Name, c.But)
	}
	if err != nil || c.Quiet {
		return err
	}
	e := &holdfast.Entry{Kind: holdfast.PersonPut, Subject: p.Name, Code: c.Code, Actor: c.Actor}
	if p.Rights != before {
		e.Detail, _ = json.Marshal(map[string]string{"role": p.Rights, "before": before}) // texts
	}
	return tx.Note(e)
}

// RemovePerson implements people.Store.
func (s *People) RemovePerson(ctx context.Context, name string, force bool, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.PersonRemoved, Subject: name, Actor: actor}
	if err := named(ctx, s.db, side.Cost{LastRoom: true}, e, holdfast.ErrNotFound, func(tx side.Tx) (int64, error) {
		if err := keepAdmin(tx, admin{person: name}, force); err != nil {
			return 0, err
		}
		n, err := tx.Exec(dropPerson, name)
		if err == nil && n > 0 {
			_, err = tx.Exec(dropSessions, name, "")
		}
		return n, err
	}); err != nil {
		return fmt.Errorf("remove person %q: %w", name, err)
	}
	return nil
}

// Person implements people.Store.
func (s *People) Person(ctx context.Context, name string) (people.Person, error) {
	return s.person(ctx, readPerson, name)
}

// PersonBySubject implements people.Store.
func (s *People) PersonBySubject(ctx context.Context, subject string) (people.Person, error) {
	return s.person(ctx, readSubject, subject)
}

func (s *People) person(ctx context.Context, sql, key string) (p people.Person, err error) {
	err = s.db.Read(ctx, sql, []any{key}, func(scan side.Scan) error { return s.scanPerson(scan, &p) })
	if err == nil && p.Name == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return p, fmt.Errorf("find person: %w", err)
	}
	return p, nil
}

// EachPerson implements people.Store.
func (s *People) EachPerson(ctx context.Context, yield func(p *people.Person)) error {
	if err := s.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.Person)(nil))}, func(r rows.Row) error {
		p := r.(*rows.Person) //nolint:forcetypeassert // asked for
		yield(&people.Person{
			Name: p.Name, Display: p.Display, Rights: p.Role, Password: p.Password, Subject: p.Subject, TOTP: p.TOTP, Step: p.Step, Codes: p.Codes,
			Created: s.db.Time(p.Created), SignedIn: s.db.Time(p.SignedIn), Disabled: s.db.Time(p.Disabled),
		})
		return nil
	}); err != nil {
		return fmt.Errorf("list people: %w", err)
	}
	return nil
}
