package config

import (
	"time"

	"github.com/holdfast-mq/holdfast/adapter"
)

// Destination is a peer that messages are sent to, or a foreign system, such as an API or a database. A kind
// of adapter leads to a foreign system.
type Destination struct {
	URL         string
	Secret      Secret
	Foreign     adapter.Settings // instead of URL, Secret, HMAC, To and CA, if it is not a peer
	HMAC        HMAC
	To          string // the receiver's node id or source, which is signed; empty: not signed
	Retry       Retry
	TTL         time.Duration // Never: messages do not expire
	Timeout     time.Duration // of one attempt
	Concurrency int           // the most requests in flight
	Charge      Charge
	Order       Order
	Schedule    Schedule
	CA          string // path of an additional CA for https
}

// HMAC is the form of a message's signature.
type HMAC string

// The signature forms (OI-09).
const (
	HMACv2 HMAC = "v2"
	HMACv1 HMAC = "v1" // rf-hmac, for old peers
)

// Charge says which failed attempts count against a message's retries.
type Charge string

// The rules of charging (SF-07).
const (
	ChargeConnected    Charge = "connected"     // an attempt that reached nobody does not count
	ChargeEveryAttempt Charge = "every_attempt" // every attempt counts
)

// Order says what a parked message does to the messages behind it.
type Order string

// The orders.
const (
	OrderNone   Order = "none"
	OrderStrict Order = "strict" // it stops its ordering key
)

// Schedule says when messages are tried while the destination is down.
type Schedule string

// The schedules.
const (
	ScheduleLane    Schedule = "lane"    // one message at a time probes it, the others wait
	ScheduleMessage Schedule = "message" // each message keeps exactly its own schedule (WH-03)
)

// RetryWindow returns the longest time from a message's acceptance to the end of its last attempt, unless a
// person requeues it. A receiver must keep its ids at least twice as long (OI-10). False: no limit exists.
//
// The number of retries is not a limit: attempts that reached nobody are not charged, and a held lane waits
// for a person. Only the TTL is a limit. An attempt that began just before its end may take the whole
// timeout.
func (d Destination) RetryWindow() (time.Duration, bool) {
	if d.TTL == Never {
		return 0, false
	}
	return d.TTL + d.Timeout, true
}
