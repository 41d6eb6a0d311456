package api

import (
	"time"

	"github.com/holdfast-mq/holdfast/internal/bearer"
)

// Role is what a token allows. Each role includes the roles before it.
type Role string

// The roles.
const (
	Read    Role = "read"    // look
	Operate Role = "operate" // send, retry, discard, mark done
	Admin   Role = "admin"   // tokens, backups, channels, lists
)

// Local is the actor of a request that needed no token.
const Local = "local"

// Rank orders the roles; zero is not a role.
func (r Role) Rank() int {
	switch r {
	case Read:
		return 1
	case Operate:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// secretPrefix marks the secret of an API token.
const secretPrefix = "hf_"

// NewSecret makes a secret that nobody can guess.
func NewSecret() string { return bearer.New(secretPrefix) }

// WellFormed reports whether a text can be the secret of a token.
func WellFormed(secret string) bool { return bearer.WellFormed(secretPrefix, secret) }

// NewToken is what POST /v1/tokens takes.
type NewToken struct {
	Name string `json:"name" minLength:"1" maxLength:"64" doc:"Who or what will use it; histories show it." example:"erp"`
	Role Role   `json:"role" enum:"read,operate,admin" doc:"read: look at everything; operate: also send, retry, discard and mark done; admin: also make tokens and backups, and change channels and lists."`
}

// Token is a token without its secret.
type Token struct {
	Name     string     `json:"name"`
	Role     Role       `json:"role" enum:"read,operate,admin"`
	Created  *time.Time `json:"created,omitempty"`
	LastUsed *time.Time `json:"lastUsed,omitempty" doc:"Absent: never, or it was not recorded."`
}

// CreatedToken is a new token with its secret. The secret is shown only once.
type CreatedToken struct {
	Name   string `json:"name"`
	Role   Role   `json:"role" enum:"read,operate,admin"`
	Secret string `json:"secret" doc:"Send it as Authorization: Bearer …. The node keeps only a hash of it: it cannot be shown again."`
}

// TokenList holds all tokens of a node, by name.
type TokenList struct {
	Tokens []Token `json:"tokens" nullable:"false"`
}
