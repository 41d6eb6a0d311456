package rows

import "github.com/holdfast-mq/holdfast"

// Message is one message. It is never claimed: a message that was in hand when a process died is
// pending.
type Message struct {
	Seq           int64          `row:"seq,key,split"`
	ID            holdfast.ID    `row:"id"`
	Source        string         `row:"source,exact"`
	Destination   string         `row:"destination,exact"`
	Kind          string         `row:"kind,exact"`
	Endpoint      string         `row:"endpoint,exact"`
	CorrelationID string         `row:"corr,exact"`
	OrderingKey   string         `row:"okey,exact"`
	Payload       []byte         `row:"payload"`
	Bundle        int64          `row:"bundle"`        // the bundle that has its payload; zero: none
	Headers       string         `row:"headers,exact"` // JSON, as stored
	Retry         string         `row:"retry,exact"`   // JSON, as stored
	TTL           int64          `row:"ttl"`           // microseconds; 0: none
	Broken        bool           `row:"-"`             // the content differs from what was accepted; this is final
	State         holdfast.State `row:"state"`
	Created       Instant        `row:"created"`
	Due           Instant        `row:"due"` // of a pending message that does not wait for its key
	Expires       Instant        `row:"expires"`
	FirstTry      Instant        `row:"first_try"`
	Settled       Instant        `row:"settled"`
	Start         Instant        `row:"start"` // of a message that waits for its key: not due earlier
	Failures      int64          `row:"failures"`
	Tries         int64          `row:"tries"`
	Cycle         int64          `row:"cycle"`
	Reason        string         `row:"reason"`
	Waits         bool           `row:"blocked"` // for another message with its ordering key
	Force         bool           `row:"force"`
	GivenUp       bool           `row:"given_up"` // discarded while in hand: the next owner ends it
}

// Bundle is the parent of some messages, with the payload that they share.
type Bundle struct {
	Seq     int64       `row:"seq,key"`
	Kind    string      `row:"kind,exact"`
	Source  string      `row:"source,exact"`
	ID      holdfast.ID `row:"id"`
	Hash    []byte      `row:"hash"` // of the content that may not change under its name; empty: lost, and the name alone decides
	Created Instant     `row:"created"`
	First   int64       `row:"first"`      // seq of its first message
	State   int64       `row:"state,null"` // final state of the first message once it is purged; zero: not purged, or delivered
	Payload []byte      `row:"payload"`
}

// Entry is one row of the journal, for a message that exists.
type Entry struct {
	Seq     int64   `row:"seq,key,split"`
	Message int64   `row:"message"`
	Kind    int64   `row:"kind"`
	State   int64   `row:"state"`
	At      Instant `row:"at"`
	Cycle   int64   `row:"cycle"`
	Attempt int64   `row:"attempt"`
	Outcome int64   `row:"outcome"`
	Charged bool    `row:"charged"`
	Maybe   bool    `row:"maybe"`
	Took    int64   `row:"took"` // microseconds
	Reason  string  `row:"reason"`
	Code    string  `row:"code"`
	Error   string  `row:"error"`
	Actor   string  `row:"actor"`

	// Only of entries that a copy leaves out: it takes those of messages.
	Subject string      `row:"subject,null"`
	ID      holdfast.ID `row:"id,null"`
	Detail  string      `row:"detail,null"`
}

// Incoming is an id that the inbox remembers, and its message if that is kept.
type Incoming struct {
	Seq       int64       `row:"seq,key,split"`
	Source    string      `row:"source,exact"`
	ID        holdfast.ID `row:"id"`
	Endpoint  string      `row:"endpoint,exact"`
	Hash      []byte      `row:"hash"`
	Kept      bool        `row:"kept"`
	Received  Instant     `row:"received"`
	Processed Instant     `row:"processed"`
	Expires   Instant     `row:"expires"`
	Response  []byte      `row:"response"`

	// Of a kept message.
	Kind          string `row:"kind,exact"`
	Payload       []byte `row:"payload"`
	Headers       string `row:"headers,exact"`
	CorrelationID string `row:"corr,exact"`
}

// Table implements Row.
func (*Message) Table() string { return "hf_message" }

// Table implements Row.
func (*Bundle) Table() string { return "hf_bundle" }

// Table implements Row.
func (*Entry) Table() string { return "hf_entry" }

// Table implements Row.
func (*Incoming) Table() string { return "hf_inbox" }
