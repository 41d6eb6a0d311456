package api

import (
	"time"

	"github.com/holdfast-mq/holdfast/internal/bearer"
)

// Local is the actor of a request that needed no token.
const Local = "local"

// secretPrefix marks the secret of an API token.
const secretPrefix = "hf_"

// NewSecret makes a secret that nobody can guess.
func NewSecret() string { return bearer.New(secretPrefix) }

// WellFormed reports whether a text can be the secret of a token.
func WellFormed(secret string) bool { return bearer.WellFormed(secretPrefix, secret) }

// NewToken is what POST /v1/tokens takes. It names a role or rights, and may narrow them.
type NewToken struct {
	Name   string  `json:"name" minLength:"1" maxLength:"64" doc:"Who or what will use it; histories show it." example:"erp"`
	Role   Role    `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"A set of rights. read: read; operate: read, send and operate; auditor: audit-read and audit-export; admin: every right."`
	Rights []Right `json:"rights,omitempty" nullable:"false" doc:"In place of a role: read (look at everything but the audit), send, operate (retry, discard, reschedule, pause, mark done), audit-read, audit-export, audit-hold. Only the role has admin. Or portal, and portal-pause with it: what a subscriber may do about the subscriptions that destinations names."`
	// These are a Scope.
	Sites        []string `json:"sites,omitempty" nullable:"false" doc:"Only at these sites, of which this node is one. Absent: at all."`
	Destinations []string `json:"destinations,omitempty" nullable:"false" doc:"Only what goes to these destinations. Absent: to all."`
	Topics       []string `json:"topics,omitempty" nullable:"false" doc:"Only what is about these topics. Absent: about all."`

	For string `json:"for,omitempty" doc:"How long it is valid, such as 12h or 90d. Absent: until it is deleted; with portal an hour, and a day at most."`
}

// Token is a token without its secret.
type Token struct {
	Name string `json:"name"`
	Role Role   `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"The role that has these rights, if one has."`
	Grant
	Created  *time.Time `json:"created,omitempty"`
	LastUsed *time.Time `json:"lastUsed,omitempty" doc:"Absent: never, or it was not recorded."`
	Until    *time.Time `json:"until,omitempty" doc:"When it ends, or has ended. Absent: when it is deleted."`
	Ended    bool       `json:"ended,omitempty" doc:"It is not accepted any more, because its time is over."`
}

// CreatedToken is a new token with its secret. The secret is shown only once.
type CreatedToken struct {
	Name string `json:"name"`
	Role Role   `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"The role that has these rights, if one has."`
	Grant
	Until  *time.Time `json:"until,omitempty" doc:"When it ends. Absent: when it is deleted."`
	Secret string     `json:"secret" doc:"Send it as Authorization: Bearer …. The node keeps only a hash of it: it cannot be shown again."`
}

// Caller is who asks, and what they may do.
type Caller struct {
	Name string `json:"name" doc:"The token's name; local for a request that needed none."`
	Role Role   `json:"role,omitempty" enum:"read,operate,auditor,admin" doc:"The role that has these rights, if one has."`
	Grant
}

// TokenList holds all tokens of a node, by name.
type TokenList struct {
	Tokens []Token `json:"tokens" nullable:"false"`
}
