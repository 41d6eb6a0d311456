package api

import "time"

// AuditErasure is what POST /v1/audit/erasures takes. It names one of person, value and record.
type AuditErasure struct {
	Person      string `json:"person,omitempty" maxLength:"1024" doc:"An address: each value that names it goes, in upper or lower case." example:"a.smit@example.org"`
	Value       string `json:"value,omitempty" maxLength:"65536" doc:"Each value that is exactly this goes."`
	Record      string `json:"record,omitempty" doc:"All values of the record of this event go."`
	Reason      string `json:"reason" minLength:"1" maxLength:"1024" doc:"In one line. It is in the log for good: do not name the person." example:"request 4711"`
	DespiteHold bool   `json:"despiteHold,omitempty" doc:"Also values of records that a hold keeps."`
	DryRun      bool   `json:"dryRun,omitempty" doc:"Only say how many would go."`
}

// AuditErased says what an erasure took.
type AuditErased struct {
	Records int64 `json:"records" doc:"Of which values went."`
	Values  int64 `json:"values"`
	Held    int64 `json:"held" doc:"Values that stay, because a hold keeps their records."`

	Unconfirmed []AuditUnconfirmed `json:"unconfirmed,omitempty" doc:"Which other nodes have not confirmed yet what was erased here, now or before."`
}

// AuditUnconfirmed is values that are erased here, and not yet, as far as is known, at a site or at central.
type AuditUnconfirmed struct {
	Site   string    `json:"site,omitempty" doc:"Absent: central."`
	Values int64     `json:"values"`
	Since  time.Time `json:"since" doc:"The oldest of them was erased here."`
}
