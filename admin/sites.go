package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/link"
)

// Sites is what a central node knows of its sites, and may ask them;
// *link.Central is one.
type Sites interface {
	Add(ctx context.Context, name string) (token string, err error)
	Rotate(ctx context.Context, name string, now bool) (token string, err error)
	Revoke(ctx context.Context, name string) error
	Sites(ctx context.Context) ([]link.SiteInfo, error)
	Outbox(site string) holdfast.Outbox
}

type sitesOutput struct{ Body api.SiteList }

type siteOutput struct{ Body api.Site }

type siteTokenOutput struct{ Body api.SiteToken }

type newSiteInput struct{ Content body }

type siteInput struct {
	Site string `path:"site" doc:"The site's name."`
}

type siteRotateInput struct {
	Site string `path:"site" doc:"The site's name."`
	Now  bool   `query:"now" doc:"End its credentials at once, as for one that was stolen: the site is out until it enrolls again."`
}

type siteListInput struct {
	Site        string   `path:"site" doc:"The site's name."`
	State       []string `query:"state,explode" doc:"Only these states: repeat the parameter, or separate by commas. Absent: parked."`
	Destination string   `query:"destination" doc:"Only this destination."`
	After       string   `query:"after" maxLength:"256" doc:"The next of the page before."`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type siteMessageInput struct {
	Site string `path:"site" doc:"The site's name."`
	ID   string `path:"id" doc:"The message id; a UUID in any form."`
}

type siteDecisionInput struct {
	Site    string `path:"site" doc:"The site's name."`
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

// relayed are what a question to a site can meet beside what this node can.
func relayed(problems map[api.Sort]string) map[api.Sort]string {
	problems[api.SiteAway] = "The site does not poll here; nothing was done. The problem says when it was last seen."
	problems[api.SiteSilent] = "The site has taken the question and not answered in time: it may have been done."
	problems[api.SiteBusy] = "Too many commands wait for the site; nothing was done."
	problems[api.SiteUnavailable] = "The site's store cannot do it now."
	problems[api.SiteFailed] = "The site failed, or its answer is larger than the link carries."
	problems[api.Unsupported] = "The site's program is older and does not know the command."
	problems[api.DiskFull] = "The site's disk is full; nothing was done."
	if problems[api.NotFound] == "" {
		problems[api.NotFound] = "There is no such site."
	}
	return problems
}

func (b *builder) sites() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites", id: "list-sites", tag: "sites", role: api.Read,
		summary: "List sites", description: "By name, with what each said last.",
	}, b.listSites)
	handle(b, route{
		method: http.MethodPost, path: "/v1/sites", id: "add-site", tag: "sites", role: api.Admin, status: http.StatusCreated,
		summary: "Add a site", description: "The answer holds the token with which it enrolls, this once.",
		problems: map[api.Sort]string{api.Conflict: "The name is taken.", api.DiskFull: "The disk is full; nothing was changed."},
		request:  reflect.TypeFor[api.NewSite](), bodyRequired: true, requestSample: json.RawMessage(`{"name":"plant-7"}`),
	}, b.addSite)
	changes := map[api.Sort]string{api.NotFound: "There is no such site, or it is revoked.", api.DiskFull: "The disk is full; nothing was changed."}
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}", id: "get-site", tag: "sites", role: api.Read,
		summary: "Show a site", description: "With what it said last.",
		problems: map[api.Sort]string{api.NotFound: "There is no such site."},
	}, b.showSite)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/sites/{site}", id: "revoke-site", tag: "sites", role: api.Admin,
		summary: "Revoke a site", description: "Its credential and its token end at once. What waits there waits on. Its name is free again.",
		problems: changes,
	}, b.revokeSite)
	handle(b, route{
		method: http.MethodPost, path: "/v1/sites/{site}/rotate", id: "rotate-site", tag: "sites", role: api.Admin,
		summary: "Rotate a site's credential", description: "The answer holds a token with which it enrolls again, this once. Its credential is good until then, and for a day after, unless now is asked for.",
		problems: changes,
	}, b.rotateSite)
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}/messages", id: "list-site-messages", tag: "sites", role: api.Read,
		summary: "List messages of a site", description: "The site is asked. Without a state they are the parked ones, of all destinations.",
		problems: relayed(map[api.Sort]string{}),
	}, b.listAt)
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}/messages/{id}", id: "get-site-message", tag: "sites", role: api.Read,
		summary: "Show a message of a site", description: "The site is asked. With its payload and its history. An operation's id is that of its call's message.",
		problems: relayed(map[api.Sort]string{api.NotFound: "There is no such site, or it keeps no such message."}),
	}, b.showAt)
	b.siteDecisions()
}

func (s *Server) listSites(ctx context.Context, _ *struct{}) (*sitesOutput, error) {
	all, err := s.Sites.Sites(ctx)
	if err != nil {
		return nil, s.refuse(ctx, "list sites", err)
	}
	list := make([]api.Site, len(all))
	for i := range all {
		list[i] = siteOf(&all[i])
	}
	return &sitesOutput{api.SiteList{Sites: list}}, nil
}

func siteOf(s *link.SiteInfo) api.Site {
	out := api.Site{
		Name: s.Name, State: "away", LastSeen: instant(s.Seen), Version: s.Version, Created: s.Created.UTC(), Enrolled: instant(s.Enrolled),
		TokenUntil: instant(s.TokenUntil), Revoked: instant(s.Revoked),
	}
	switch {
	case !s.Revoked.IsZero():
		out.State = "revoked"
	case s.Connected:
		out.State = "connected"
		out.Pending, out.Parked, out.OldestMs = s.Health.Depth, s.Health.Parked, s.Health.Oldest.Milliseconds()
	case s.Enrolled.IsZero():
		out.State = "waiting"
	}
	return out
}

// site finds one by name.
func (s *Server) site(ctx context.Context, name string) (link.SiteInfo, error) {
	all, err := s.Sites.Sites(ctx)
	if err != nil {
		return link.SiteInfo{}, s.refuse(ctx, "look the site up", err)
	}
	for _, one := range all {
		if one.Name == name {
			return one, nil
		}
	}
	return link.SiteInfo{}, noSite(name)
}

func noSite(name string) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no site %q", api.Clip(name)), api.Fault{Field: "site", Value: api.Clip(name), Problem: "is not the name of a site"})
}

func (s *Server) showSite(ctx context.Context, in *siteInput) (*siteOutput, error) {
	one, err := s.site(ctx, in.Site)
	if err != nil {
		return nil, err
	}
	return &siteOutput{siteOf(&one)}, nil
}

func (s *Server) addSite(ctx context.Context, in *newSiteInput) (*siteTokenOutput, error) {
	var req api.NewSite
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if faults = append(faults, api.FaultsOf(link.CheckName(req.Name))...); len(faults) > 0 {
		return nil, api.Faulty(withoutRepeats(faults)...)
	}
	token, err := s.Sites.Add(ctx, req.Name)
	if errors.Is(err, holdfast.ErrConflict) {
		return nil, api.Conflict.Problem(fmt.Sprintf("there is a site %q already; rotate its credential, or take another name", req.Name),
			api.Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if err != nil {
		return nil, s.refuse(ctx, "add the site", err)
	}
	return &siteTokenOutput{tokenFor(req.Name, token)}, nil
}

func tokenFor(name, token string) api.SiteToken {
	return api.SiteToken{Name: name, Token: token, Expires: time.Now().Add(link.TokenFor).UTC().Truncate(time.Second)}
}

func (s *Server) rotateSite(ctx context.Context, in *siteRotateInput) (*siteTokenOutput, error) {
	token, err := s.Sites.Rotate(ctx, in.Site, in.Now)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, noSite(in.Site)
	}
	if err != nil {
		return nil, s.refuse(ctx, "rotate the site's credential", err)
	}
	return &siteTokenOutput{tokenFor(in.Site, token)}, nil
}

func (s *Server) revokeSite(ctx context.Context, in *siteInput) (*struct{}, error) {
	err := s.Sites.Revoke(ctx, in.Site)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, noSite(in.Site)
	}
	if err != nil {
		return nil, s.refuse(ctx, "revoke the site", err)
	}
	return nil, nil //nolint:nilnil // huma's way to answer 204
}

// at is the outbox of a site that may be asked.
func (s *Server) at(ctx context.Context, name string) (holdfast.Outbox, error) {
	one, err := s.site(ctx, name)
	if err != nil {
		return nil, err
	}
	if !one.Revoked.IsZero() {
		return nil, api.NotFound.Problem(fmt.Sprintf("site %q is revoked, and cannot be asked", name), api.Fault{Field: "site", Value: name, Problem: "is revoked"})
	}
	return s.Sites.Outbox(name), nil
}

func (s *Server) listAt(ctx context.Context, in *siteListInput) (*pageOutput, error) {
	states, faults := statesOf(in.State)
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	of, err := s.at(ctx, in.Site)
	if err != nil {
		return nil, err
	}
	p, err := of.List(ctx, holdfast.Query{States: states, Destination: in.Destination, Limit: in.Limit, After: in.After})
	if err != nil {
		return nil, s.refuse(ctx, "list messages", err)
	}
	page := s.pageOf(p)
	for i := range page.Messages {
		asThere(&page.Messages[i], &p.Records[i])
	}
	return &pageOutput{page}, nil
}

// asThere gives a message the category that its destination has at the site;
// this node may have another destination of that name, or none.
func asThere(m *api.Message, r *holdfast.Record) { m.Category = string(r.Category) }

func (s *Server) messageThere(r *holdfast.Record) *messageOutput {
	m := s.messageOf(*r)
	asThere(&m, r)
	return &messageOutput{m}
}

func (s *Server) showAt(ctx context.Context, in *siteMessageInput) (*detailOutput, error) {
	id, p := parseID(in.ID)
	if p != nil {
		return nil, p
	}
	of, err := s.at(ctx, in.Site)
	if err != nil {
		return nil, err
	}
	r, err := of.Get(ctx, id)
	if err != nil {
		return nil, s.missing(ctx, "read the message", id, err)
	}
	d := s.detailOf(r)
	asThere(&d.Message, &r)
	d.WaitsFor = "" // the lanes are the site's own
	return &detailOutput{d}, nil
}
