package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/people"
)

// People offers those who may sign in, and their sessions.
type People struct{ *Service }

// Bounds of a password, in bytes.
const (
	leastPassword = 12
	mostPassword  = 256
)

func noPeople() *api.Problem { return api.Unsupported.Problem("this node keeps no people") }

func noPerson(name string) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no person %q", api.Clip(name)), api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a person"})
}

// own refuses a caller who is neither the person nor an administrator, before anything is looked up.
func (s People) own(ctx context.Context, name string) *api.Problem {
	may := Granted(ctx)
	switch person, is := api.PersonOf(Actor(ctx)); {
	case !may.Can(api.Admin) && (!is || person != name):
		return api.RoleLacking.Problem("this needs the right admin, or to be the person that it is about")
	case s.People == nil:
		return noPeople()
	}
	return nil
}

// isSelf reports whether the person asks.
func isSelf(ctx context.Context, name string) bool { return Actor(ctx) == api.User(name) }

// refused turns an error of the store about a person into a problem.
func (s People) refused(ctx context.Context, doing, name string, err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return noPerson(name)
	case errors.Is(err, people.ErrNoAdmin):
		return api.Conflict.Problem("it is the last one with the role admin: nobody could operate the node; make another first, or say force",
			api.Fault{Field: "name", Value: api.Clip(name), Problem: "is the last of its role"})
	}
	return s.refuse(ctx, doing, err)
}

func personOf(p *people.Person) api.Person {
	may, _ := api.ParseGrant(p.Rights) // of a newer version: none
	return api.Person{
		Name: p.Name, Display: p.Display, Role: may.Role(), Grant: may, Password: p.Password != "", Provider: p.Subject != "", TOTP: p.Guarded(), Codes: people.CodesLeft(p.Codes),
		Created: instant(p.Created), SignedIn: instant(p.SignedIn), Disabled: instant(p.Disabled),
	}
}

// List returns all people by name.
func (s People) List(ctx context.Context) (list api.PersonList, err error) {
	if s.People == nil {
		return list, noPeople()
	}
	list.People = []api.Person{}
	if err := s.People.EachPerson(ctx, func(p *people.Person) { list.People = append(list.People, personOf(p)) }); err != nil {
		return list, s.refuse(ctx, "list people", err)
	}
	return list, nil
}

// Get returns a person.
func (s People) Get(ctx context.Context, name string) (api.Person, error) {
	if p := s.own(ctx, name); p != nil {
		return api.Person{}, p
	}
	p, err := s.People.Person(ctx, name)
	if err != nil {
		return api.Person{}, s.refused(ctx, "read the person", name, err)
	}
	return personOf(&p), nil
}

// grantOf reads what a person may do. What is for subscribers is for no person.
func grantOf(name string, g *api.PersonGrant) (api.Grant, []api.Fault) {
	may, _, faults := readToken(&api.NewToken{Name: name, Role: g.Role, Rights: g.Rights, Sites: g.Sites, Destinations: g.Destinations, Topics: g.Topics})
	if may.Can(api.Portal) {
		faults = append(faults, api.Fault{Field: "rights", Value: string(api.Portal), Problem: "is for tokens of subscribers"})
	}
	return may, faults
}

func checkPassword(field, name, password string) []api.Fault {
	switch {
	case len(password) < leastPassword || len(password) > mostPassword:
		return []api.Fault{{Field: field, Problem: fmt.Sprintf("must have %d to %d bytes", leastPassword, mostPassword)}}
	case name == password:
		return []api.Fault{{Field: field, Problem: "is the name"}}
	}
	return nil
}

// Add keeps a new person. Where nobody needed a token so far, the first one must be an administrator, since
// the node asks everybody to sign in from then on.
func (s People) Add(ctx context.Context, req *api.NewPerson, wrong ...api.Fault) (made api.Person, err error) {
	if s.People == nil {
		return made, noPeople()
	}
	grant := req.Grant()
	may, faults := grantOf(req.Name, &grant)
	faults = slices.Concat(wrong, faults, checkPassword("password", req.Name, req.Password))
	if len(req.Display) > 128 || slices.ContainsFunc([]rune(req.Display), unicode.IsControl) {
		faults = append(faults, api.Fault{Field: "displayName", Value: api.Clip(req.Display), Problem: "must be one line of at most 128 bytes"})
	}
	if len(faults) > 0 {
		return made, api.Faulty(withoutRepeats(faults)...)
	}
	hash, err := people.HashPassword(ctx, req.Password)
	if err == nil {
		err = s.People.AddPerson(ctx, &people.Person{Name: req.Name, Display: req.Display, Rights: may.String(), Password: hash}, Actor(ctx))
	}
	if errors.Is(err, holdfast.ErrConflict) {
		return made, api.Conflict.Problem(fmt.Sprintf("there is a person %q already; take another name", req.Name), api.Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if errors.Is(err, people.ErrNoAdmin) {
		return made, api.Conflict.Problem("nobody has the role admin yet, and once there is a person everybody needs a token or a password: add one with the role admin first",
			api.Fault{Field: "role", Problem: "must be admin for the first one"})
	}
	if err != nil {
		return made, s.refuse(ctx, "add the person", err)
	}
	if s.Peopled != nil {
		s.Peopled()
	}
	s.noted(ctx, "person added", slog.String("person", req.Name))
	now := time.Now().UTC().Truncate(time.Second)
	return api.Person{Name: req.Name, Display: req.Display, Role: may.Role(), Grant: may, Password: true, Created: &now}, nil
}

// change changes a person.
func (s People) change(ctx context.Context, doing string, c *people.Change) error {
	if s.People == nil {
		return noPeople()
	}
	c.Actor = Actor(ctx)
	if err := s.People.ChangePerson(ctx, c); err != nil {
		return s.refused(ctx, doing, c.Name, err)
	}
	s.noted(ctx, "person changed", slog.String("person", c.Name), slog.String("change", c.Code))
	return nil
}

// SetGrant gives a person other rights, at once.
func (s People) SetGrant(ctx context.Context, name string, g *api.PersonGrant, force bool, wrong ...api.Fault) error {
	may, faults := grantOf("name", g)
	if faults = slices.Concat(wrong, faults); len(faults) > 0 {
		return api.Faulty(withoutRepeats(faults)...)
	}
	return s.change(ctx, "change the rights", &people.Change{Name: name, Code: "rights", Force: force, Apply: func(p *people.Person) error {
		if p.Subject != "" {
			return api.WrongState.Problem("the groups of the identity provider give this person their rights; change them there")
		}
		p.Rights = may.String()
		return nil
	}})
}

// SetPassword gives a person another password. All their sessions end, except the one that asks.
func (s People) SetPassword(ctx context.Context, name string, req *api.NewPassword, wrong ...api.Fault) error {
	if p := s.own(ctx, name); p != nil {
		return p
	}
	if faults := slices.Concat(wrong, checkPassword("password", name, req.Password)); len(faults) > 0 {
		return api.Faulty(withoutRepeats(faults)...)
	}
	if isSelf(ctx, name) {
		if err := s.verified(ctx, name, "current", req.Current); err != nil {
			return err
		}
	}
	hash, err := people.HashPassword(ctx, req.Password)
	if err != nil {
		return s.refuse(ctx, "change the password", err)
	}
	return s.change(ctx, "change the password", &people.Change{Name: name, Code: "password", Ends: true, But: SessionID(ctx), Apply: func(p *people.Person) error {
		if p.Subject != "" {
			return api.WrongState.Problem("the identity provider signs this person in; there is no password here")
		}
		p.Password = hash
		return nil
	}})
}

// verified refuses a caller who does not know their own password. Guesses are limited as those of a sign-in are.
func (s People) verified(ctx context.Context, name, field, password string) error {
	if p := s.signing.crowded(name); p != nil {
		return p
	}
	p, err := s.People.Person(ctx, name)
	if err != nil {
		return s.refused(ctx, "read the person", name, err)
	}
	fits, _, err := people.VerifyPassword(ctx, p.Password, password)
	switch {
	case err != nil:
		return s.refuse(ctx, "verify the password", err)
	case !fits:
		return api.RoleLacking.Problem("the present password is another one", api.Fault{Field: field, Problem: "is not the password"})
	}
	return nil
}

// Disable ends the sessions of a person, who signs in no more until Enable.
func (s People) Disable(ctx context.Context, name string, force bool) error {
	return s.change(ctx, "disable the person", &people.Change{Name: name, Code: "disabled", Disable: true, Ends: true, Force: force})
}

// Enable lets a person sign in again.
func (s People) Enable(ctx context.Context, name string) error {
	return s.change(ctx, "enable the person", &people.Change{Name: name, Code: "enabled", Enable: true})
}

// Remove removes a person and their sessions.
func (s People) Remove(ctx context.Context, name string, force bool) error {
	if s.People == nil {
		return noPeople()
	}
	if err := s.People.RemovePerson(ctx, name, force, Actor(ctx)); err != nil {
		return s.refused(ctx, "remove the person", name, err)
	}
	s.noted(ctx, "person removed", slog.String("person", name))
	return nil
}
