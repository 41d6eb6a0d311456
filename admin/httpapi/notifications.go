package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type notificationsInput struct {
	Status  []string `query:"status,explode" doc:"Only these statuses: repeat the parameter, or separate by commas."`
	ID      string   `query:"id" doc:"Only notifications with this id, of every site that has sent it; a UUID in any form."`
	Channel string   `query:"channel" doc:"Only copies over this channel."`
	List    string   `query:"list" doc:"Only to this list."`
	Type    string   `query:"type" doc:"Only of this type."`
	Site    string   `query:"site" doc:"Only from this site."`
	Script  string   `query:"script" doc:"Only from this script."`
	From    string   `query:"from" doc:"Only those that came at this instant or later: RFC 3339, or a day in UTC." example:"2026-11-28T08:00:00Z"`
	To      string   `query:"to" doc:"Only those that came before this instant: RFC 3339, or a day in UTC." example:"2026-11-29"`
	Subject string   `query:"subject" doc:"Words that the subject must all contain; case does not matter."`
	Stuck   bool     `query:"stuck" doc:"Only those that have waited longer than usual."`
	After   string   `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit   int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

type recordInput struct {
	ID   string `path:"id" doc:"The notification id; a UUID in any form."`
	Site string `query:"site" doc:"The site that sent it. May be absent if only one site has sent this id."`
}

func notifications(b *builder) {
	all := admin.Notifications{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/notifications", id: "list-notifications", tag: "notifications", right: api.Read, scoped: true,
		summary: "List notifications", description: "Newest first, without bodies, recipients and histories.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, in *notificationsInput) (*answer[api.NotificationPage], error) {
		q := admin.NotificationQuery(*in)
		return answerOf(all.List(ctx, &q))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/notifications/kpis", id: "notification-kpis", tag: "notifications", right: api.Read,
		summary: "Numbers of notifications", description: "For all sites together and for each site. The store counts them at each request.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.NotificationKPIs], error) {
		return answerOf(all.KPIs(ctx))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/notifications/{id}", id: "get-notification", content: true, tag: "notifications", right: api.Read, scoped: true,
		summary: "Show a notification",
		description: "How it stands, over which channels it goes, every attempt, and the result for each recipient. A site only tells how it stands: " +
			"from its own store while it holds the notification, and by asking central afterwards.",
		problems: map[api.Sort]string{
			api.NotFound: "No such notification is kept.", api.Conflict: severalSites, api.Unavailable: "The notification has left this site, and central cannot be asked now.",
			api.Unsupported: unsupportedNotify,
		},
	}, func(ctx context.Context, in *recordInput) (*answer[api.NotificationDetail], error) {
		return answerOf(all.Get(ctx, in.Site, in.ID))
	})
}

const severalSites = "Several sites have sent a notification of this id: give the site."

const unsupportedNotify = "This node delivers no notifications."
