package admin

import (
	"encoding/json"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// CopyStatus is how one copy of a notification stands. There is one for each
// channel that its list used when it came.
type CopyStatus struct {
	Channel     string     `json:"channel" doc:"How it goes to people. Empty: its list led nowhere when it came."`
	Message     string     `json:"message" doc:"The id of the copy's message, which is made of the notification's id, its site and, but for the first copy, the channel."`
	Status      string     `json:"status" enum:"pending,retrying,delivered,parked,discarded" doc:"pending was not tried yet; retrying failed and is tried again; parked waits for a person."`
	Reason      string     `json:"reason,omitempty" doc:"Why it is parked: exhausted, permanent or another; or discarded: operator."`
	Failures    int        `json:"failures" doc:"Failed attempts of this cycle that count against the budget."`
	Tries       int        `json:"tries" doc:"Attempts of this cycle, counted or not; those after the first are its retries."`
	Cycle       int        `json:"cycle" doc:"From 1; each retry by a person starts another."`
	LastError   string     `json:"lastError,omitempty" doc:"What the last attempt said."`
	Created     time.Time  `json:"created" doc:"When it came to central."`
	LastAttempt *time.Time `json:"lastAttempt,omitempty" doc:"Absent: never tried."`
	NextAttempt *time.Time `json:"nextAttempt,omitempty" doc:"Absent: none is planned."`
	Discarding  bool       `json:"discarding,omitempty" doc:"It was discarded while it was being tried, and ends with that attempt, unless the attempt delivers it."`
	Ended       *time.Time `json:"ended,omitempty" doc:"When it was delivered, parked or discarded."`
	Stuck       bool       `json:"stuck,omitempty" doc:"It waits for longer than is usual. For people: nothing follows from it."`
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
}

// NotificationStatus is how a notification stands.
type NotificationStatus struct {
	ID        string     `json:"id"`
	Status    string     `json:"status" enum:"forwarding,pending,retrying,delivered,parked,discarded" doc:"forwarding: it is still at its site. Of several copies: parked if one is, else retrying, pending or discarded if one is, else delivered."`
	Retries   int        `json:"retries" doc:"Attempts after the first, since the last decision of a person to retry: on the way to central while it is forwarding, of the copy that the status is of from then on."`
	LastError string     `json:"lastError,omitempty" doc:"What the last attempt that failed said."`
	Enqueued  *time.Time `json:"enqueued,omitempty" doc:"When it was taken from its author."`
	Delivered *time.Time `json:"delivered,omitempty" doc:"When the last of its copies was. Absent: the status is another."`
}

func notificationStatusOf(is *notify.Standing) NotificationStatus {
	return NotificationStatus{
		ID: string(is.ID), Status: string(is.Status), Retries: is.Retries, LastError: is.LastError,
		Enqueued: instant(is.Enqueued), Delivered: instant(is.Delivered),
	}
}

// NotificationDetail is a notification with all that the node knows of it. At a
// site that is its status.
type NotificationDetail struct {
	NotificationStatus
	Created *time.Time `json:"created,omitempty" doc:"When it came to central."`

	Type              string `json:"type,omitempty"`
	List              string `json:"list,omitempty"`
	Subject           string `json:"subject,omitempty"`
	Body              string `json:"body,omitempty"`
	Site              string `json:"site,omitempty" doc:"Where it comes from."`
	OriginInstance    string `json:"originInstance,omitempty" doc:"Which instance of a program it comes from."`
	SourceScript      string `json:"sourceScript,omitempty" doc:"Which script or program part it comes from."`
	ExecutionID       string `json:"executionId,omitempty" doc:"Which run of the script."`
	ParentExecutionID string `json:"parentExecutionId,omitempty" doc:"Which run started that run."`

	Copies []NotificationCopy `json:"copies,omitempty" nullable:"false" doc:"One for each channel, the first one first."`
	Data   json.RawMessage    `json:"data,omitempty" doc:"What a program that receives it may read, byte by byte as it was sent."`
}

// NotificationCopy is one copy with its recipients and its history.
type NotificationCopy struct {
	CopyStatus
	WaitsFor   string            `json:"waitsFor,omitempty" doc:"Why it has not been delivered yet, in words." example:"channel mail is held (535 5.7.8): mend that, then resume the channel"`
	Partial    bool              `json:"partial,omitempty" doc:"Delivered, but some recipients refused it for good."`
	Recipients []RecipientStatus `json:"recipients" nullable:"false" doc:"Who was asked, as of the last attempt. Empty: nobody yet."`
	History    []Event           `json:"history" nullable:"false" doc:"What happened to it, oldest first."`
}

// RecipientStatus is what became of one recipient.
type RecipientStatus struct {
	Channel   string     `json:"channel" doc:"Another than the copy's, where the list was changed after the notification came."`
	Address   string     `json:"address"`
	Name      string     `json:"name,omitempty"`
	Result    string     `json:"result" enum:"waiting,accepted,deferred,refused" doc:"accepted: the other side has taken it, and is not asked again; deferred may work later; refused will not, unless a person retries."`
	Code      string     `json:"code,omitempty" doc:"The other side's, such as 550 5.1.1 or http_429, or one of this program."`
	Text      string     `json:"text,omitempty" doc:"What it said."`
	Receipt   string     `json:"receipt,omitempty" doc:"What the other side calls what it has taken."`
	Maybe     bool       `json:"maybe,omitempty" doc:"The answer was lost after the data had left: it may have been delivered."`
	Attempts  int        `json:"attempts"`
	Server    string     `json:"server,omitempty" doc:"Who was asked."`
	TLS       string     `json:"tls,omitempty" doc:"How safely."`
	Truncated bool       `json:"truncated,omitempty" doc:"The text was cut to what the channel takes."`
	At        *time.Time `json:"at,omitempty" doc:"Of the last attempt."`
}

// appendJSON keeps the bytes of the data.
func (d NotificationDetail) appendJSON() ([]byte, error) {
	raw := d.Data
	d.Data = nil
	return spliced(d, "data", raw)
}

func copyStatusOf(r *notify.Record) CopyStatus {
	return CopyStatus{
		Channel: r.Channel, Message: string(r.Message), Status: string(r.Status), Reason: string(r.Reason),
		Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, LastError: r.LastError, Created: r.Created.UTC(),
		LastAttempt: instant(r.LastAttempt), NextAttempt: instant(r.NextAttempt), Ended: instant(r.Ended), Discarding: r.Discarding, Stuck: r.Stuck,
	}
}

func notificationPageOf(p *notify.Page) NotificationPage {
	page := NotificationPage{Notifications: make([]Notification, len(p.Records)), Next: p.Next}
	for i := range p.Records {
		r := &p.Records[i]
		n := &r.Notification
		page.Notifications[i] = Notification{
			ID: string(n.ID), Type: n.Type, List: n.List, Subject: n.Subject,
			Site: n.Origin.Site, OriginInstance: n.Origin.Instance, SourceScript: n.Origin.Script, Enqueued: instant(n.Origin.Enqueued),
			CopyStatus: copyStatusOf(r),
		}
	}
	return page
}

// notificationOf joins the copies of a notification, of which there is one at
// least.
func notificationOf(copies []notify.Record) NotificationDetail {
	n, is := &copies[0].Notification, notify.StandingOf(copies)
	d := NotificationDetail{
		NotificationStatus: notificationStatusOf(&is), Created: instant(copies[0].Created),
		Type: n.Type, List: n.List, Subject: n.Subject, Body: n.Body, Data: n.Data, Site: n.Origin.Site,
		OriginInstance: n.Origin.Instance, SourceScript: n.Origin.Script,
		ExecutionID: n.Origin.Execution, ParentExecutionID: n.Origin.ParentExecution,
		Copies: make([]NotificationCopy, len(copies)),
	}
	for i := range copies {
		d.Copies[i] = copyOf(&copies[i])
	}
	return d
}

func copyOf(r *notify.Record) NotificationCopy {
	c := NotificationCopy{
		CopyStatus: copyStatusOf(r), Recipients: make([]RecipientStatus, len(r.Targets)), History: make([]Event, len(r.History)),
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		c.Partial = c.Partial || r.Status == notify.Delivered && t.Result == notify.Refused
		c.Recipients[i] = RecipientStatus{
			Channel: t.Channel, Address: t.Address, Name: t.Name, Result: resultName(t.Result), Code: t.Code, Text: t.Text,
			Receipt: t.Receipt, Maybe: t.Maybe, Attempts: t.Attempts, Server: t.Server, TLS: t.TLS, Truncated: t.Truncated, At: instant(t.At),
		}
	}
	for i, e := range r.History {
		c.History[i] = eventOf(e)
	}
	return c
}

func resultName(r notify.Result) string {
	switch r {
	case notify.Accepted:
		return "accepted"
	case notify.Deferred:
		return "deferred"
	case notify.Refused:
		return "refused"
	case notify.Waiting:
	}
	return "waiting"
}

// KPIs are the numbers of NO-17, computed when they are asked for.
type KPIs struct {
	Site          string  `json:"site,omitempty" doc:"Absent: all together."`
	Depth         int64   `json:"depth" doc:"Pending and retrying."`
	Stuck         int64   `json:"stuck" doc:"Of them, those that wait for longer than stuckAfter."`
	Parked        int64   `json:"parked" doc:"They wait for a person."`
	Delivered     int64   `json:"delivered" doc:"Within the window."`
	OldestSeconds float64 `json:"oldestSeconds" doc:"How long the oldest pending or retrying one has waited; 0: there is none."`
}

// NotificationKPIs are the numbers of all sites together and of each.
type NotificationKPIs struct {
	StuckAfter string `json:"stuckAfter" example:"10m"`
	Window     string `json:"window" example:"1m"`
	All        KPIs   `json:"all"`
	Sites      []KPIs `json:"sites" nullable:"false" doc:"By name; only sites that have notifications here."`
}

func kpisOf(site string, k notify.KPIs) KPIs {
	return KPIs{site, k.Depth, k.Stuck, k.Parked, k.Delivered, k.Oldest.Round(time.Millisecond).Seconds()}
}

// DecidedNotification is the answer to a person's decision.
type DecidedNotification struct {
	ID     string        `json:"id"`
	Site   string        `json:"site"`
	Copies []DecidedCopy `json:"copies" nullable:"false" doc:"All of them, also those that were left as they were."`
}

// DecidedCopy is what a decision has done to one copy.
type DecidedCopy struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
	Status  string `json:"status" enum:"pending,retrying,delivered,parked,discarded" doc:"Now."`
	Changed bool   `json:"changed" doc:"By this request. Copies of which it cannot be so are left as they are."`

	Discarding  bool       `json:"discarding,omitempty" doc:"It is being tried, and is discarded when that attempt has ended, unless it is delivered."`
	NextAttempt *time.Time `json:"nextAttempt,omitempty" doc:"Absent: none is planned, or it is being tried."`
}

// statusOfRecord is the status of a copy by its message.
func statusOfRecord(r *holdfast.Record) string { return string(notify.StatusOf(r.State, r.Tries)) }
