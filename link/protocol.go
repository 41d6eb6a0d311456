package link

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
)

// Paths at which central serves sites, below its prefix.
const (
	EnrollPath   = "/v1/link/enroll"
	MessagesPath = "/v1/link/messages"
	PollPath     = "/v1/link/poll"
	AnswersPath  = "/v1/link/answers"
	StandingPath = "/v1/link/standing"
	// TelemetryPath takes the audit logs of sites.
	TelemetryPath = "/v1/link/telemetry"
)

// Paths returns all of them. Each takes POST.
func Paths() []string {
	return []string{EnrollPath, MessagesPath, PollPath, AnswersPath, StandingPath, TelemetryPath}
}

// Prefixes of tokens and credentials.
const (
	tokenPrefix      = "hfe_"
	credentialPrefix = "hfs_"
)

// codeDoubted is the answer to a token that has expired by a clock that the store doubts.
const codeDoubted = "clock_doubted"

const (
	// longestPoll is short enough for ordinary proxies.
	longestPoll = 30 * time.Second
	maxPoll     = 64 << 10 // bytes of a poll's request
	maxAnswers  = 4 << 20  // bytes of a request with answers
	maxEnroll   = 4 << 10
	maxOrders   = 64 // commands that wait for one site
	// maxReply is how many bytes of an answer a site reads. It has room for maxOrders commands, or
	// the results of a batch.
	maxReply = 1 << 20
)

// enrollment is the request that makes a credential known. Its bearer token is the enrolment token.
type enrollment struct {
	Credential string `json:"credential"`
	Version    string `json:"version,omitempty"`
}

type enrolled struct {
	Site string `json:"site"`
}

// polling asks for commands, and says how long to wait for one.
type polling struct {
	Health
	WaitMs int64 `json:"waitMs"`
}

// polled is the answer to polling. Replaced means that the same site has begun another poll: only
// the newest gets commands.
type polled struct {
	Incarnation string    `json:"incarnation"`
	Commands    []Command `json:"commands,omitempty"`
	Replaced    bool      `json:"replaced,omitempty"`
}

// Verb is what a command asks for.
type Verb string

// The verbs. A site answers an unknown verb with a problem.
const (
	List    Verb = "list"    // one page of messages over all destinations
	Show    Verb = "show"    // one message with payload and history
	Retry   Verb = "retry"   // Outbox.Requeue
	Discard Verb = "discard" // Outbox.Discard

	Reschedule Verb = "reschedule" // Outbox.Reschedule
)

// Command is what central asks a site to do for an operator. An operation id is the message id of
// its call, in any form of a UUID (SF-12, SF-28).
type Command struct {
	ID          string           `json:"id"` // set by Ask
	Verb        Verb             `json:"verb"`
	Message     holdfast.ID      `json:"message,omitempty"`
	States      []holdfast.State `json:"states,omitempty"` // of List; empty: parked, or all if Held
	Held        bool             `json:"held,omitempty"`   // of List: only messages that a doubted clock holds
	Destination string           `json:"destination,omitempty"`
	After       string           `json:"after,omitempty"`
	Limit       int              `json:"limit,omitempty"`
	TTL         time.Duration    `json:"ttlNs,omitempty"`
	In          time.Duration    `json:"inNs,omitempty"` // of Reschedule; zero: at once
	Force       bool             `json:"force,omitempty"`
	Actor       string           `json:"actor,omitempty"` // who asks, for the message's history
}

// check returns an error if central cannot have made the command. Of such a command only the id is
// kept.
func (c *Command) check() error {
	if _, err := holdfast.ParseID(c.ID); err != nil {
		return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: transport.CodeNoAck, Err: fmt.Errorf("central sends a command with an invalid id: %w", err)}
	}
	return nil
}

// Answer is what became of a command.
type Answer struct {
	ID      string          `json:"id"`
	Body    json.RawMessage `json:"body,omitempty"`
	Problem string          `json:"problem,omitempty"` // a code; empty: success
	Text    string          `json:"text,omitempty"`    // the problem in words
}

type answers struct {
	Answers []Answer `json:"answers"`
}

// Codes of problems.
const (
	problemNotFound    = "not_found"
	problemState       = "state"
	problemInvalid     = "invalid"
	problemUnavailable = "unavailable"
	problemDiskFull    = "disk_full"
	problemUnknown     = "unknown_command"
	problemTooLarge    = "too_large"
	problemFailed      = "failed"
)
