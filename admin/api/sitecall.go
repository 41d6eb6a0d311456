package api

import "time"

// SiteCall is what a site said last of one of its operations.
type SiteCall struct {
	Site        string     `json:"site"`
	ID          string     `json:"id" doc:"Of the operation, and of its message at the site."`
	Node        string     `json:"node,omitempty" doc:"Of the site, that has it."`
	Category    string     `json:"category" doc:"external-system or cached-db-write."`
	Destination string     `json:"destination"`
	Endpoint    string     `json:"endpoint"`
	Status      string     `json:"status" doc:"submitted, retrying, delivered, parked, failed, discarded or expired."`
	Retries     int64      `json:"retries"`
	LastError   string     `json:"lastError,omitempty"`
	HTTPStatus  int64      `json:"httpStatus,omitempty" doc:"Of the last attempt that failed."`
	Instance    string     `json:"originInstance,omitempty"`
	Script      string     `json:"sourceScript,omitempty"`
	Execution   string     `json:"executionId,omitempty"`
	Created     time.Time  `json:"created" doc:"By the clock of the site, as the other times of the call."`
	LastAttempt *time.Time `json:"lastAttempt,omitempty"`
	Ended       *time.Time `json:"ended,omitempty" doc:"Absent: it has not ended; a parked one waits for a person."`
	Seen        time.Time  `json:"seen" doc:"When this node took it."`
	Stuck       bool       `json:"stuck,omitempty" doc:"It is neither parked nor ended after 10 minutes."`
}

// SiteCallPage is one page of calls, the newest first.
type SiteCallPage struct {
	Calls []SiteCall `json:"calls" nullable:"false"`
	Next  string     `json:"next,omitempty" doc:"Give it as after for the next page. Absent: this is the last page. A page may be short and have it: the node reads so much for one page, and no more."`
}

// SiteCallCount is how many calls of a node of a site have not ended.
type SiteCallCount struct {
	Site string `json:"site"`
	Node string `json:"node,omitempty"`
	SiteCallSums
}

// SiteCallSums counts calls that have not ended.
type SiteCallSums struct {
	Waiting  int64 `json:"waiting" doc:"Not tried yet."`
	Retrying int64 `json:"retrying"`
	Parked   int64 `json:"parked" doc:"They wait for a person."`
	Stuck    int64 `json:"stuck" doc:"Of those that wait or are retried: older than 10 minutes. They are shown, and nothing else is done about them."`
}

// SiteCallCounts are the numbers of all sites' calls, by site and node.
type SiteCallCounts struct {
	Counts []SiteCallCount `json:"counts" nullable:"false"`
}
