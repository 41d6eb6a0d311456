package api

import "time"

// BulkRequest is what POST /v1/bulk takes.
type BulkRequest struct {
	List         string     `json:"list" enum:"messages,notifications,events" doc:"Of what."`
	Verb         string     `json:"verb" enum:"retry,discard,run,reschedule,resend" doc:"What to do, as the route of that name does it to one. resend is of events, the others are of messages and notifications."`
	Filter       BulkFilter `json:"filter" doc:"Which ones. It is looked up once: what it would find later is left alone."`
	In           string     `json:"in,omitempty" doc:"Of reschedule: how long from now, as a duration." example:"2h"`
	At           string     `json:"at,omitempty" doc:"Of reschedule: when, as RFC 3339 writes it; excludes in." example:"2026-11-30T06:00:00Z"`
	Force        bool       `json:"force,omitempty" doc:"Of retry: send messages even if the receiver may have forgotten the id and might do it a second time."`
	Channel      string     `json:"channel,omitempty" doc:"Of notifications: only the copies over this channel." example:"mail"`
	Subscription string     `json:"subscription,omitempty" doc:"Of events: only to this subscription."`
	MatchNow     bool       `json:"matchNow,omitempty" doc:"Of events: to those that each event is for now. Absent: to those that it was for when it came."`
	First        int64      `json:"first,omitempty" minimum:"0" doc:"Only so many, the newest. 0: all." example:"10"`
	Rate         int64      `json:"rate,omitempty" minimum:"0" doc:"So many a second at most. 0: as fast as it goes." example:"20"`
	Reason       string     `json:"reason,omitempty" maxLength:"1024" doc:"Why, in one line. It is kept with the action, and goes into the node's log with the name of the person." example:"the receiver was repaired"`
	Paused       bool       `json:"paused,omitempty" doc:"Begin when it is resumed."`
	DryRun       bool       `json:"dryRun,omitempty" doc:"Only count what the filter finds, and do nothing."`
}

// BulkFilter narrows a list as its own route does.
type BulkFilter struct {
	Status      []string `json:"status,omitempty" doc:"Only these states of messages, or statuses of notifications. Absent: those from which the verb starts; with a cause, parked ones if it starts from them." example:"[\"parked\"]"`
	Destination string   `json:"destination,omitempty" doc:"Of messages: only to this destination." example:"inventory"`
	Category    string   `json:"category,omitempty" doc:"Of messages: only of this category; excludes destination."`
	Cause       string   `json:"cause,omitempty" doc:"Of messages: only those of this cause, as GET /v1/parked names it. One that failed again or was retried since then, or has another cause, is refused: somebody has to see that first."`
	Code        string   `json:"code,omitempty" doc:"Of messages: only those whose last error has this code."`
	Error       string   `json:"error,omitempty" doc:"Of messages: only those whose last error contains all these words."`
	Channel     string   `json:"channel,omitempty" doc:"Of notifications: only over this channel."`
	List        string   `json:"list,omitempty" doc:"Of notifications: only to this list."`
	Type        string   `json:"type,omitempty" doc:"Of notifications: only of this type."`
	Site        string   `json:"site,omitempty" doc:"Of notifications: only from this site."`
	Subject     string   `json:"subject,omitempty" doc:"Of notifications: only with these words in the subject."`
	Topic       string   `json:"topic,omitempty" doc:"Of events: only of this topic."`
	From        string   `json:"from,omitempty" doc:"Only those that came then or later, as RFC 3339 writes it, or a day."`
	To          string   `json:"to,omitempty" doc:"Only those that came before."`
}

// Bulk is a bulk action.
type Bulk struct {
	ID      string      `json:"id,omitempty" doc:"Absent after a dry run, which keeps nothing."`
	List    string      `json:"list"`
	Verb    string      `json:"verb"`
	State   string      `json:"state" enum:"dry-run,gathering,running,paused,cancelled,done" doc:"gathering: what it finds is being written; it never runs if the node stopped meanwhile."`
	Total   int64       `json:"total" doc:"How many the filter found."`
	Done    int64       `json:"done"`
	Refused int64       `json:"refused" doc:"Those whose state did not allow it any more."`
	Rate    int64       `json:"rate,omitempty" doc:"So many a second at most."`
	Request BulkRequest `json:"request" doc:"What was asked."`
	Actor   string      `json:"actor"`
	Created *time.Time  `json:"created,omitempty"`
	Ended   *time.Time  `json:"ended,omitempty"`
	Counts  []BulkCount `json:"counts,omitempty" nullable:"false" doc:"Of a dry run: what the filter found."`
}

// BulkCount is how many rows of a dry run are alike.
type BulkCount struct {
	Of     string `json:"of" doc:"The destination of messages, the channel of notifications, or the topic of events."`
	Status string `json:"status"`
	Count  int64  `json:"count"`
}

// BulkPage is one page of bulk actions, the newest first.
type BulkPage struct {
	Actions []Bulk `json:"actions" nullable:"false"`
	Next    string `json:"next,omitempty" doc:"Give it as after for the next page. Absent: this is the last page."`
}

// BulkRow is what became of one row.
type BulkRow struct {
	Seq     int64  `json:"seq" doc:"From 1, in the order in which they are done."`
	Item    string `json:"item" doc:"The id of a message, the site and the id of a notification with a slash between, or the source and the id of an event with a space between."`
	Outcome string `json:"outcome" enum:"open,done,refused"`
	Detail  string `json:"detail,omitempty" doc:"Why it was refused."`
}

// BulkRowPage is one page of rows.
type BulkRowPage struct {
	Rows []BulkRow `json:"rows" nullable:"false"`
	Next int64     `json:"next,omitempty" doc:"Give it as after for the next page. Absent: this is the last page."`
}
