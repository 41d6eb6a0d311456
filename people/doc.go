// Package people is what a node knows about those who sign in, without any I/O: a person, a
// session, hashes of passwords, and the codes of a second factor.
package people

import (
	"context"
	"errors"
	"time"
)

// ErrNoAdmin means that a change was refused since it would leave nobody who can operate the node for good: no
// person of Administers, and no token with the role admin that does not end.
var ErrNoAdmin = errors.New("nobody would be left who can operate the node")

// Person is somebody who signs in.
type Person struct {
	Name     string
	Display  string
	Rights   string // as api.Grant writes it
	Password string // see HashPassword; empty: none, so that nobody signs in by one
	Subject  string // issuer and subject at a provider; empty: none
	TOTP     string // the secret, sealed; empty: none
	Step     int64  // of the last code that was taken
	Codes    string // see NewCodes

	// The store sets these. Zero: it has not happened.
	Created, SignedIn, Disabled time.Time
}

// Guarded reports whether the person needs a second factor. It does also if the secret was lost with a
// damaged file: the recovery codes are then what is left.
func (p *Person) Guarded() bool { return p.TOTP != "" || p.Codes != "" }

// Administers reports whether the person can operate the node for good: with every right, and a password that
// no provider can take away.
func (p *Person) Administers() bool {
	return p.Rights == "admin" && p.Password != "" && p.Disabled.IsZero()
}

// Session is a person who has signed in.
type Session struct {
	ID     string
	Person string
	Via    string // ViaPassword or ViaProvider
	From   string // address of the request that began it
	// Pending: the second factor is still to come. Such a session gives no right.
	Pending bool
	// Idle is how long it lives without a request.
	Idle time.Duration

	// The store sets these.
	Created, Seen, Until time.Time
	Ended                bool // its time is over
}

// Opening is a session that begins.
type Opening struct {
	Session

	Lasts time.Duration // its life at most
	Hash  [32]byte      // of its secret
	// As is the person as they were when they proved who they are. Nil: After is the proof.
	As *Person
	// After is the id of a session of the same person that this one follows. It ends with that. Empty: none.
	After string
}

// The ways to sign in.
const (
	ViaPassword = "password"
	ViaProvider = "provider"
)

// Change is a change of a person.
type Change struct {
	Name  string
	Code  string // what the journal calls it
	Actor string
	Ends  bool   // the person's sessions end with it,
	But   string // except the one with this id
	// Quiet changes are not told to the journal: its caller tells what they belong to. They change no rights.
	Quiet bool
	// Force a change although it leaves nobody who can operate the node. Otherwise it is refused with ErrNoAdmin.
	Force bool
	// Disable or enable the person; neither: as before.
	Disable, Enable bool
	// Apply changes the other fields. It may be called more than once, and calls nothing.
	Apply func(p *Person) error
}

// Store keeps people and sessions. Its methods are atomic and may be called concurrently.
type Store interface {
	// AddPerson keeps a new person. holdfast.ErrConflict: the name or the subject is taken. ErrNoAdmin: it is not an
	// administrator, and there is none yet.
	AddPerson(ctx context.Context, p *Person, actor string) error
	// ChangePerson changes a person in one step. An error of Apply is returned and changes nothing. holdfast.ErrNotFound:
	// nobody has the name.
	ChangePerson(ctx context.Context, c *Change) error
	// RemovePerson removes a person with all sessions, or returns holdfast.ErrNotFound. ErrNoAdmin: without force, the
	// last administrator stays.
	RemovePerson(ctx context.Context, name string, force bool, actor string) error
	// Person returns a person by name, PersonBySubject by the provider's subject; or holdfast.ErrNotFound.
	Person(ctx context.Context, name string) (Person, error)
	PersonBySubject(ctx context.Context, subject string) (Person, error)
	// EachPerson calls yield for each person, by name.
	EachPerson(ctx context.Context, yield func(p *Person)) error

	// OpenSession keeps a session, and drops some whose time is over, whoever they are of. It returns holdfast.ErrNotFound
	// if the person is gone or disabled, if the password of Opening.As is another one by now or another number of
	// factors is asked for, and if the session Opening.After is gone.
	OpenSession(ctx context.Context, o *Opening) error
	// FindSession returns the living session with this hash and what its person may do now, or
	// holdfast.ErrNotFound. It is called for every request. If the request counts, the session lives on for its Idle, and
	// the store may record the time.
	FindSession(ctx context.Context, hash [32]byte, counts bool) (s Session, rights string, err error)
	// EndSession ends a session with this id, of this person; empty: of anybody. It returns holdfast.ErrNotFound if there is none.
	EndSession(ctx context.Context, id, person string) error
	// EndSessions ends all sessions of a person, and returns how many there were.
	EndSessions(ctx context.Context, person string) (int64, error)
	// EachSession calls yield for each session; of one person, if person is not empty.
	EachSession(ctx context.Context, person string, yield func(s *Session)) error
}
