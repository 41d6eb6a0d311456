package fanout

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// Subscription asks for events, and says where and how they are delivered.
type Subscription struct {
	ID      string // a UUIDv7, or a name that a seed gives
	Version int64  // of the store; a replacement must name it; zero: not stored
	// Topics are names of topics, or * alone for all. Types of events and all else are Filter's.
	Topics []string
	Filter json.RawMessage // as package filter reads it; empty: every event
	Settings

	State   State
	Why     string    // of the state, for people; empty: nobody has said
	Actor   string    // who set the state
	Since   time.Time // of the state; set by the store, as the next two
	Created time.Time
	Changed time.Time // of this version
	Gone    bool      // it was deleted in this version
	Fault   string    // why it gets nothing until somebody puts it right; empty: there is no fault
	Lost    Lost      // of what is above; a replacement that keeps it keeps the rest as well
}

// Lost says what a damaged file has lost of a subscription.
type Lost uint8

// The parts that can be lost, each for itself.
const (
	LostTopics Lost = 1 << iota
	LostFilter
	LostSettings
)

// State says whether a subscription is served. The numbers are stored and never change.
type State int64

// The states of a subscription.
const (
	Active   State = 0
	Paused   State = 1 // its messages are stored and wait
	Disabled State = 2 // it gets no new messages, and those that it has wait
)

var stateNames = [...]string{"active", "paused", "disabled"}

func (s State) String() string {
	if s >= 0 && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Settings say where the events of a subscription go, and how. They are stored as JSON.
type Settings struct {
	Description   string            `json:"description,omitempty"`
	URL           string            `json:"url"`
	Headers       map[string]string `json:"headers,omitempty"`       // sent with each request
	Secrets       []Secret          `json:"secrets,omitempty"`       // that sign requests; none: they are not signed
	Authorization *Authorization    `json:"authorization,omitempty"` // of requests; nil: they have none
	TLS           *TLS              `json:"tls,omitempty"`           // nil: the usual one
	Mode          string            `json:"mode,omitempty"`          // of the adapter; empty: its default
	Schedule      *Schedule         `json:"schedule,omitempty"`      // nil: the node's
	Concurrency   int               `json:"concurrency,omitempty"`   // requests at a time; zero: DefaultConcurrency
	Rate          *Rate             `json:"rate,omitempty"`          // nil: no limit
	Timeout       time.Duration     `json:"timeout,omitempty"`       // of one request; zero: the adapter's
	Abonnement    *Abonnement       `json:"abonnement,omitempty"`    // nil: it is not one of the Notificaties API
}

// Secret signs the requests to a subscriber. It is stored sealed.
type Secret struct {
	Sealed string    `json:"sealed"`
	Until  time.Time `json:"until,omitzero"` // when it stops to sign; zero: never
}

// Rate limits how often each node calls a subscriber: at most Count times in any period of Per.
type Rate struct {
	Count int           `json:"count"` // requests
	Per   time.Duration `json:"per"`
}

// Bounds of a subscription.
const (
	// DefaultConcurrency is how many requests a subscriber gets at a time.
	DefaultConcurrency = 8
	// MaxSecrets is how many secrets a subscription may have.
	MaxSecrets     = 8
	maxConcurrency = 256
	maxTimeout     = 2 * time.Minute // as that of the adapter
	maxPer         = time.Hour
	maxCount       = 10_000
	maxTopics      = 100
	maxFilter      = 64 << 10
)

// LanePrefix begins the names of the lanes of subscriptions.
const LanePrefix = "subscription:"

// Lane returns the destination of the messages to a subscription.
func Lane(id string) string { return LanePrefix + id }

// SubscriptionOf returns the id of the subscription of a lane.
func SubscriptionOf(lane string) (id string, ok bool) { return strings.CutPrefix(lane, LanePrefix) }

// Validate returns all faults of a subscription, each a *holdfast.FieldError. It wraps ErrInvalid. What is lost is
// no fault: whoever changes something else leaves it so.
func (s *Subscription) Validate() error {
	faults := []error{checkName("id", s.ID)}
	if len(s.ID) > holdfast.MaxNameLen-len(LanePrefix) {
		faults = append(faults, fault("id", s.ID[:80], fmt.Sprintf("has %d bytes; at most %d fit", len(s.ID), holdfast.MaxNameLen-len(LanePrefix))))
	}
	if s.State < Active || s.State > Disabled {
		faults = append(faults, fault("state", int64(s.State), "must be active, paused or disabled"))
	}
	if s.Lost&LostTopics == 0 {
		faults = append(faults, s.checkTopics()...)
	}
	if s.Lost&LostFilter == 0 {
		faults = append(faults, s.checkFilter())
	}
	if s.Lost&LostSettings == 0 {
		faults = append(append(faults, s.checkAbonnement()), s.checkSettings()...)
	}
	return invalid(faults...)
}

func fault(field string, value any, problem string) error {
	return &holdfast.FieldError{Field: field, Value: fmt.Sprint(value), Problem: problem}
}

func (s *Subscription) checkTopics() (faults []error) {
	switch {
	case len(s.Topics) == 0:
		faults = append(faults, fault("topics", "", "is empty: name topics, or * for all"))
	case len(s.Topics) > maxTopics:
		faults = append(faults, fault("topics", len(s.Topics), fmt.Sprintf("names more than %d: use * and a filter", maxTopics)))
	case len(s.Topics) > 1 || s.Topics[0] != "*":
		for i, name := range s.Topics {
			if err := checkName(fmt.Sprintf("topics[%d]", i), name); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return faults
}

func (s *Settings) checkSettings() (faults []error) {
	faults = append(faults, checkText("description", s.Description), checkURL("url", s.URL), checkHeaders(s.Headers))
	if s.Concurrency < 0 || s.Concurrency > maxConcurrency {
		faults = append(faults, fault("concurrency", s.Concurrency, fmt.Sprintf("must be from 1 to %d, or 0 for %d", maxConcurrency, DefaultConcurrency)))
	}
	if s.Timeout < 0 || s.Timeout > maxTimeout {
		faults = append(faults, fault("timeout", s.Timeout, fmt.Sprintf("must be at most %s, or 0 for the default", maxTimeout)))
	}
	if r := s.Rate; r != nil && (r.Count < 1 || r.Count > maxCount || r.Per <= 0 || r.Per > maxPer) {
		faults = append(faults, fault("rate", fmt.Sprintf("%d per %s", r.Count, r.Per), fmt.Sprintf("must be 1 to %d per at most %s", maxCount, maxPer)))
	}
	if len(s.Secrets) > MaxSecrets {
		faults = append(faults, fault("secrets", len(s.Secrets), fmt.Sprintf("are more than %d: remove those that have ended", MaxSecrets)))
	}
	if s.Schedule != nil {
		if err := s.Schedule.Validate(); err != nil {
			faults = append(faults, err)
		}
	}
	return append(append(faults, s.checkAuthorization()...), s.checkTLS()...)
}

func (s *Subscription) checkFilter() error {
	if most := s.longest(); len(s.Filter) > most {
		return &holdfast.FieldError{Field: "filter", Value: fmt.Sprint(len(s.Filter), " bytes"), Problem: fmt.Sprintf("must be at most %d bytes", most)}
	}
	if len(s.Filter) == 0 {
		return nil
	}
	f, err := filter.Parse(s.Filter)
	if err != nil {
		return &holdfast.FieldError{Field: "filter", Value: fmt.Sprintf("%.80q", s.Filter), Problem: err.Error()}
	}
	return f.Validate(s.limits())
}

func checkHeaders(all map[string]string) error {
	size := 0
	for name, value := range all {
		size += len(name) + len(value)
		if name == "" || strings.ContainsAny(name+value, "\r\n\x00") {
			return &holdfast.FieldError{Field: "headers", Value: fmt.Sprintf("%.80q", name), Problem: "is no header of HTTP"}
		}
	}
	if len(all) > holdfast.MaxHeaders || size > holdfast.MaxHeaderSize {
		return &holdfast.FieldError{Field: "headers", Value: fmt.Sprint(len(all)), Problem: fmt.Sprintf("must be at most %d, of %d bytes together", holdfast.MaxHeaders, holdfast.MaxHeaderSize)}
	}
	return nil
}
