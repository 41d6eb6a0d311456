package api

import "time"

// Health is how a node fares.
type Health struct {
	Status  string    `json:"status" enum:"ok,degraded,failing" doc:"degraded: it works, but something needs attention; failing: due messages make no progress, or nothing can be stored."`
	Node    string    `json:"node" doc:"The node's id."`
	Version string    `json:"version" doc:"Of the program."`
	Role    string    `json:"role,omitempty" doc:"site, central or standalone."`
	Started time.Time `json:"started,omitzero"`
	Pending int64     `json:"pending" doc:"Messages that wait to be sent: the depth of the outbox."`
	Parked  int64     `json:"parked" doc:"Messages that wait for a person."`
	Checks  []Check   `json:"checks,omitempty" nullable:"false"`
}

// Check is the result of one check.
type Check struct {
	Name   string `json:"name" example:"disk"`
	Status string `json:"status" enum:"ok,degraded,failing"`
	Detail string `json:"detail,omitempty" doc:"What the check found, and what to do."`
}

// The values of Status.
const (
	OK       = "ok"
	Degraded = "degraded"
	Failing  = "failing"
)

// OutboxStats are the numbers of the outbox (OI-17), kept in memory.
type OutboxStats struct {
	Pending int64 `json:"pending" doc:"Waiting to be sent."`
	Sending int64 `json:"sending" doc:"Being tried."`
	Failed  int64 `json:"failed" doc:"Parked: they wait for a person."`
	Expired int64 `json:"expired" doc:"Their TTL ended first."`
}

// InboxStats are the numbers of the inbox (OI-17), kept in memory.
type InboxStats struct {
	Size          int64   `json:"size" doc:"Ids remembered."`
	Kept          int64   `json:"kept" doc:"Messages that wait to be fetched."`
	Received      int64   `json:"received" doc:"Messages since the start, duplicates included."`
	Duplicates    int64   `json:"duplicates" doc:"Of them, repeats."`
	DuplicateRate float64 `json:"duplicateRate" minimum:"0" maximum:"1" doc:"Duplicates per message received; 0 before the first."`
}
