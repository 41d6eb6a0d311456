package audit

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/notify"
)

// SystemActor is the actor of what no person and no program has asked for.
const SystemActor = "system"

// Describer makes records from entries of the journal. Its follower must ask for Follower.About.
type Describer struct {
	Site string // of the node; empty: notify.UnknownSite (SF-26)
	Node string

	// Incarnation names the history of the store. Records of the same entry have the same id within a
	// history, whichever node makes them.
	Incarnation func(ctx context.Context) (string, error)
	// Category returns what kind of work a destination takes. It must not block.
	Category func(destination string) holdfast.Category
	// Payload returns the payload of a message, of which the record of its acceptance has a summary.
	// ErrNotFound: the message was purged. Nil: records have no summaries.
	Payload func(ctx context.Context, id holdfast.ID) ([]byte, error)
	// Redact names the members of a JSON payload, in addition to the usual ones, whose values are left
	// out of summaries.
	Redact []string
}

// Describe returns the records of a page, in its order.
func (d *Describer) Describe(ctx context.Context, page []holdfast.Entry) ([]Record, error) {
	incarnation, err := d.Incarnation(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe entries: %w", err)
	}
	list := make([]Record, 0, len(page))
	for i := range page {
		e := &page[i]
		first := len(list)
		list = append(list, d.of(e)...)
		for part := range list[first:] {
			r := &list[first+part]
			r.ID = EventID(r.Occurred, fmt.Appendf(nil, "audit %q %d %d", incarnation, e.Seq, part))
			if err := d.summarize(ctx, e, r); err != nil {
				return nil, err
			}
			r.bound()
		}
	}
	return list, nil
}

// bound makes texts, which other machines may have chosen, fit for a record.
func (r *Record) bound() {
	for _, text := range []*string{
		&r.Correlation, &r.Execution, &r.Parent, &r.Trace, &r.Site, &r.Node, &r.Instance, &r.Script, &r.Actor, &r.Target, &r.Error,
	} {
		*text = shown.Line(*text, MaxText-len("…"))
	}
}

// of returns the records of an entry, without their ids.
func (d *Describer) of(e *holdfast.Entry) []Record {
	switch e.Kind {
	case holdfast.Enqueued:
		return d.course(e).accepted(e)
	case holdfast.Attempted, holdfast.Reclaimed:
		return d.course(e).attempted(e)
	case holdfast.TimedOut:
		return d.course(e).ended(nil, e)
	case holdfast.Requeued:
		return d.course(e).decided(Retry, Success, e)
	case holdfast.Rescheduled:
		c := d.course(e)
		c.extra.In = e.Took.String()
		return c.decided(Reschedule, Success, e)
	case holdfast.GivenUp:
		c := d.course(e)
		if e.State != holdfast.Discarded { // when the attempt has ended
			return c.decided(Discard, Submitted, e)
		}
		return c.ended(c.decided(Discard, Success, e), e)
	case holdfast.Reached:
		return d.course(e).reached(e)
	case holdfast.Handled:
		return d.incoming(e, Success)
	case holdfast.KeptToFetch:
		return d.incoming(e, Enqueued)
	case holdfast.Called:
		return d.call(e)
	case holdfast.Copied:
		return d.copied(e)
	case holdfast.Paused, holdfast.Resumed, holdfast.ListPut, holdfast.ListRemoved, holdfast.ChannelPut, holdfast.ChannelRemoved,
		holdfast.TokenAdded, holdfast.TokenRemoved, holdfast.SiteAdded, holdfast.SiteEnrolled, holdfast.SiteRenewed, holdfast.SiteRevoked,
		holdfast.TopicPut, holdfast.TopicRemoved, holdfast.SubscriptionPut, holdfast.SubscriptionRemoved, holdfast.SchedulePut, holdfast.PersonPut, holdfast.PersonRemoved:
	}
	return d.decision(e)
}

// extra is what a record says in addition to its fields.
type extra struct {
	Operation    string          `json:"operation,omitempty"` // of the API
	Change       string          `json:"change,omitempty"`
	Message      holdfast.ID     `json:"message,omitempty"`
	Notification holdfast.ID     `json:"notification,omitempty"`
	Destination  string          `json:"destination,omitempty"`
	Endpoint     string          `json:"endpoint,omitempty"`
	Source       string          `json:"source,omitempty"` // if it is not the site
	Cycle        int             `json:"cycle,omitzero"`
	Attempt      int             `json:"attempt,omitzero"`
	Outcome      string          `json:"outcome,omitempty"`
	Channel      string          `json:"channel,omitempty"`
	Reason       holdfast.Reason `json:"reason,omitempty"`
	Code         string          `json:"code,omitempty"`
	Maybe        bool            `json:"maybeDelivered,omitzero"`
	In           string          `json:"in,omitempty"` // a decision takes effect after this time
	Created      time.Time       `json:"created,omitzero"`
	Detail       jsontext.Value  `json:"detail,omitempty"`
}

func (x extra) json() stdjson.RawMessage {
	b, err := json.Marshal(&x, leafJSON)
	if err != nil { // a detail that is no JSON; no store has accepted one
		x.Detail = nil
		b, _ = json.Marshal(&x, leafJSON) // nothing else can fail
	}
	if string(b) == "{}" {
		return nil
	}
	return b
}

// record returns what is the same for all records of an entry.
func (d *Describer) record(e *holdfast.Entry, c Channel, k Kind, s Status) Record {
	return Record{
		Occurred: e.At.Truncate(time.Microsecond), Channel: c, Kind: k, Status: s, Site: cmp.Or(strings.TrimSpace(d.Site), notify.UnknownSite), Node: d.Node, Actor: cmp.Or(e.Actor, SystemActor),
	}
}

// decision describes what people did to something that is no message. A kind that a newer program has
// written is kept as well.
func (d *Describer) decision(e *holdfast.Entry) []Record {
	known, ok := map[holdfast.EntryKind]struct {
		kind   Kind
		change string
	}{
		holdfast.Paused: {Pause, ""}, holdfast.Resumed: {Resume, ""},
		holdfast.ListPut: {ListChange, "put"}, holdfast.ListRemoved: {ListChange, "removed"},
		holdfast.ChannelPut: {ChannelKind, "put"}, holdfast.ChannelRemoved: {ChannelKind, "removed"},
		holdfast.TokenAdded: {TokenChange, "added"}, holdfast.TokenRemoved: {TokenChange, "removed"},
		holdfast.SiteAdded: {SiteChange, "added"}, holdfast.SiteEnrolled: {SiteChange, "enrolled"},
		holdfast.SiteRenewed: {SiteChange, "renewed"}, holdfast.SiteRevoked: {SiteChange, "revoked"},
		holdfast.TopicPut: {TopicChange, "put"}, holdfast.TopicRemoved: {TopicChange, "removed"},
		holdfast.SchedulePut: {ScheduleChange, "put"},
		holdfast.PersonPut:   {PersonChange, "put"}, holdfast.PersonRemoved: {PersonChange, "removed"},
		holdfast.SubscriptionPut: {SubscriptionChange, "put"}, holdfast.SubscriptionRemoved: {SubscriptionChange, "removed"},
	}[e.Kind]
	if !ok {
		known.kind = Kind(fmt.Sprintf("Entry%d", e.Kind))
	}
	if e.Kind == holdfast.SchedulePut && e.Code == holdfast.ScheduleReset {
		known.change = e.Code
	}
	r := d.record(e, Operator, known.kind, Success)
	r.Target, r.Extra = e.Subject, extra{Change: known.change, Code: e.Code, Detail: e.Detail}.json()
	if e.Kind == holdfast.SiteEnrolled {
		r.Actor = e.Subject // the site itself
	}
	return []Record{r}
}

// copied describes a batch of another log that was taken into this store. Verify compares what the
// record says with the copy.
func (d *Describer) copied(e *holdfast.Entry) []Record {
	r := d.record(e, System, Copied, Success)
	r.Target, r.Extra = e.Subject, e.Detail
	return []Record{r}
}

// incoming describes a message from another node.
func (d *Describer) incoming(e *holdfast.Entry, s Status) []Record {
	var detail struct {
		Endpoint string `json:"endpoint"`
	}
	_ = json.Unmarshal(e.Detail, &detail, leafJSON) // nil for a message that was fetched
	r := d.record(e, Message, MessageReceive, s)
	r.Actor, r.Target, r.Correlation = cmp.Or(e.Subject, e.Actor), detail.Endpoint, string(e.ID)
	r.Extra = extra{Message: e.ID}.json()
	return []Record{r}
}

// CodeExport is the code of the Called entry of an export.
const CodeExport = "export-audit"

// The codes of the Called entries of a person who signs in or out.
const (
	CodeSignIn  = "sign-in"
	CodeSignOut = "sign-out"
)

// call describes a call of the node's API. An export of the audit log is a record of its own kind.
func (d *Describer) call(e *holdfast.Entry) []Record {
	var detail struct {
		Status int   `json:"status"`
		TookUS int64 `json:"tookUs"`
	}
	_ = json.Unmarshal(e.Detail, &detail, leafJSON) // absent: unknown
	r := d.record(e, APIInbound, APICall, Failed)
	if e.Code == CodeExport {
		r.Channel, r.Kind = Operator, Export
	}
	if e.Code == CodeSignIn || e.Code == CodeSignOut {
		r.Channel, r.Kind = Operator, SignIn
	}
	switch e.Outcome {
	case holdfast.Succeeded:
		r.Status = Success
	case holdfast.Permanent:
		r.Status = Refused
	case holdfast.Transient, holdfast.LaneFault, holdfast.Unreachable, holdfast.NotStarted:
	}
	r.Target, r.Error, r.HTTP, r.Took = cmp.Or(e.Subject, e.Code), e.Error, detail.Status, time.Duration(detail.TookUS)*time.Microsecond
	r.Occurred = r.Occurred.Add(-r.Took)
	r.Extra = extra{Operation: e.Code, Detail: jsontext.Value(sealFilter(&r, e.Detail))}.json()
	return []Record{r}
}

// httpStatus returns the HTTP status of a code such as "http_422", or 0.
func httpStatus(code string) int {
	digits, ok := strings.CutPrefix(code, "http_")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 100 || n > 999 {
		return 0
	}
	return n
}

// traceOf returns the trace id of a W3C traceparent, or nothing.
func traceOf(parent string) string {
	version, rest, _ := strings.Cut(parent, "-")
	id, _, _ := strings.Cut(rest, "-")
	if len(version) != 2 || len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}
