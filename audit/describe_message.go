package audit

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/notify"
)

// course is which way a message goes, and what all its records say.
type course struct {
	channel Channel
	kind    Kind
	submit  Status // when it was enqueued
	own     bool   // a script here sent it
	forward bool   // it is a notification on its way to central
	later   bool   // it is not the first copy of a notification
	extra   extra
	base    Record
}

// course tells a message's way by its destination.
func (d *Describer) course(e *holdfast.Entry) *course {
	c := &course{channel: Message, kind: MessageSend, submit: Enqueued, base: d.record(e, "", "", "")}
	c.extra = extra{Message: e.ID, Destination: e.Destination, Cycle: e.Cycle, Attempt: e.Attempt, Reason: e.Reason, Code: e.Code, Maybe: e.Maybe}
	r, id := &c.base, string(e.ID)
	r.Target, r.HTTP = e.Destination, httpStatus(e.Code)
	source := ""
	if a := e.About; a != nil {
		o := notify.OriginOf(a.Headers)
		r.Execution, r.Parent, r.Instance, r.Script, r.Trace = o.Execution, o.ParentExecution, o.Instance, o.Script, traceOf(a.Headers["traceparent"])
		source, c.extra.Endpoint = strings.TrimSpace(a.Source), a.Endpoint
		r.Correlation = cmp.Or(a.CorrelationID, a.Headers[fanout.EventIDHeader])
		if of, first := notify.CopyOf(e.Destination, a.Headers); of != "" {
			c.extra.Notification, c.later, id = of, !first, string(of)
		}
	}
	r.Correlation = cmp.Or(r.Correlation, id)
	subscription, ofEvent := fanout.SubscriptionOf(e.Destination)
	channel, copied := notify.ChannelOf(e.Destination)
	switch category := d.Category(e.Destination); {
	case copied:
		c.channel, c.kind, r.Target = Notification, NotifyDeliver, channel
		home := r.Site
		r.Site = cmp.Or(source, home) // central delivers what a site sent
		c.own = r.Site == home
	case ofEvent:
		c.channel, c.kind, r.Target = Webhook, WebhookDeliver, subscription
	case category == holdfast.CategoryNotification:
		c.forward = true
	case category == holdfast.CategoryExternalSystem:
		c.channel, c.kind, c.submit = APIOutbound, CachedCall, Submitted
	case category == holdfast.CategoryCachedDBWrite:
		c.channel, c.kind, c.submit = DBOutbound, CachedCall, Submitted
	}
	if source != r.Site {
		c.extra.Source = source
	}
	return c
}

// record returns a record of the course.
func (c *course) record(ch Channel, k Kind, s Status) Record {
	r := c.base
	r.Channel, r.Kind, r.Status, r.Extra = ch, k, s, c.extra.json()
	return r
}

// accepted describes that the node took a message, to deliver it. A site's notification was sent at
// the site, whose own record says so; central has received it (NO-13).
func (c *course) accepted(e *holdfast.Entry) []Record {
	c.extra.Cycle, c.extra.Attempt, c.base.Actor = 0, 0, e.Actor
	switch {
	case c.later: // the first copy stands for the notification
		return nil
	case c.channel == Notification && !c.own:
		c.base.Actor = cmp.Or(e.Actor, c.base.Site)
		return []Record{c.record(Message, MessageReceive, Enqueued)}
	case c.channel == Notification, c.forward:
		return []Record{c.record(Notification, NotifySend, Enqueued)}
	}
	return []Record{c.record(c.channel, c.kind, c.submit)}
}

// attempted describes one attempt, and the end of the message if it was the last one (NO-13, SF-33).
func (c *course) attempted(e *holdfast.Entry) (list []Record) {
	c.extra.Outcome = e.Outcome.String()
	if e.Kind == holdfast.Reclaimed {
		c.extra.Outcome = holdfast.Reclaimed.String()
	}
	if e.Kind == holdfast.Reclaimed || e.Outcome != holdfast.NotStarted {
		r := c.record(c.channel, c.kind, Attempted)
		r.Occurred, r.Took, r.Error = r.Occurred.Add(-e.Took), e.Took, e.Error
		list = append(list, c.personal(r))
	}
	return c.ended(list, e)
}

// ended appends the end of the message, if the entry is that.
func (c *course) ended(list []Record, e *holdfast.Entry) []Record {
	var s Status
	switch e.State {
	case holdfast.Delivered:
		s = Delivered
	case holdfast.Parked:
		s = Parked
	case holdfast.Expired:
		s = Expired
	case holdfast.Discarded:
		s = Discarded
		if e.Reason == holdfast.ReasonRejected {
			s = Failed // refused at the first try, and its caller was told (SF-25)
		}
	case holdfast.Pending, holdfast.Claimed:
		return list
	}
	if e.About != nil {
		c.extra.Created = e.About.Created
	}
	r := c.record(c.channel, c.kind, s)
	if e.Kind != holdfast.GivenUp { // a person's decision is no error
		r.Error = e.Error
	}
	return append(list, c.personal(r))
}

// decided describes what a person did to the message.
func (c *course) decided(k Kind, s Status, e *holdfast.Entry) []Record {
	r := c.record(Operator, k, s)
	r.Target, r.HTTP = string(e.ID), 0
	return []Record{r}
}

// reached describes that one recipient was asked. Who that is, and what the server said of it, is
// personal.
func (c *course) reached(e *holdfast.Entry) []Record {
	var detail struct {
		Channel string `json:"channel"`
	}
	_ = json.Unmarshal(e.Detail, &detail, leafJSON) // absent: unknown
	c.extra.Outcome, c.extra.Channel = e.Outcome.String(), detail.Channel
	s := Attempted
	switch e.Outcome {
	case holdfast.Succeeded:
		s = Success
	case holdfast.Permanent:
		s = Failed
	case holdfast.Transient, holdfast.LaneFault, holdfast.Unreachable, holdfast.NotStarted:
	}
	r := c.record(Notification, NotifyReach, s)
	r.Target, r.Error, r.Personal = e.Subject, e.Error, []string{"error", "target"}
	return []Record{r}
}

// personal seals the error of a notification: servers quote addresses.
func (c *course) personal(r Record) Record {
	if c.channel == Notification && r.Error != "" {
		r.Personal = []string{"error"}
	}
	return r
}
