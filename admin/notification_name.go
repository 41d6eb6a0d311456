package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// copies returns the copies of a notification, or why there are none. Without a site, the id alone must be unique.
func (s *Service) copies(ctx context.Context, site, text string) ([]notify.Record, *api.Problem) {
	if s.Notify == nil {
		return nil, noNotify()
	}
	id, p := parseID(text)
	if p != nil {
		return nil, p
	}
	if faults := checkLine("site", site, mostText); len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	if site == "" {
		if site, p = s.siteOf(ctx, id); p != nil {
			return nil, p
		}
	} else if !within(ctx, api.Object{Site: site}) {
		return nil, outside("site", site)
	}
	copies, err := s.Notify.Notification(ctx, site, id)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && len(copies) == 0 {
		return nil, notNotified(id, site)
	}
	if err != nil {
		return nil, s.refuse(ctx, "read the notification", err)
	}
	q := notify.Query{StuckAfter: s.stuckAfter()}
	for i := range copies {
		copies[i].Stuck = q.IsStuck(&copies[i], time.Now())
	}
	return copies, nil
}

// sitesOf finds the senders of a notification that are in the caller's scope.
func (s *Service) sitesOf(ctx context.Context, id holdfast.ID) ([]string, error) {
	sites, err := s.Notify.NotificationSites(ctx, id)
	return slices.DeleteFunc(sites, func(site string) bool { return !within(ctx, api.Object{Site: site}) }), err
}

// siteOf finds the sender of a notification, if only one is possible.
func (s *Service) siteOf(ctx context.Context, id holdfast.ID) (string, *api.Problem) {
	sites, err := s.sitesOf(ctx, id)
	switch {
	case err != nil:
		return "", s.refuse(ctx, "look the notification up", err)
	case len(sites) == 0:
		return "", notNotified(id, "")
	case len(sites) > 1:
		const most = 10
		names := strings.Join(sites[:min(len(sites), most)], ", ")
		if len(sites) > most {
			names += ", …"
		}
		return "", api.Conflict.Problem(fmt.Sprintf("%d sites have sent a notification %s: %s; give the site", len(sites), id, names),
			api.Fault{Field: "site", Problem: "is missing, and the id alone does not name one notification"})
	}
	return sites[0], nil
}

func notNotified(id holdfast.ID, site string) *api.Problem {
	name := fmt.Sprintf("no notification %s", id)
	if site != "" {
		name += " of site " + api.Clip(site)
	}
	return api.NotFound.Problem(name+" is kept here: it never came, is still at its site, or its retention is over",
		api.Fault{Field: "id", Value: api.Clip(string(id)), Problem: "is not kept here"})
}

// ofID returns a page of the notifications of one id, by site. The query's limit counts sites.
func (s *Service) ofID(ctx context.Context, text string, q *notify.Query) (page notify.Page, p *api.Problem) {
	id, p := parseID(text)
	if p != nil {
		return page, p
	}
	sites, err := s.sitesOf(ctx, id)
	if err != nil {
		return page, s.refuse(ctx, "look the notification up", err)
	}
	sites = slices.DeleteFunc(sites, func(site string) bool { return site <= q.After || q.Site != "" && site != q.Site })
	if most := cmp.Or(q.Limit, 50); len(sites) > most {
		sites = sites[:most]
		page.Next = sites[most-1]
	}
	shows := q.Filter()
	for _, site := range sites {
		copies, err := s.Notify.Notification(ctx, site, id)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) { // its retention may have ended meanwhile
			return page, s.refuse(ctx, "read the notification", err)
		}
		for i := range copies {
			r := &copies[i]
			if r.Stuck = q.IsStuck(r, time.Now()); shows(r) {
				page.Records = append(page.Records, *r)
			}
		}
	}
	return page, nil
}
