package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/people"
)

// Lives of a session, unless Service says otherwise.
const (
	DefaultSession = 12 * time.Hour
	DefaultIdle    = 30 * time.Minute
	pendingLife    = 5 * time.Minute // for the second factor
)

// How often somebody may try to sign in. Each node counts for itself. Behind a proxy all share its address.
const (
	namePerSecond    = 1.0 / 15
	nameBurst        = 20
	codePerSecond    = 1.0 / 300
	codeBurst        = 20
	addressPerSecond = 1
	addressBurst     = 30
)

// stranger is the actor of a sign-in by a name that nobody has: what stands there may be a password.
const stranger = "stranger"

// signing bounds guesses.
type signing struct {
	begin     sync.Once
	names     serve.Pace[string]
	codes     serve.Pace[string] // of the second factor; three are good at any time
	addresses serve.Pace[netip.Addr]
}

func (s *signing) ready() {
	s.begin.Do(func() {
		s.names.PerSecond, s.names.Burst = namePerSecond, nameBurst
		s.codes.PerSecond, s.codes.Burst = codePerSecond, codeBurst
		s.addresses.PerSecond, s.addresses.Burst = addressPerSecond, addressBurst
	})
}

// flooded counts a try from an address.
func (s *signing) flooded(from netip.Addr) bool {
	s.ready()
	return !s.addresses.Allow(serve.Group(from))
}

// crowded counts a guess at what a person knows, and refuses it if there were too many.
func (s *signing) crowded(name string) *api.Problem {
	s.ready()
	if s.names.Allow(api.Clip(name)) {
		return nil
	}
	return tooManyTries()
}

// guessed counts a try at a code of the second factor. Whoever comes here knows the password.
func (s *signing) guessed(name string) *api.Problem {
	s.ready()
	if s.codes.Allow(name) {
		return nil
	}
	return api.TooMany.Problem("there were too many codes; wait five minutes").With("Retry-After", "300")
}

func tooManyTries() *api.Problem {
	return api.TooMany.Problem("there were too many tries to sign in; wait a minute").With("Retry-After", "60")
}

// SignIn lets people in.
type SignIn struct{ *Service }

// SignedIn is a session that has begun.
type SignedIn struct {
	Secret  string // for the cookie
	Person  string
	Pending bool // Code must follow
}

// refusedSignIn is the one answer to whoever is not let in, so that nobody learns which names there are.
func refusedSignIn() *api.Problem {
	return api.Unauthorized.Problem("the name or the password is wrong, or the person may not sign in")
}

// Password begins a session of the person with a name and a password. An unknown name takes as long as a wrong password.
func (s SignIn) Password(ctx context.Context, name, password string, from netip.Addr) (in SignedIn, err error) {
	if s.People == nil {
		return in, noPeople()
	}
	if s.signing.flooded(from) {
		return in, s.told(ctx, stranger, people.ViaPassword, from, tooManyTries())
	}
	if p := s.signing.crowded(name); p != nil {
		return in, s.told(ctx, stranger, people.ViaPassword, from, p)
	}
	p, err := s.People.Person(ctx, name)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return in, s.refuse(ctx, "sign in", err)
	}
	if len(password) > mostPassword {
		password = ""
	}
	known := err == nil
	fits, old, err := people.VerifyPassword(ctx, p.Password, password)
	if err != nil {
		return in, s.refuse(ctx, "sign in", err)
	}
	if !fits || !known || !p.Disabled.IsZero() {
		actor := stranger
		if known {
			actor = api.User(name)
		}
		return in, s.told(ctx, actor, people.ViaPassword, from, refusedSignIn())
	}
	if old {
		s.renewHash(ctx, &p, password)
	}
	return s.open(ctx, &p, people.ViaPassword, people.Opening{Session: people.Session{Pending: p.Guarded()}, As: &p}, from)
}

// renewHash hashes a password with the present parameters.
func (s SignIn) renewHash(ctx context.Context, p *people.Person, password string) {
	hash, err := people.HashPassword(ctx, password)
	if err == nil {
		before := p.Password
		err = s.People.ChangePerson(ctx, &people.Change{Name: p.Name, Quiet: true, Apply: func(now *people.Person) error {
			if now.Password == before {
				now.Password = hash
			}
			p.Password = now.Password
			return nil
		}})
	}
	if err != nil { // the next time
		s.Log().WarnContext(ctx, "hash of a password not renewed", slog.String("person", p.Name), slog.Any("error", err))
	}
}

func (s *Service) life() time.Duration { return cmp.Or(s.SessionLife, DefaultSession) }

// open begins a session of somebody who has proved who they are, or half of it.
func (s SignIn) open(ctx context.Context, p *people.Person, via string, k people.Opening, from netip.Addr) (SignedIn, error) {
	k.Lasts = s.life()
	if k.Pending {
		k.Lasts = pendingLife
	}
	in := SignedIn{Secret: api.NewSessionSecret(), Person: p.Name, Pending: k.Pending}
	k.ID, k.Person, k.Via, k.Idle = string(holdfast.NewID()), p.Name, via, min(k.Lasts, cmp.Or(s.SessionIdle, DefaultIdle))
	k.Hash = sha256.Sum256([]byte(in.Secret))
	if from.IsValid() {
		k.From = from.String()
	}
	err := s.People.OpenSession(ctx, &k)
	switch {
	case errors.Is(err, holdfast.ErrNotFound): // disabled meanwhile, or what was verified has changed
		return SignedIn{}, s.told(ctx, api.User(p.Name), via, from, refusedSignIn())
	case err != nil:
		return SignedIn{}, s.refuse(ctx, "sign in", err)
	case k.Pending:
		return in, nil
	}
	return in, s.told(ctx, api.User(p.Name), via, from, nil)
}

// told records a sign-in and returns its result.
func (s SignIn) told(ctx context.Context, actor, via string, from netip.Addr, result *api.Problem) error {
	ctx = As(ctx, actor, api.Grant{})
	detail := []any{"via", via}
	if from.IsValid() {
		detail = append(detail, "from", from.String())
	}
	if result == nil {
		_ = s.Called(ctx, audit.CodeSignIn, "", nil, detail...) // it is logged
		s.noted(ctx, "signed in", slog.String("via", via))
		return nil
	}
	_ = s.Called(ctx, audit.CodeSignIn, "", result, detail...)
	return result
}

// Code ends a sign-in that Password has begun, by a code of the authenticator program or a recovery code. The
// pending session ends, and another one begins.
func (s SignIn) Code(ctx context.Context, secret, code string, from netip.Addr) (in SignedIn, err error) {
	k, err := s.found(ctx, secret)
	if err != nil || !k.Pending {
		return in, api.Unauthorized.Problem("the time for the code is over; sign in again")
	}
	if p := s.signing.guessed(k.Person); p != nil {
		return in, s.told(ctx, api.User(k.Person), k.Via, from, p)
	}
	var person people.Person
	err = s.People.ChangePerson(ctx, &people.Change{Name: k.Person, Quiet: true, Apply: func(p *people.Person) error {
		person = *p
		return s.takeCode(p, code)
	}})
	if errors.Is(err, errCode) {
		return in, s.told(ctx, api.User(k.Person), k.Via, from, api.Unauthorized.Problem("the code is wrong, or was used before"))
	}
	if err != nil {
		return in, s.refuse(ctx, "sign in", err)
	}
	return s.open(ctx, &person, k.Via, people.Opening{After: k.ID}, from)
}

func (s SignIn) found(ctx context.Context, secret string) (people.Session, error) {
	if s.People == nil || !api.WellFormedSession(secret) {
		return people.Session{}, holdfast.ErrNotFound
	}
	k, _, err := s.People.FindSession(ctx, sha256.Sum256([]byte(secret)), false)
	return k, err
}

// Out ends a session. One that is not known has ended.
func (s SignIn) Out(ctx context.Context, secret string) error {
	k, err := s.found(ctx, secret)
	if err == nil {
		err = s.People.EndSession(ctx, k.ID, k.Person)
	}
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil
	case err != nil:
		return s.refuse(ctx, "sign out", err)
	}
	_ = s.Called(As(ctx, api.User(k.Person), api.Grant{}), audit.CodeSignOut, "", nil) // it is logged
	return nil
}
