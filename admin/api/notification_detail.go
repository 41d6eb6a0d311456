package api

import (
	"encoding/json"
	"time"
)

// NotificationStatus is how a notification stands.
type NotificationStatus struct {
	ID        string     `json:"id"`
	Status    string     `json:"status" enum:"forwarding,pending,retrying,delivered,parked,discarded" doc:"forwarding: it is still at its site. Of several copies: parked if one is, else retrying, pending or discarded if one is, else delivered."`
	Retries   int        `json:"retries" doc:"Attempts after the first, since a person last retried it. While it is forwarding, attempts to reach central; afterwards, attempts of the copy that gives the status."`
	LastError string     `json:"lastError,omitempty" doc:"The error of the last failed attempt."`
	Enqueued  *time.Time `json:"enqueued,omitempty" doc:"When it was taken from its author."`
	Delivered *time.Time `json:"delivered,omitempty" doc:"When the last of its copies was delivered. Absent: the status is not delivered."`
}

// NotificationDetail is a notification with everything that the node knows about it. A site knows only its status.
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
	TraceID           string `json:"traceId,omitempty" doc:"The id of the trace that it was sent in (W3C Trace Context), as long as one of its messages is kept." example:"4bf92f3577b34da6a3ce929d0e0e4736"`

	Copies []NotificationCopy `json:"copies,omitempty" nullable:"false" doc:"One for each channel, the first copy first."`
	Data   json.RawMessage    `json:"data,omitempty" doc:"Data for programs that receive it, byte by byte as it was sent."`
}

// NotificationCopy is one copy with its recipients and its history.
type NotificationCopy struct {
	CopyStatus
	WaitsFor   string            `json:"waitsFor,omitempty" doc:"Why it has not been delivered yet, in words." example:"channel mail is held (535 5.7.8): mend that, then resume the channel"`
	Partial    bool              `json:"partial,omitempty" doc:"Delivered, but some recipients refused it for good."`
	Recipients []RecipientStatus `json:"recipients" nullable:"false" doc:"Who was asked, as of the last attempt. Empty: nobody yet."`
	History    []Event           `json:"history" nullable:"false" doc:"What happened to it, oldest first."`
}

// RecipientStatus is the result for one recipient.
type RecipientStatus struct {
	Channel   string     `json:"channel" doc:"Differs from the copy's if the list was changed after the notification came."`
	Address   string     `json:"address"`
	Name      string     `json:"name,omitempty"`
	Result    string     `json:"result" enum:"waiting,accepted,deferred,refused" doc:"accepted: the other side has taken it, and is not asked again; deferred: it may work later; refused: it will not work, unless a person retries."`
	Code      string     `json:"code,omitempty" doc:"The other side's, such as 550 5.1.1 or http_429, or one of this program."`
	Text      string     `json:"text,omitempty" doc:"What it said."`
	Receipt   string     `json:"receipt,omitempty" doc:"The other side's own id for what it has taken."`
	Maybe     bool       `json:"maybe,omitempty" doc:"The data was sent but the answer was lost: it may have been delivered."`
	Attempts  int        `json:"attempts"`
	Server    string     `json:"server,omitempty" doc:"Who was asked."`
	TLS       string     `json:"tls,omitempty" doc:"How safely."`
	Truncated bool       `json:"truncated,omitempty" doc:"The text was cut to what the channel takes."`
	At        *time.Time `json:"at,omitempty" doc:"Of the last attempt."`
}

// AppendJSON writes the notification as JSON, and keeps the bytes of the data.
func (d NotificationDetail) AppendJSON() ([]byte, error) {
	raw := d.Data
	d.Data = nil
	return Spliced(d, "data", raw)
}
