package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"time"
)

// AuditRecord is one record of the audit log.
type AuditRecord struct {
	ID                string          `json:"id" doc:"Of the event: the same wherever the record is kept."`
	Occurred          time.Time       `json:"occurred" doc:"Of an attempt: when it began."`
	Channel           string          `json:"channel" doc:"The way that the event went."`
	Kind              string          `json:"kind" doc:"What has happened."`
	Status            string          `json:"status" doc:"How it ended."`
	CorrelationID     string          `json:"correlationId,omitempty" doc:"Of the message, or its id."`
	ExecutionID       string          `json:"executionId,omitempty"`
	ParentExecutionID string          `json:"parentExecutionId,omitempty"`
	TraceID           string          `json:"traceId,omitempty"`
	Site              string          `json:"site"`
	Node              string          `json:"node"`
	Instance          string          `json:"instance,omitempty"`
	Script            string          `json:"script,omitempty"`
	Actor             string          `json:"actor,omitempty" doc:"A person, a program's token, or system."`
	Target            string          `json:"target,omitempty" doc:"What it was done to."`
	HTTPStatus        int             `json:"httpStatus,omitempty"`
	DurationMs        float64         `json:"durationMs,omitempty"`
	Error             string          `json:"error,omitempty"`
	Request           string          `json:"request,omitempty" doc:"The beginning of the content, without secrets, if the node keeps that."`
	Response          string          `json:"response,omitempty"`
	Extra             json.RawMessage `json:"extra,omitempty" doc:"What else is known."`
	Erased            []string        `json:"erased,omitempty" doc:"Personal fields whose value was erased."`
	Log               string          `json:"log" doc:"The log that has the record: of one node, in one history of its store."`
	Seq               int64           `json:"seq" doc:"Its number in the log."`
	Hash              string          `json:"hash" doc:"The chain hash of the record, in hexadecimal digits."`
}

// AuditPage is one page of audit records.
type AuditPage struct {
	Records     []AuditRecord     `json:"records" nullable:"false" doc:"Newest first."`
	Next        string            `json:"next,omitempty" doc:"Pass it as after to get the next page; absent: no more. A page may have few records, or none, and others follow all the same."`
	LookedUntil time.Time         `json:"lookedUntil,omitzero" doc:"The time of the oldest record that was looked at so far; absent: all were."`
	Filter      map[string]string `json:"filter,omitempty" doc:"What the page was narrowed by."`
}

// AuditKPIs are numbers of the audit log.
type AuditKPIs struct {
	Window         string    `json:"window" doc:"The time that records and errors were counted for."`
	Records        int64     `json:"records" doc:"Records of the window; 100000 says: or more."`
	Errors         int64     `json:"errors" doc:"Of these, with a status that is an error; 100000 says: or more."`
	ErrorRate      float64   `json:"errorRate" doc:"Errors for each record, 0 to 1."`
	BacklogSeconds float64   `json:"backlogSeconds" doc:"How far the log is behind what has happened."`
	WriteFailures  int64     `json:"writeFailures" doc:"How often the log could not be written since the node's start. What it missed is written later."`
	Oldest         time.Time `json:"oldest,omitzero" doc:"Of the records that are kept."`
	Newest         time.Time `json:"newest,omitzero"`
}

// AuditFilter narrows what is asked of the audit log. Empty fields do not narrow.
type AuditFilter struct {
	From          string `query:"from" json:"from,omitempty" doc:"Only what happened at this instant or later: RFC 3339, or a day in UTC." example:"2026-11-28T08:00:00Z"`
	To            string `query:"to" json:"to,omitempty" doc:"Only what happened before this instant: RFC 3339, or a day in UTC." example:"2026-11-29"`
	Site          string `query:"site" json:"site,omitempty" doc:"Only of this site."`
	Node          string `query:"node" json:"node,omitempty" doc:"Only of this node."`
	Instance      string `query:"instance" json:"instance,omitempty" doc:"Only of this instance of a program."`
	Actor         string `query:"actor" json:"actor,omitempty" doc:"Only what this person or token did; system: the node itself."`
	Target        string `query:"target" json:"target,omitempty" doc:"Only what was done to this: a destination, a list, a message id, the address of a recipient."`
	Channel       string `query:"channel" json:"channel,omitempty" doc:"Only this way." enum:"ApiOutbound,DbOutbound,Notification,ApiInbound,Message,Webhook,Operator,System"`
	Kind          string `query:"kind" json:"kind,omitempty" doc:"Only this kind of event."`
	Status        string `query:"status" json:"status,omitempty" doc:"Only what ended like this."`
	CorrelationID string `query:"correlationId" json:"correlationId,omitempty" doc:"Only of this correlation id, or of the message with this id."`
	Errors        bool   `query:"errors" json:"errors,omitempty" doc:"Only what counts as an error."`
}

// Values returns the fields that narrow, as parameters of a request.
func (f *AuditFilter) Values() url.Values {
	values, v := url.Values{}, reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("query"); !v.Field(i).IsZero() {
			values.Set(name, fmt.Sprint(v.Field(i)))
		}
	}
	return values
}

// Map returns the same as a map.
func (f *AuditFilter) Map() map[string]string {
	all := map[string]string{}
	for name, values := range f.Values() {
		all[name] = values[0]
	}
	return all
}
