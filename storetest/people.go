package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/people"
)

// persons tests that people and their sessions are kept, and that a session ends with its time, with its
// person's rights, and by hand.
func persons(t *testing.T, m Maker) {
	t.Helper()
	errApply := errors.New("no")
	m.run(t, map[string]func(k *kit){
		"a person stays as added and changed": func(k *kit) {
			anna := people.Person{Name: "anna", Display: "Anna é", Rights: "admin", Password: "$argon2id$x", Subject: "https://issuer 17", TOTP: "hf1.a.b", Step: 7, Codes: "a b"}
			k.ok(k.People.AddPerson(k.ctx(), &anna, "local"))
			k.fails(k.People.AddPerson(k.ctx(), &people.Person{Name: "anna", Rights: "read"}, ""), holdfast.ErrConflict)
			k.fails(k.People.AddPerson(k.ctx(), &people.Person{Name: "other", Rights: "read", Subject: anna.Subject}, ""), holdfast.ErrConflict)
			k.reopen()
			got, err := k.People.PersonBySubject(k.ctx(), anna.Subject)
			k.ok(err)
			if got.Created.IsZero() || !got.SignedIn.IsZero() || !got.Disabled.IsZero() {
				k.t.Errorf("times of a new person: %+v", got)
			}
			got.Created = time.Time{}
			equal(k, "person", got, anna)
			k.fails(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Apply: func(*people.Person) error { return errApply }}), errApply)
			k.fails(k.People.ChangePerson(k.ctx(), &people.Change{Name: "bob"}), holdfast.ErrNotFound)
			k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Code: "grant", Apply: func(p *people.Person) error {
				p.Display, p.Rights, p.Password, p.TOTP, p.Step, p.Codes = "A", "read", "p", "", 8, ""
				return nil
			}, Force: true}))
			got, err = k.People.Person(k.ctx(), "anna")
			k.ok(err)
			equal(k, "changed", fmt.Sprint(got.Display, got.Rights, got.Password, got.TOTP, got.Step, got.Codes, got.Subject), "Areadp8https://issuer 17")
			_, err = k.People.PersonBySubject(k.ctx(), "")
			k.fails(err, holdfast.ErrNotFound)
			k.ok(k.People.RemovePerson(k.ctx(), "anna", false, ""))
			k.fails(k.People.RemovePerson(k.ctx(), "anna", false, ""), holdfast.ErrNotFound)
			_, err = k.People.Person(k.ctx(), "anna")
			k.fails(err, holdfast.ErrNotFound)
		},
		"the last administrator stays, unless it is forced": lastAdmin,
		"of two administrators who go at once one stays": func(k *kit) {
			admin := func(p *people.Person) error { p.Rights, p.Password = "admin", "p"; return nil }
			k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: "anna", Rights: "admin", Password: "p"}, ""))
			k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: "bob", Rights: "admin", Password: "p"}, ""))
			for range 20 {
				var both sync.WaitGroup
				errs := make([]error, 2)
				for i, name := range []string{"anna", "bob"} {
					both.Go(func() {
						errs[i] = k.People.ChangePerson(k.ctx(), &people.Change{Name: name, Disable: true})
					})
				}
				both.Wait()
				if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(cmp.Or(errs...), people.ErrNoAdmin) {
					k.t.Fatalf("both gave %v; want one refused", errs)
				}
				for _, name := range []string{"anna", "bob"} {
					k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: name, Enable: true, Apply: admin}))
				}
			}
		},
		"a session is found by its hash, with what its person may do now": func(k *kit) {
			k.person("anna", "read")
			k.session("s1", "anna", 1)
			k.found(1, "anna", "read")
			k.lost(2)
			k.lost(0)
			k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Apply: func(p *people.Person) error { p.Rights = "admin"; return nil }}))
			k.reopen()
			k.found(1, "anna", "admin")
			p, err := k.People.Person(k.ctx(), "anna")
			k.ok(err)
			if p.SignedIn.IsZero() {
				k.t.Error("nobody knows when anna has signed in")
			}
			k.fails(k.People.OpenSession(k.ctx(), &people.Opening{Session: people.Session{ID: "s9", Person: "bob", Idle: time.Hour}, Lasts: time.Hour, Hash: hash(9)}), holdfast.ErrNotFound)
		},
		"a session without requests ends, one with them ends with its life": func(k *kit) {
			k.person("anna", "read")
			k.session("idle", "anna", 1)
			k.session("used", "anna", 2)
			for range 7 {
				k.pass(20 * time.Minute)
				k.found(2, "anna", "read")
			}
			k.lost(1)
			k.reopen()
			k.pass(20 * time.Minute)
			k.found(2, "anna", "read")
			k.pass(21 * time.Minute) // three hours are over
			k.lost(2)
			k.person("bob", "read")
			k.session("new", "bob", 3)
			equal(k, "sessions", k.sessions(""), "new") // what is over is dropped, whoever it was of
		},
		"a session that is only looked at ends": func(k *kit) {
			k.person("anna", "read")
			k.session("s1", "anna", 1)
			for range 2 {
				k.pass(16 * time.Minute)
				_, _, err := k.People.FindSession(k.ctx(), hash(1), false)
				if err != nil {
					k.fails(err, holdfast.ErrNotFound)
					return
				}
			}
			k.t.Error("it lives on")
		},
		"a session begins only for who was verified": func(k *kit) {
			k.person("anna", "read")
			was, err := k.People.Person(k.ctx(), "anna")
			k.ok(err)
			begins := func(id string, n int, as *people.Person, after string) error {
				return k.People.OpenSession(k.ctx(), &people.Opening{Session: people.Session{ID: id, Person: "anna", Idle: time.Hour}, Lasts: time.Hour, Hash: hash(n), As: as, After: after})
			}
			k.ok(begins("s1", 1, &was, ""))
			k.ok(begins("s2", 2, nil, "s1"))
			k.lost(1)
			k.fails(begins("s3", 3, nil, "s1"), holdfast.ErrNotFound)
			for _, change := range []func(p *people.Person){func(p *people.Person) { p.Password = "new" }, func(p *people.Person) { p.TOTP = "hf1.a.b" }} {
				k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Apply: func(p *people.Person) error { change(p); return nil }}))
				k.fails(begins("s4", 4, &was, ""), holdfast.ErrNotFound)
				was, err = k.People.Person(k.ctx(), "anna")
				k.ok(err)
			}
			k.ok(begins("s4", 4, &was, ""))
			k.lost(3)
		},
		"a disabled person has no session and gets none": func(k *kit) {
			k.person("anna", "read")
			k.session("s1", "anna", 1)
			k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Disable: true}))
			k.lost(1)
			k.fails(k.People.OpenSession(k.ctx(), &people.Opening{Session: people.Session{ID: "s2", Person: "anna", Idle: time.Hour}, Lasts: time.Hour, Hash: hash(2)}), holdfast.ErrNotFound)
			k.reopen()
			k.lost(1)
			k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Enable: true}))
			k.session("s2", "anna", 2)
			k.found(2, "anna", "read")
		},
		"sessions end by hand, by a change and with their person": func(k *kit) {
			k.person("anna", "read")
			k.person("bob", "read")
			for i, id := range []string{"a1", "a2", "a3"} {
				k.session(id, "anna", i+1)
			}
			k.session("b1", "bob", 9)
			k.fails(k.People.EndSession(k.ctx(), "a1", "bob"), holdfast.ErrNotFound)
			k.ok(k.People.EndSession(k.ctx(), "a1", "anna"))
			k.lost(1)
			k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "anna", Ends: true, But: "a3"}))
			equal(k, "sessions", k.sessions("anna"), "a3")
			equal(k, "all sessions", k.sessions(""), "a3 b1")
			k.ok(k.People.EndSession(k.ctx(), "a3", ""))
			k.session("a4", "anna", 4)
			n, err := k.People.EndSessions(k.ctx(), "anna")
			k.ok(err)
			equal(k, "ended", n, int64(1))
			k.ok(k.People.RemovePerson(k.ctx(), "bob", false, ""))
			equal(k, "all sessions", k.sessions(""), "")
			k.lost(9)
		},
	})
}

func lastAdmin(k *kit) {
	k.t.Helper()
	k.fails(k.People.AddPerson(k.ctx(), &people.Person{Name: "bob", Rights: "read"}, ""), people.ErrNoAdmin)
	k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: "anna", Rights: "admin", Password: "p"}, ""))
	k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: "bob", Rights: "read", Password: "p"}, ""))
	weaker := func(p *people.Person) error { p.Rights = "operate"; return nil }
	for _, c := range []people.Change{{Disable: true}, {Apply: weaker}} {
		c.Name = "anna"
		k.fails(k.People.ChangePerson(k.ctx(), &c), people.ErrNoAdmin)
	}
	k.fails(k.People.RemovePerson(k.ctx(), "anna", false, ""), people.ErrNoAdmin)
	k.ok(k.People.ChangePerson(k.ctx(), &people.Change{Name: "bob", Disable: true}))
	k.ok(k.CreateToken(k.ctx(), "visit", "admin", time.Hour, hash(1), "")) // it ends
	k.fails(k.People.RemovePerson(k.ctx(), "anna", false, ""), people.ErrNoAdmin)
	k.ok(k.CreateToken(k.ctx(), "ci", "admin", 0, hash(2), ""))
	k.ok(k.People.RemovePerson(k.ctx(), "anna", false, ""))
	k.ok(k.DeleteToken(k.ctx(), "visit", false, ""))
	k.fails(k.DeleteToken(k.ctx(), "ci", false, ""), people.ErrNoAdmin)
	k.ok(k.DeleteToken(k.ctx(), "ci", true, ""))
	k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: "anna", Rights: "admin", Password: "p"}, ""))
	k.ok(k.People.RemovePerson(k.ctx(), "anna", true, ""))
}

// person adds somebody beside an administrator.
func (k *kit) person(name, rights string) {
	k.t.Helper()
	if _, err := k.People.Person(k.ctx(), "root"); err != nil {
		k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: "root", Rights: "admin", Password: "p"}, ""))
	}
	k.ok(k.People.AddPerson(k.ctx(), &people.Person{Name: name, Rights: rights}, ""))
}

// session begins one that lives for three hours, or half an hour without a request.
func (k *kit) session(id, person string, secret int) {
	k.t.Helper()
	s := people.Session{ID: id, Person: person, Via: people.ViaPassword, From: "192.0.2.7", Idle: 30 * time.Minute}
	k.ok(k.People.OpenSession(k.ctx(), &people.Opening{Session: s, Lasts: 3 * time.Hour, Hash: hash(secret)}))
}

func (k *kit) found(secret int, person, rights string) {
	k.t.Helper()
	s, r, err := k.People.FindSession(k.ctx(), hash(secret), true)
	if err != nil || s.Person != person || r != rights || s.Via != people.ViaPassword || s.From != "192.0.2.7" || s.Idle != 30*time.Minute || s.Until.Sub(s.Created).Round(time.Minute) != 3*time.Hour {
		k.t.Errorf("secret %d is of %+v with %s, %v; want %s with %s", secret, s, r, err, person, rights)
	}
}

func (k *kit) lost(secret int) {
	k.t.Helper()
	_, _, err := k.People.FindSession(k.ctx(), hash(secret), true)
	k.fails(err, holdfast.ErrNotFound)
}

func (k *kit) sessions(of string) string {
	k.t.Helper()
	var ids []string
	k.ok(k.People.EachSession(k.ctx(), of, func(s *people.Session) { ids = append(ids, s.ID) }))
	return strings.Join(ids, " ")
}
