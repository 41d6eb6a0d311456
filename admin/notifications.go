package admin

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

type notificationsInput struct {
	Status  []string `query:"status,explode" doc:"Only these statuses: repeat the parameter, or separate by commas."`
	ID      string   `query:"id" doc:"Only those of this id, of each site that has sent one; a UUID in any form."`
	Channel string   `query:"channel" doc:"Only copies over this channel."`
	List    string   `query:"list" doc:"Only to this list."`
	Type    string   `query:"type" doc:"Only of this type."`
	Site    string   `query:"site" doc:"Only from this site."`
	Script  string   `query:"script" doc:"Only from this script."`
	From    string   `query:"from" doc:"Only those that came at this instant or later: RFC 3339, or a day in UTC." example:"2026-11-28T08:00:00Z"`
	To      string   `query:"to" doc:"Only those that came before this instant: RFC 3339, or a day in UTC." example:"2026-11-29"`
	Subject string   `query:"subject" doc:"Words that are all in the subject, in any case."`
	Stuck   bool     `query:"stuck" doc:"Only those that wait for longer than is usual."`
	After   string   `query:"after" maxLength:"256" doc:"The next of the page before."`
	Limit   int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type notificationsOutput struct{ Body api.NotificationPage }

type recordInput struct {
	ID   string `path:"id" doc:"The notification id; a UUID in any form."`
	Site string `query:"site" doc:"The site that sent it. Absent: it is found, if only one site has sent this id."`
}

type recordOutput struct{ Body api.NotificationDetail }

type kpisOutput struct{ Body api.NotificationKPIs }

func (b *builder) notificationRecords() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/notifications", id: "list-notifications", tag: "notifications", role: api.Read,
		summary: "List notifications", description: "Newest first, without bodies, recipients and histories.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, b.listNotifications)
	handle(b, route{
		method: http.MethodGet, path: "/v1/notifications/kpis", id: "notification-kpis", tag: "notifications", role: api.Read,
		summary: "Numbers of notifications", description: "Of all sites together, and of each. They are counted in the store when they are asked for.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, b.notificationKPIs)
	handle(b, route{
		method: http.MethodGet, path: "/v1/notifications/{id}", id: "get-notification", tag: "notifications", role: api.Read,
		summary: "Show a notification",
		description: "How it stands, over which channels it goes, every attempt, and what became of each recipient. A site tells how it stands, and nothing else: " +
			"by itself while it holds the notification, and by asking central afterwards.",
		problems: map[api.Sort]string{
			api.NotFound: "No such notification is kept.", api.Conflict: severalSites, api.Unavailable: "The notification has left this site, and central cannot be asked now.",
			api.Unsupported: unsupportedNotify,
		},
	}, b.showNotification)
	b.copyDecisions()
}

func (s *Server) listNotifications(ctx context.Context, in *notificationsInput) (*notificationsOutput, error) {
	if s.Notify == nil {
		return nil, noNotify()
	}
	q := notify.Query{
		Channel: in.Channel, List: in.List, Type: in.Type, Site: in.Site, Script: in.Script, Subject: in.Subject,
		StuckAfter: s.stuckAfter(), OnlyStuck: in.Stuck, Limit: in.Limit, After: in.After,
	}
	var faults []api.Fault
	for _, f := range []struct{ name, value string }{
		{"channel", in.Channel}, {"list", in.List}, {"type", in.Type}, {"site", in.Site}, {"script", in.Script}, {"subject", in.Subject}, {"after", in.After},
	} {
		faults = append(faults, checkLine(f.name, f.value, mostText)...)
	}
	var wrong []api.Fault
	q.Status, wrong = notifyStatuses(in.Status)
	faults = append(faults, wrong...)
	q.From, wrong = instantOf("from", in.From)
	faults = append(faults, wrong...)
	q.To, wrong = instantOf("to", in.To)
	if faults = append(faults, wrong...); len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	if in.ID != "" {
		page, p := s.ofID(ctx, in.ID, &q)
		if p != nil {
			return nil, p
		}
		return &notificationsOutput{notificationPageOf(&page)}, nil
	}
	page, err := s.Notify.Notifications(ctx, q)
	if err != nil {
		return nil, s.refuse(ctx, "list notifications", err)
	}
	return &notificationsOutput{notificationPageOf(&page)}, nil
}

// notifyStatuses reads status=parked,retrying and status=parked&status=retrying.
func notifyStatuses(params []string) (list []notify.Status, faults []api.Fault) {
	known := []notify.Status{notify.Pending, notify.Retrying, notify.Delivered, notify.Parked, notify.Discarded}
	for _, param := range params {
		for name := range strings.SplitSeq(param, ",") {
			status := notify.Status(strings.TrimSpace(name))
			switch {
			case slices.Contains(known, status):
				list = append(list, status)
			case status == notify.Forwarding:
				faults = append(faults, api.Fault{Field: "status", Value: string(status), Problem: "is not known to central: such a notification is still at its site"})
			default:
				faults = append(faults, api.Fault{Field: "status", Value: api.Clip(string(status)), Problem: "must be one of pending, retrying, delivered, parked, discarded"})
			}
		}
	}
	return list, faults
}

// instantOf reads an instant, or the beginning of a day.
func instantOf(field, text string) (time.Time, []api.Fault) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, []api.Fault{{Field: field, Value: api.Clip(text), Problem: "is not an instant; write one such as 2026-11-28T08:00:00Z, or a day such as 2026-11-28"}}
}

func (s *Server) notificationKPIs(ctx context.Context, _ *struct{}) (*kpisOutput, error) {
	if s.Notify == nil {
		return nil, noNotify()
	}
	all, sites, err := s.Notify.KPIs(ctx, s.stuckAfter(), s.kpiWindow())
	if err != nil {
		return nil, s.refuse(ctx, "count notifications", err)
	}
	out := api.NotificationKPIs{
		StuckAfter: formatDuration(s.stuckAfter()), Window: formatDuration(s.kpiWindow()), All: kpisOf("", all), Sites: make([]api.KPIs, 0, len(sites)),
	}
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		out.Sites = append(out.Sites, kpisOf(site, sites[site]))
	}
	return &kpisOutput{out}, nil
}
