package api

import "time"

// Operation is what became of a call of a foreign system, or of a write to a foreign database.
type Operation struct {
	ID          string `json:"id" doc:"The operation id: that of its message." example:"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"`
	Category    string `json:"category,omitempty" doc:"What it is: external-system (a call), cached-db-write (a write) or another; absent: the destination is not known any more."`
	Destination string `json:"destination" doc:"Where it goes."`
	Endpoint    string `json:"endpoint" doc:"What is called there."`
	Status      string `json:"status" enum:"submitted,retrying,delivered,failed,parked,expired,discarded" doc:"submitted: no attempt has failed yet; retrying: one has failed, another will be made; failed: the first attempt was refused for good; parked: it waits for a person."`
	Retries     int    `json:"retries" doc:"Attempts after the first of its cycle."`
	Failures    int    `json:"failures" doc:"Failed attempts of its cycle that count against the retry budget."`
	OwnRetry
	LastError   string     `json:"lastError,omitempty" doc:"What the last attempt that failed said."`
	Code        string     `json:"code,omitempty" doc:"A short, stable name of what went wrong." example:"http_503"`
	HTTPStatus  int        `json:"httpStatus,omitempty" doc:"The HTTP status of the last attempt that failed; absent: it had none." example:"503"`
	Site        string     `json:"site" doc:"Where it was submitted."`
	Node        string     `json:"node,omitempty" doc:"The node that has it."`
	Created     time.Time  `json:"created" doc:"When it was submitted."`
	Updated     time.Time  `json:"updated" doc:"When it was submitted, last tried or ended, whichever came last."`
	LastAttempt *time.Time `json:"lastAttempt,omitempty" doc:"Absent: never tried."`
	Ended       *time.Time `json:"ended,omitempty" doc:"Absent: not yet."`
	Purged      bool       `json:"purged,omitempty" doc:"Its message is gone; this is what is kept of it."`
	Provenance
}

// OperationPage is one page of a list.
type OperationPage struct {
	Operations []Operation `json:"operations" nullable:"false" doc:"Newest first."`
	Next       string      `json:"next,omitempty" doc:"Pass it as after to get the next page, also if this one is short or empty; absent: no more."`
}
