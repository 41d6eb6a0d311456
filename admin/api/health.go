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

// Overview is how a node fares, with the numbers that it has. What is not a part of its role is absent.
type Overview struct {
	Health

	Lanes         []LaneBrief   `json:"lanes" nullable:"false" doc:"Destinations and channels that are not up, or that have messages."`
	Outbox        OutboxStats   `json:"outbox"`
	Inbox         InboxStats    `json:"inbox"`
	Notifications *KPIs         `json:"notifications,omitempty" doc:"Of all sites together."`
	Audit         *AuditKPIs    `json:"audit,omitempty" doc:"Only for who has the right audit-read."`
	Sites         *SiteStates   `json:"sites,omitempty" doc:"Of a central."`
	SiteCalls     *SiteCallSums `json:"siteCalls,omitempty" doc:"Calls of all sites of a central that have not ended."`
	Unknown       []string      `json:"unknown,omitempty" nullable:"false" doc:"Parts whose numbers could not be read now."`
}

// LaneBrief is how one destination or channel fares, in short.
type LaneBrief struct {
	Name    string `json:"name" doc:"Of the destination; channel:NAME for a channel."`
	Lane    string `json:"lane" enum:"up,down,held,paused,unknown" doc:"As of GET /v1/destinations."`
	Pending int64  `json:"pending"`
	Parked  int64  `json:"parked"`
	Problem string `json:"problem,omitempty"`
}

// SiteStates counts sites by state.
type SiteStates struct {
	Online  int64 `json:"online"`
	Offline int64 `json:"offline"`
	Never   int64 `json:"never" doc:"Added, and not seen since."`
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
