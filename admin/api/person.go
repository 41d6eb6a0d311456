package api

import (
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/bearer"
)

// userPrefix begins the actor of what a person does. No name of a token has a colon.
const userPrefix = "user:"

// User returns the actor of what a person does.
func User(person string) string { return userPrefix + person }

// PersonOf returns the person who is an actor, if one is.
func PersonOf(actor string) (person string, ok bool) { return strings.CutPrefix(actor, userPrefix) }

// sessionPrefix marks the secret of a session.
const sessionPrefix = "hfs_"

// NewSessionSecret makes the secret of a session.
func NewSessionSecret() string { return bearer.New(sessionPrefix) }

// WellFormedSession reports whether a text can be the secret of a session.
func WellFormedSession(secret string) bool { return bearer.WellFormed(sessionPrefix, secret) }

// PersonGrant is what a person may do: a role or rights, as NewToken has them.
type PersonGrant struct {
	Role         Role     `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"A set of rights, as of tokens."`
	Rights       []Right  `json:"rights,omitempty" nullable:"false" doc:"In place of a role, as of tokens."`
	Sites        []string `json:"sites,omitempty" nullable:"false" doc:"Only at these sites, of which this node is one. Absent: at all."`
	Destinations []string `json:"destinations,omitempty" nullable:"false" doc:"Only what goes to these destinations. Absent: to all."`
	Topics       []string `json:"topics,omitempty" nullable:"false" doc:"Only what is about these topics. Absent: about all."`
}

// NewPerson is what POST /v1/people takes.
type NewPerson struct {
	Name     string `json:"name" minLength:"1" maxLength:"64" doc:"Under which the person signs in; histories show it with user: before it." example:"anna"`
	Display  string `json:"displayName,omitempty" maxLength:"128" doc:"For pages. Absent: the name."`
	Password string `json:"password" doc:"12 to 256 bytes. The node keeps a hash of it."`
	// These are a PersonGrant.
	Role         Role     `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"A set of rights, as of tokens."`
	Rights       []Right  `json:"rights,omitempty" nullable:"false" doc:"In place of a role, as of tokens."`
	Sites        []string `json:"sites,omitempty" nullable:"false" doc:"Only at these sites, of which this node is one. Absent: at all."`
	Destinations []string `json:"destinations,omitempty" nullable:"false" doc:"Only what goes to these destinations. Absent: to all."`
	Topics       []string `json:"topics,omitempty" nullable:"false" doc:"Only what is about these topics. Absent: about all."`
}

// Grant returns what the person may do.
func (n *NewPerson) Grant() PersonGrant {
	return PersonGrant{Role: n.Role, Rights: n.Rights, Sites: n.Sites, Destinations: n.Destinations, Topics: n.Topics}
}

// Set sets what the person may do.
func (n *NewPerson) Set(g PersonGrant) {
	n.Role, n.Rights, n.Sites, n.Destinations, n.Topics = g.Role, g.Rights, g.Sites, g.Destinations, g.Topics
}

// Person is somebody who may sign in.
type Person struct {
	Name    string `json:"name"`
	Display string `json:"displayName,omitempty"`
	Role    Role   `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"The role that has these rights, if one has."`
	Grant
	Password bool       `json:"password" doc:"There is a password to sign in with."`
	Provider bool       `json:"provider,omitempty" doc:"An identity provider signs the person in, and its groups give the rights."`
	TOTP     bool       `json:"totp" doc:"A second factor is asked for."`
	Codes    int        `json:"recoveryCodes,omitempty" doc:"Recovery codes that are left."`
	Created  *time.Time `json:"created,omitempty"`
	SignedIn *time.Time `json:"signedIn,omitempty" doc:"When the person last did. Absent: never."`
	Disabled *time.Time `json:"disabled,omitempty" doc:"Since when the person may not sign in. Absent: may."`
}

// PersonList holds all people, by name.
type PersonList struct {
	People []Person `json:"people" nullable:"false"`
}

// NewPassword is what PUT /v1/people/{name}/password takes.
type NewPassword struct {
	Password string `json:"password" doc:"The new one, of 12 to 256 bytes."`
	Current  string `json:"current,omitempty" doc:"The present one: needed by a person for their own."`
}

// NewTOTP is a secret that is not in use yet.
type NewTOTP struct {
	Secret  string `json:"secret" doc:"For an authenticator program, in base 32."`
	Address string `json:"address" doc:"The same as an otpauth URL, for a QR code."`
}

// EnrollTOTP is what PUT /v1/people/{name}/totp takes.
type EnrollTOTP struct {
	Secret   string `json:"secret" doc:"That POST has made."`
	Code     string `json:"code" doc:"That the authenticator program shows now."`
	Password string `json:"password,omitempty" doc:"The present password: needed by a person for their own second factor."`
}

// RecoveryCodes are shown once.
type RecoveryCodes struct {
	Codes []string `json:"codes" nullable:"false" doc:"Each signs in once in place of a code. The node keeps hashes of them."`
}

// Session is a person who has signed in.
type Session struct {
	ID      string     `json:"id"`
	Person  string     `json:"person"`
	Via     string     `json:"via" enum:"password,provider"`
	From    string     `json:"from,omitempty" doc:"The address from which the person signed in, as the node sees it."`
	Created *time.Time `json:"created,omitempty"`
	Seen    *time.Time `json:"seen,omitempty" doc:"Of its last request, to the minute."`
	Until   *time.Time `json:"until,omitempty" doc:"When it ends at the latest."`
	Current bool       `json:"current,omitempty" doc:"The request comes from this session."`
}

// SessionList holds sessions that live.
type SessionList struct {
	Sessions []Session `json:"sessions" nullable:"false"`
}

// Ended says how many sessions were ended.
type Ended struct {
	Ended int64 `json:"ended"`
}
