package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// callStuckAfter is how long a call of a site waits before it is shown as stuck (AU-10).
const callStuckAfter = 10 * time.Minute

// SiteCalls offers what sites have said of their operations. Central shows them, and delivers none.
type SiteCalls struct{ *Service }

// SiteCallQuery narrows a list of calls. Zero fields do not narrow.
type SiteCallQuery struct {
	Site, Node, Destination, Category, Error string
	States                                   []string
	From, To                                 time.Time // of the creation; To is excluded
	After                                    string
	Limit                                    int
}

// List returns one page of calls, the newest first.
func (s SiteCalls) List(ctx context.Context, q *SiteCallQuery) (p api.SiteCallPage, err error) {
	if s.Mirror == nil {
		return p, noCentral()
	}
	if !within(ctx, api.Object{Site: q.Site, Destination: q.Destination}) { // such a caller names what it asks about
		if !Granted(ctx).AtSite(q.Site) {
			return p, outside("site", q.Site)
		}
		return p, outside("destination", q.Destination)
	}
	f := sites.CallFilter{
		Site: q.Site, Node: q.Node, Statuses: q.States, Destination: q.Destination, Category: holdfast.Category(q.Category),
		Error: q.Error, From: q.From, To: q.To, Limit: min(cmp.Or(max(q.Limit, 0), 50), 500),
	}
	if q.After != "" {
		if f.After, err = placeOf(q.After); err != nil {
			return p, api.Faulty(api.Fault{Field: "after", Value: api.Clip(q.After), Problem: "is not the next of a page"})
		}
	}
	page, err := s.Mirror.SiteCalls(ctx, &f)
	if err != nil {
		return p, s.refuse(ctx, "list calls of sites", err)
	}
	p.Calls = make([]api.SiteCall, len(page.Calls))
	for i := range page.Calls {
		p.Calls[i] = siteCallOf(&page.Calls[i])
	}
	if page.Next != nil {
		text, err := json.Marshal(page.Next)
		if err != nil {
			return p, s.refuse(ctx, "list calls of sites", err)
		}
		p.Next = base64.RawURLEncoding.EncodeToString(text)
	}
	return p, nil
}

func placeOf(after string) (*sites.CallPlace, error) {
	var place sites.CallPlace
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(text, &place)
	}
	return &place, err
}

func siteCallOf(c *sites.SiteCall) api.SiteCall {
	out := api.SiteCall{
		Site: c.Site, ID: string(c.ID), Node: c.Node, Category: string(c.Category), Destination: c.Destination, Endpoint: c.Endpoint, Status: c.Status, Retries: c.Retries,
		LastError: c.LastError, HTTPStatus: c.HTTP, Instance: c.Instance, Script: c.Script, Execution: c.Execution, Created: time.UnixMicro(c.Created).UTC(), Seen: c.Seen.UTC(),
	}
	if c.Attempted != 0 {
		out.LastAttempt = instant(time.UnixMicro(c.Attempted))
	}
	if c.Ended != 0 {
		out.Ended = instant(time.UnixMicro(c.Ended))
	}
	out.Stuck = c.Ended == 0 && c.Status != "parked" && c.Status != "failed" && time.Since(out.Created) > callStuckAfter
	return out
}

// Get returns one call.
func (s SiteCalls) Get(ctx context.Context, site, id string) (c api.SiteCall, err error) {
	if s.Mirror == nil {
		return c, noCentral()
	}
	parsed, err := holdfast.ParseID(id)
	if err == nil {
		var found sites.SiteCall
		if found, err = s.Mirror.SiteCall(ctx, site, parsed); err == nil {
			if within(ctx, api.Object{Site: found.Site, Destination: found.Destination}) {
				return siteCallOf(&found), nil
			}
			err = holdfast.ErrNotFound // an answer must not tell which ids there are
		}
	}
	if errors.Is(err, holdfast.ErrNotFound) || parsed == "" {
		return c, api.NotFound.Problem(fmt.Sprintf("site %q has told of no call %q", api.Clip(site), api.Clip(id)), api.Fault{Field: "id", Value: api.Clip(id), Problem: "is not the id of a call of this site"})
	}
	return c, s.refuse(ctx, "read a call of a site", err)
}

// Counts counts the calls that have not ended, by site and node (AU-10).
func (s SiteCalls) Counts(ctx context.Context) (out api.SiteCallCounts, err error) {
	if s.Mirror == nil {
		return out, noCentral()
	}
	if may := Granted(ctx); len(may.Destinations)+len(may.Topics) > 0 {
		return out, api.RoleLacking.Problem("the token is only for some destinations or topics; these numbers are about all that a site has")
	}
	list, err := s.Mirror.CallCounts(ctx, time.Now().Add(-callStuckAfter))
	if err != nil {
		return out, s.refuse(ctx, "count calls of sites", err)
	}
	out.Counts = []api.SiteCallCount{}
	for _, n := range list {
		if !within(ctx, api.Object{Site: n.Site}) {
			continue
		}
		last := len(out.Counts) - 1
		if last < 0 || out.Counts[last].Site != n.Site || out.Counts[last].Node != n.Node {
			out.Counts = append(out.Counts, api.SiteCallCount{Site: n.Site, Node: n.Node})
			last++
		}
		of := &out.Counts[last]
		switch n.Status {
		case "parked", "failed":
			of.Parked += n.Count
		case "retrying":
			of.Retrying, of.Stuck = of.Retrying+n.Count, of.Stuck+n.Old
		default:
			of.Waiting, of.Stuck = of.Waiting+n.Count, of.Stuck+n.Old
		}
	}
	return out, nil
}
