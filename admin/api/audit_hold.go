package api

import "time"

// NewAuditHold is what POST /v1/audit/holds takes.
type NewAuditHold struct {
	Name   string      `json:"name" minLength:"1" maxLength:"64" doc:"Under which it is released; of the case, for example. It is in the log for good." example:"case-2026-17"`
	Filter AuditFilter `json:"filter" doc:"Which records to keep, and with them all later ones of the same log. Not empty."`
	Reason string      `json:"reason" minLength:"1" maxLength:"1024" doc:"In one line. It is in the log for good." example:"inquiry of the inspectorate"`
	DryRun bool        `json:"dryRun,omitempty" doc:"Only say how many records match now."`
}

// AuditHold keeps records from being purged.
type AuditHold struct {
	Name   string      `json:"name"`
	Filter AuditFilter `json:"filter" doc:"Which records it keeps, and with them all later ones of the same log."`
	Reason string      `json:"reason"`
	Actor  string      `json:"actor,omitempty" doc:"Who has made it."`
	Since  time.Time   `json:"since,omitzero" doc:"Absent: it was not made, but tried."`
	// Records and More are in the answer to whoever makes a hold.
	Records int64 `json:"records,omitempty" doc:"How many records match."`
	More    bool  `json:"more,omitempty" doc:"At least so many: counting ended after a while."`
}

// AuditHolds are all holds of a node.
type AuditHolds struct {
	Holds []AuditHold `json:"holds" nullable:"false" doc:"By name."`
}

// AuditRelease is what POST /v1/audit/holds/{name}/release takes.
type AuditRelease struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"In one line. It is in the log for good."`
}
