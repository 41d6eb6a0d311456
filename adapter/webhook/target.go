package webhook

import "time"

// DefaultTimeout is the time that an exchange has if its Target says nothing. MaxTimeout is the most
// that it may have.
const (
	DefaultTimeout = 15 * time.Second
	MaxTimeout     = 2 * time.Minute
)

// Target is a subscriber as it is at one attempt. Only URL is needed.
type Target struct {
	URL     string            // absolute, http or https, without user and password
	Headers map[string]string // sent with each request; Validate refuses those that the product sets
	Auth    Auth
	Secrets []Secret // each that has not ended signs, in this order; none: requests are not signed
	Mode    Mode
	Timeout time.Duration // of the whole exchange; zero: DefaultTimeout
	TLS     TLS
}

// Auth authorizes requests by one of its fields, or not at all. A value that a subscriber wants to
// see unchanged in the header Authorization is a Key with that name.
type Auth struct {
	Bearer string
	Basic  *Basic
	Key    *Key
	OAuth2 *OAuth2
	ZGW    *ZGW
}

// Basic is a user and a password (RFC 7617).
type Basic struct{ User, Password string }

// Key is a secret in a header, such as X-Api-Key.
type Key struct{ Header, Value string }

// OAuth2 is the client credentials grant (RFC 6749, section 4.4). All targets with the same grant
// share a token, which is kept until a minute before it expires or until a target refuses it.
type OAuth2 struct {
	URL          string // of the token endpoint
	Client       string
	ClientSecret string
	Scopes       []string
}

// ZGW mints a token for each request, as the Dutch APIs for case management take it: a JWT signed by
// HS256, valid for 12 hours.
type ZGW struct{ Client, Secret string }

// Secret signs requests as in Standard Webhooks 1.0. Its mark says how: "whsec_" a shared secret (v1,
// HMAC-SHA256), "whsk_" the private half of a key pair (v1a, ed25519). While one replaces the other,
// both sign.
type Secret struct {
	Value string
	Until time.Time // when it ends; zero: never
}

// Mode is the form of a request.
type Mode string

// The modes. Attributes of a CloudEvent come from the headers of the message, named as on the wire:
// ce-type, ce-source and so on. A payload that is a CloudEvent already, by its content type, is the body in each
// mode. Without headers ce-id is the webhook-id, ce-source the source of the
// message and ce-type its endpoint.
const (
	Plain      Mode = "plain"      // the payload is the body; the zero value means the same
	Binary     Mode = "binary"     // CloudEvents 1.0, binary: the same body, attributes as headers
	Structured Mode = "structured" // CloudEvents 1.0, structured: one JSON document
	// Notificaties is Structured, but that a payload which is a notification of the Notificaties API becomes the
	// CloudEvent that Open Notificaties makes of it.
	Notificaties Mode = "notificaties"
)

// Headers of a message that change its request. Their names are in lower case.
const (
	HeaderID          = "webhook-id"   // sent in place of the message's id: of a message that is sent again on request
	HeaderContentType = "content-type" // of the payload; absent: application/json
	attribute         = "ce-"          // begins the name of an attribute
)

// TLS is what an https target needs besides the system's roots. All are PEM.
type TLS struct {
	CA        string // further authorities; empty: only the system's
	Cert, Key string // our own certificate; both or none
}
