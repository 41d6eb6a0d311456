package admin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// Notifications offers what people are told.
type Notifications struct{ *Service }

// NotificationQuery narrows a list of notifications. Zero fields do not narrow.
// Times are RFC 3339, or a day in UTC.
type NotificationQuery struct {
	Status  []string // each entry holds one or several, separated by commas
	ID      string   // of every site that has sent it
	Channel string
	List    string
	Type    string
	Site    string
	Script  string
	From    string // time of arrival, from
	To      string // time of arrival, before
	Subject string // words of the subject
	Stuck   bool
	After   string // NotificationPage.Next of the previous page
	Limit   int    // zero: the store's default
}

// List returns a page of copies, newest first. If the caller's scope names sites, it is the newest first of
// each of them.
func (s Notifications) List(ctx context.Context, in *NotificationQuery) (out api.NotificationPage, err error) {
	if s.Notify == nil {
		return out, noNotify()
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
		return out, api.Faulty(faults...)
	}
	scope, site := Granted(ctx).Scope, cmp.Or(in.Site, s.From())
	if in.Site == "" && len(scope.Sites) > 0 {
		site = scope.Sites[0]
	}
	if !scope.Has(api.Object{Site: site}) {
		return out, outside("site", site)
	}
	if in.ID != "" {
		page, p := s.ofID(ctx, in.ID, &q)
		if p != nil {
			return out, p
		}
		return notificationPageOf(&page), nil
	}
	read := func(q notify.Query) (notify.Page, error) {
		page, err := s.Notify.Notifications(ctx, q)
		if err != nil {
			return page, s.refuse(ctx, "list notifications", err)
		}
		return page, nil
	}
	var page notify.Page
	if in.Site == "" && len(scope.Sites) > 0 {
		page.Records, page.Next, err = pageOver(scope.Sites, in.After, in.Limit, func(site, after string, limit int) ([]notify.Record, string, error) {
			q.Site, q.After, q.Limit = site, after, limit
			one, err := read(q)
			page.LookedUntil = one.LookedUntil
			return one.Records, one.Next, err
		})
	} else {
		page, err = read(q)
	}
	if err != nil {
		return out, err
	}
	return notificationPageOf(&page), nil
}

// Get returns a notification with its copies, recipients and histories. On a node that delivers no
// notifications, it returns only how the notification stands. site may be empty if only one site has sent the
// id.
func (s Notifications) Get(ctx context.Context, site, id string) (d api.NotificationDetail, err error) {
	if s.Notify == nil {
		return s.standing(ctx, id)
	}
	copies, p := s.copies(ctx, site, id)
	if p != nil {
		return d, p
	}
	d = notificationOf(copies)
	if d.TraceID, err = s.traceOf(ctx, copies); err != nil {
		return d, s.refuse(ctx, "read the trace of the notification", err)
	}
	for i := range copies {
		if copies[i].Discarding || !copies[i].NextAttempt.IsZero() {
			d.Copies[i].WaitsFor = s.copyWaitsFor(&copies[i])
		}
	}
	return d, nil
}

// traceOf returns the id of the trace of a notification, which its messages have.
func (s Notifications) traceOf(ctx context.Context, copies []notify.Record) (string, error) {
	for i := range copies {
		r, err := s.Outbox.Get(ctx, copies[i].Message)
		if err == nil {
			return holdfast.TraceOf(r.Message.Headers).ID(), nil
		} else if !errors.Is(err, holdfast.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
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

// KPIs returns the counts, in all and for each site.
func (s Notifications) KPIs(ctx context.Context) (out api.NotificationKPIs, err error) {
	if s.Notify == nil {
		return out, noNotify()
	}
	all, sites, err := s.Notify.KPIs(ctx, s.stuckAfter(), s.kpiWindow())
	if err != nil {
		return out, s.refuse(ctx, "count notifications", err)
	}
	out = api.NotificationKPIs{
		StuckAfter: formatDuration(s.stuckAfter()), Window: formatDuration(s.kpiWindow()), All: kpisOf("", all), Sites: make([]api.KPIs, 0, len(sites)),
	}
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		out.Sites = append(out.Sites, kpisOf(site, sites[site]))
	}
	return out, nil
}
