package api

import "time"

// CopyStatus is how one copy of a notification stands. There is one copy for each channel that the list used
// when the notification came.
type CopyStatus struct {
	Channel     string     `json:"channel" doc:"The channel that it goes over. Empty: its list had no channel when it came."`
	Message     string     `json:"message" doc:"The id of the copy's message. It is made of the notification's id, its site and, except for the first copy, the channel."`
	Status      string     `json:"status" enum:"pending,retrying,delivered,parked,discarded" doc:"pending: not tried yet; retrying: failed, and will be tried again; parked: waits for a person."`
	Reason      string     `json:"reason,omitempty" doc:"Why it is parked: exhausted, permanent or another; or discarded: operator."`
	Failures    int        `json:"failures" doc:"Failed attempts of this cycle that count against the budget."`
	Tries       int        `json:"tries" doc:"Attempts of this cycle, counted or not; those after the first are its retries."`
	Cycle       int        `json:"cycle" doc:"From 1; each retry by a person starts another."`
	LastError   string     `json:"lastError,omitempty" doc:"What the last attempt said."`
	Created     time.Time  `json:"created" doc:"When it came to central."`
	LastAttempt *time.Time `json:"lastAttempt,omitempty" doc:"Absent: never tried."`
	NextAttempt *time.Time `json:"nextAttempt,omitempty" doc:"Absent: none is planned."`
	Discarding  bool       `json:"discarding,omitempty" doc:"It was discarded while it was being tried. It ends with that attempt, unless the attempt delivers it."`
	Ended       *time.Time `json:"ended,omitempty" doc:"When it was delivered, parked or discarded."`
	Stuck       bool       `json:"stuck,omitempty" doc:"It has waited longer than usual. For people only: the node does nothing about it."`
}

// Notification is one copy of a notification, as lists show it.
type Notification struct {
	ID             string     `json:"id" doc:"The notification id, made where it was sent; id and site together name it." example:"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"`
	Type           string     `json:"type,omitempty" doc:"What its author calls it."`
	List           string     `json:"list" doc:"Who gets it."`
	Subject        string     `json:"subject"`
	Site           string     `json:"site,omitempty" doc:"Where it comes from."`
	OriginInstance string     `json:"originInstance,omitempty" doc:"Which instance of a program it comes from."`
	SourceScript   string     `json:"sourceScript,omitempty" doc:"Which script or program part it comes from."`
	Enqueued       *time.Time `json:"enqueued,omitempty" doc:"When the site took it. Absent: it did not say."`
	CopyStatus
}

// NotificationPage is one page of a list.
type NotificationPage struct {
	Notifications []Notification `json:"notifications" nullable:"false" doc:"Newest first; one that goes over several channels has an entry for each."`
	Next          string         `json:"next,omitempty" doc:"Pass it as after to get the next page; absent: no more."`
	LookedUntil   time.Time      `json:"lookedUntil,omitzero" doc:"The page is not full yet: all notifications were looked at that came since then. next goes on from there."`
}

// KPIs are the numbers of NO-17, computed at the time of the request.
type KPIs struct {
	Site          string  `json:"site,omitempty" doc:"Absent: all together."`
	Depth         int64   `json:"depth" doc:"Pending and retrying."`
	Stuck         int64   `json:"stuck" doc:"The pending and retrying ones that have waited longer than stuckAfter."`
	Parked        int64   `json:"parked" doc:"They wait for a person."`
	Delivered     int64   `json:"delivered" doc:"Within the window."`
	OldestSeconds float64 `json:"oldestSeconds" doc:"How long the oldest pending or retrying one has waited; 0: none is."`
}

// NotificationKPIs are the numbers for all sites together and for each site.
type NotificationKPIs struct {
	StuckAfter string `json:"stuckAfter" example:"10m"`
	Window     string `json:"window" example:"1m"`
	All        KPIs   `json:"all"`
	Sites      []KPIs `json:"sites" nullable:"false" doc:"By name; only sites that have notifications here."`
}
