package api

import (
	"encoding/json"
	"time"
)

// Subscription asks for events, and says where and how they are delivered.
type Subscription struct {
	ID            string            `json:"id,omitempty" doc:"Minted if a request that makes one has none." example:"shop"`
	Topics        []string          `json:"topics" nullable:"false" doc:"Names of topics, or * alone for all." example:"[\"orders\"]"`
	Filter        json.RawMessage   `json:"filter,omitempty" doc:"Which events of these topics: a filter as in the guide. Absent: all." example:"{\"types\":[\"order.*\"]}"`
	Description   string            `json:"description,omitempty" maxLength:"1000" doc:"For people."`
	URL           string            `json:"url" maxLength:"2000" doc:"Where events are posted to." example:"https://shop.example/hooks"`
	Headers       map[string]string `json:"headers,omitempty" doc:"Sent with each request."`
	Secrets       []SigningSecret   `json:"secrets,omitempty" nullable:"false" doc:"They sign each request as Standard Webhooks do: each that has not ended, so that one can take over from another. Absent: requests are not signed."`
	Authorization *Authorization    `json:"authorization,omitempty" doc:"How requests are authorized. Absent: they are not."`
	TLS           *SubscriberTLS    `json:"tls,omitempty" doc:"What an https URL, and the token endpoint, need besides the authorities of the system."`
	Mode          string            `json:"mode,omitempty" enum:"plain,binary,structured,notificaties" doc:"plain: the data of the event is the body; binary and structured: as CloudEvents 1.0 say; notificaties: structured, and a notification of the Notificaties API becomes a CloudEvent as Open Notificaties makes it. Absent: plain."`
	Schedule      *Schedule         `json:"schedule,omitempty" doc:"When a message that was not delivered is tried again. Absent: as the node is configured."`
	Concurrency   int               `json:"concurrency,omitempty" minimum:"0" maximum:"256" doc:"Requests at a time. Absent: 8."`
	Rate          *Rate             `json:"rate,omitempty" doc:"The most requests in a period, of each node. Absent: no limit."`
	Timeout       string            `json:"timeout,omitempty" doc:"The longest time for one request and its answer, such as 10s; at most 2m. Absent: 15s."`
	Abonnement    *Abonnement       `json:"abonnement,omitempty" doc:"What a client of the Notificaties API has asked for. If you send it without topics and filter, these are made of it; if you do not send it, it stays."`
	Version       string            `json:"version,omitempty" doc:"If you send it and it is not the present version, nothing is changed."`

	State   string     `json:"state,omitempty" enum:"active,paused,disabled" doc:"paused: messages are stored and wait; disabled: there are no new ones either. Ignored in requests, as all that follows."`
	Why     string     `json:"why,omitempty" doc:"Why it is in this state."`
	Actor   string     `json:"actor,omitempty" doc:"Who set the state; subscriber: it answered 410."`
	Since   *time.Time `json:"since,omitempty" doc:"Since when it is in this state."`
	Pending *int64     `json:"pending,omitempty" doc:"Messages that wait."`
	Parked  *int64     `json:"parked,omitempty" doc:"Messages that are parked."`
	Fault   string     `json:"fault,omitempty" doc:"Why it gets nothing until somebody puts it right."`
	Created *time.Time `json:"created,omitempty"`
	Changed *time.Time `json:"changed,omitempty"`
}

// SigningSecret is a secret that signs requests. The node keeps it sealed, and never shows it.
type SigningSecret struct {
	Value string     `json:"value,omitempty" doc:"The secret, only in requests: whsec_ and base64 signs by HMAC-SHA256 (v1), whsk_ and base64 by ed25519 (v1a)." example:"whsec_bm90IGEgc2VjcmV0LCBvbmx5IGFuIGV4YW1wbGU="`
	Mark  string     `json:"mark,omitempty" doc:"Stands for a secret that is kept. A request that gives it back keeps the secret."`
	Until *time.Time `json:"until,omitempty" doc:"When it stops to sign. Absent: never."`
}

// KeptSecret is a secret that the node keeps sealed, and never shows.
type KeptSecret struct {
	Value string `json:"value,omitempty" doc:"The secret, only in requests."`
	Mark  string `json:"mark,omitempty" doc:"Stands for a secret that is kept. A request that gives it back keeps the secret."`
}

// Authorization says how requests to a subscriber are authorized. Its secret is good for its kind and for the
// hosts that it is sent to: if one of them changes, the secret must be given again.
type Authorization struct {
	Kind   string     `json:"kind" enum:"bearer,basic,key,oauth2,zgw" doc:"bearer: a token as it stands; basic: user and password; key: a secret in a header; oauth2: a token by client credentials; zgw: a JWT for each request, signed by HS256, as the Dutch APIs for case management take it."`
	User   string     `json:"user,omitempty" doc:"Of basic."`
	Header string     `json:"header,omitempty" doc:"Of key: the name of the header." example:"X-Api-Key"`
	URL    string     `json:"url,omitempty" doc:"Of oauth2: the token endpoint."`
	Client string     `json:"client,omitempty" doc:"Of oauth2 and zgw: the id of the client."`
	Scopes []string   `json:"scopes,omitempty" nullable:"false" doc:"Of oauth2."`
	Secret KeptSecret `json:"secret" doc:"The token, the password, the key or the secret of the client."`
}

// SubscriberTLS is what a subscriber needs besides the authorities of the system.
type SubscriberTLS struct {
	CA   string      `json:"ca,omitempty" maxLength:"65536" doc:"Certificates of further authorities, in PEM."`
	Cert string      `json:"cert,omitempty" maxLength:"65536" doc:"The node's own certificate and its chain, in PEM."`
	Key  *KeptSecret `json:"key,omitempty" doc:"The key of cert, in PEM."`
}

// SubscriptionSpec is what POST /v1/subscriptions and PUT /v1/subscriptions/{id} take. It is a Subscription,
// so that a client can send back what it was shown.
type SubscriptionSpec Subscription

// Schedule is when a message that was not delivered is tried again: before retry c, from 0, it waits
// min(cap, factor · base^c).
type Schedule struct {
	Backoff string  `json:"backoff,omitempty" enum:"exponential,plain,off" doc:"plain: as with a factor of one second; off: each retry is at once. Absent: exponential."`
	Factor  string  `json:"factor,omitempty" doc:"Absent: as the node is configured, as the next three." example:"25s"`
	Base    float64 `json:"base,omitempty" example:"4"`
	Cap     string  `json:"cap,omitempty" doc:"The longest wait." example:"52000s"`
	Retries *int    `json:"retries,omitempty" minimum:"0" maximum:"1000" doc:"Attempts after the first." example:"7"`
}

// Rate is the most requests in a period.
type Rate struct {
	Count int    `json:"count" minimum:"1" maximum:"10000"`
	Per   string `json:"per" example:"1s"`
}

// SubscriptionPage is a page of subscriptions, by id.
type SubscriptionPage struct {
	Subscriptions []Subscription `json:"subscriptions" nullable:"false"`
	Next          string         `json:"next,omitempty" doc:"Send it as after for the next page. Absent: there is none."`
}

// StateChange is what POST /v1/subscriptions/{id}/pause, /resume and /disable take.
type StateChange struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why; it is shown with the state."`
}

// TestExchange is one request to a subscriber and its answer.
type TestExchange struct {
	URL       string              `json:"url"`
	Request   map[string][]string `json:"requestHeaders,omitempty" doc:"Without secrets."`
	Body      string              `json:"body"`
	Status    int                 `json:"status,omitempty" doc:"Absent: there was no answer."`
	Answer    map[string][]string `json:"answerHeaders,omitempty"`
	Response  string              `json:"response,omitempty" doc:"The beginning of the answer's body."`
	Cut       bool                `json:"cut,omitempty" doc:"The answer's body was longer, or broke off."`
	TookMS    float64             `json:"tookMs"`
	Delivered bool                `json:"delivered" doc:"An event would count as delivered."`
	Error     string              `json:"error,omitempty" doc:"Why it would not."`
}
