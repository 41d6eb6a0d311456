package admin

import (
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

func notificationStatusOf(is *notify.Standing) api.NotificationStatus {
	return api.NotificationStatus{
		ID: string(is.ID), Status: string(is.Status), Retries: is.Retries, LastError: is.LastError,
		Enqueued: instant(is.Enqueued), Delivered: instant(is.Delivered),
	}
}

func copyStatusOf(r *notify.Record) api.CopyStatus {
	return api.CopyStatus{
		Channel: r.Channel, Message: string(r.Message), Status: string(r.Status), Reason: string(r.Reason),
		Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, LastError: r.LastError, Created: r.Created.UTC(),
		LastAttempt: instant(r.LastAttempt), NextAttempt: instant(r.NextAttempt), Ended: instant(r.Ended), Discarding: r.Discarding, Stuck: r.Stuck,
	}
}

func notificationPageOf(p *notify.Page) api.NotificationPage {
	page := api.NotificationPage{Notifications: make([]api.Notification, len(p.Records)), Next: p.Next, LookedUntil: p.LookedUntil.UTC()}
	for i := range p.Records {
		r := &p.Records[i]
		n := &r.Notification
		page.Notifications[i] = api.Notification{
			ID: string(n.ID), Type: n.Type, List: n.List, Subject: n.Subject,
			Site: n.Origin.Site, OriginInstance: n.Origin.Instance, SourceScript: n.Origin.Script, Enqueued: instant(n.Origin.Enqueued),
			CopyStatus: copyStatusOf(r),
		}
	}
	return page
}

// notificationOf joins the copies of a notification. There is at least one copy.
func notificationOf(copies []notify.Record) api.NotificationDetail {
	n, is := &copies[0].Notification, notify.StandingOf(copies)
	d := api.NotificationDetail{
		NotificationStatus: notificationStatusOf(&is), Created: instant(copies[0].Created),
		Type: n.Type, List: n.List, Subject: n.Subject, Body: n.Body, Data: n.Data, Site: n.Origin.Site,
		OriginInstance: n.Origin.Instance, SourceScript: n.Origin.Script,
		ExecutionID: n.Origin.Execution, ParentExecutionID: n.Origin.ParentExecution,
		Copies: make([]api.NotificationCopy, len(copies)),
	}
	for i := range copies {
		d.Copies[i] = copyOf(&copies[i])
	}
	return d
}

func copyOf(r *notify.Record) api.NotificationCopy {
	c := api.NotificationCopy{
		CopyStatus: copyStatusOf(r), Recipients: make([]api.RecipientStatus, len(r.Targets)), History: make([]api.Event, len(r.History)),
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		c.Partial = c.Partial || r.Status == notify.Delivered && t.Result == notify.Refused
		c.Recipients[i] = api.RecipientStatus{
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

func kpisOf(site string, k notify.KPIs) api.KPIs {
	return api.KPIs{Site: site, Depth: k.Depth, Stuck: k.Stuck, Parked: k.Parked, Delivered: k.Delivered, OldestSeconds: k.Oldest.Round(time.Millisecond).Seconds()}
}

// statusOfRecord returns the status of a copy from its message.
func statusOfRecord(r *holdfast.Record) string { return string(notify.StatusOf(r.State, r.Tries)) }
