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

// NewSite is what POST /v1/sites takes.
type NewSite struct {
	Name string `json:"name" minLength:"1" maxLength:"64" doc:"The site's name: the source of its messages." example:"plant-7"`
}

// SiteToken is a token with which a site enrolls, shown this once.
type SiteToken struct {
	Name    string    `json:"name"`
	Token   string    `json:"token" doc:"Give it to holdfast enroll at the site. Central keeps only a hash of it, and takes it once."`
	Expires time.Time `json:"expires" doc:"From then on it is worth nothing."`
}

// Site is a site as its central knows it.
type Site struct {
	Name       string     `json:"name"`
	State      string     `json:"state" enum:"connected,away,waiting,revoked" doc:"connected: it polls at this node. away: it does not. waiting: it has not enrolled yet. revoked: it is shut out."`
	LastSeen   *time.Time `json:"lastSeen,omitempty" doc:"Absent: never."`
	Version    string     `json:"version,omitempty" doc:"Of the program at the site."`
	Pending    int64      `json:"pending" doc:"Messages that wait there, over all destinations, as the site said last; of a site that is connected."`
	Parked     int64      `json:"parked" doc:"Messages that wait there for a decision."`
	OldestMs   int64      `json:"oldestMs,omitempty" doc:"For so long the oldest has been due there."`
	Created    time.Time  `json:"created"`
	Enrolled   *time.Time `json:"enrolled,omitempty" doc:"When its present credential was made known."`
	TokenUntil *time.Time `json:"tokenUntil,omitempty" doc:"While a token waits to be used: until when it can be."`
	Revoked    *time.Time `json:"revoked,omitempty"`
}

// SiteList is all sites of a central, by name.
type SiteList struct {
	Sites []Site `json:"sites" nullable:"false"`
}

type sitesOutput struct{ Body SiteList }

type siteOutput struct{ Body Site }

type siteTokenOutput struct{ Body SiteToken }

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
func relayed(problems map[kind]string) map[kind]string {
	problems[kindAway] = "The site does not poll here; nothing was done. The problem says when it was last seen."
	problems[kindSilent] = "The site has taken the question and not answered in time: it may have been done."
	problems[kindSiteBusy] = "Too many commands wait for the site; nothing was done."
	problems[kindSiteUnavailable] = "The site's store cannot do it now."
	problems[kindSiteFailed] = "The site failed, or its answer is larger than the link carries."
	problems[kindUnsupported] = "The site's program is older and does not know the command."
	problems[kindDiskFull] = "The site's disk is full; nothing was done."
	if problems[kindNotFound] == "" {
		problems[kindNotFound] = "There is no such site."
	}
	return problems
}

func (b *builder) sites() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites", id: "list-sites", tag: "sites", role: Read,
		summary: "List sites", description: "By name, with what each said last.",
	}, b.listSites)
	handle(b, route{
		method: http.MethodPost, path: "/v1/sites", id: "add-site", tag: "sites", role: Admin, status: http.StatusCreated,
		summary: "Add a site", description: "The answer holds the token with which it enrolls, this once.",
		problems: map[kind]string{kindConflict: "The name is taken.", kindDiskFull: "The disk is full; nothing was changed."},
		request:  reflect.TypeFor[NewSite](), bodyRequired: true, requestSample: json.RawMessage(`{"name":"plant-7"}`),
	}, b.addSite)
	changes := map[kind]string{kindNotFound: "There is no such site, or it is revoked.", kindDiskFull: "The disk is full; nothing was changed."}
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}", id: "get-site", tag: "sites", role: Read,
		summary: "Show a site", description: "With what it said last.",
		problems: map[kind]string{kindNotFound: "There is no such site."},
	}, b.showSite)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/sites/{site}", id: "revoke-site", tag: "sites", role: Admin,
		summary: "Revoke a site", description: "Its credential and its token end at once. What waits there waits on. Its name is free again.",
		problems: changes,
	}, b.revokeSite)
	handle(b, route{
		method: http.MethodPost, path: "/v1/sites/{site}/rotate", id: "rotate-site", tag: "sites", role: Admin,
		summary: "Rotate a site's credential", description: "The answer holds a token with which it enrolls again, this once. Its credential is good until then, and for a day after, unless now is asked for.",
		problems: changes,
	}, b.rotateSite)
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}/messages", id: "list-site-messages", tag: "sites", role: Read,
		summary: "List messages of a site", description: "The site is asked. Without a state they are the parked ones, of all destinations.",
		problems: relayed(map[kind]string{}),
	}, b.listAt)
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}/messages/{id}", id: "get-site-message", tag: "sites", role: Read,
		summary: "Show a message of a site", description: "The site is asked. With its payload and its history. An operation's id is that of its call's message.",
		problems: relayed(map[kind]string{kindNotFound: "There is no such site, or it keeps no such message."}),
	}, b.showAt)
	b.siteDecisions()
}

func (s *Server) listSites(ctx context.Context, _ *struct{}) (*sitesOutput, error) {
	all, err := s.Sites.Sites(ctx)
	if err != nil {
		return nil, s.refuse(ctx, "list sites", err)
	}
	list := make([]Site, len(all))
	for i := range all {
		list[i] = siteOf(&all[i])
	}
	return &sitesOutput{SiteList{list}}, nil
}

func siteOf(s *link.SiteInfo) Site {
	out := Site{
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

func noSite(name string) *Problem {
	return kindNotFound.problem(fmt.Sprintf("there is no site %q", clip(name)), Fault{Field: "site", Value: clip(name), Problem: "is not the name of a site"})
}

func (s *Server) showSite(ctx context.Context, in *siteInput) (*siteOutput, error) {
	one, err := s.site(ctx, in.Site)
	if err != nil {
		return nil, err
	}
	return &siteOutput{siteOf(&one)}, nil
}

func (s *Server) addSite(ctx context.Context, in *newSiteInput) (*siteTokenOutput, error) {
	var req NewSite
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if faults = append(faults, faultsOf(link.CheckName(req.Name))...); len(faults) > 0 {
		return nil, invalid(withoutRepeats(faults)...)
	}
	token, err := s.Sites.Add(ctx, req.Name)
	if errors.Is(err, holdfast.ErrConflict) {
		return nil, kindConflict.problem(fmt.Sprintf("there is a site %q already; rotate its credential, or take another name", req.Name),
			Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if err != nil {
		return nil, s.refuse(ctx, "add the site", err)
	}
	return &siteTokenOutput{tokenFor(req.Name, token)}, nil
}

func tokenFor(name, token string) SiteToken {
	return SiteToken{Name: name, Token: token, Expires: time.Now().Add(link.TokenFor).UTC().Truncate(time.Second)}
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
		return nil, kindNotFound.problem(fmt.Sprintf("site %q is revoked, and cannot be asked", name), Fault{Field: "site", Value: name, Problem: "is revoked"})
	}
	return s.Sites.Outbox(name), nil
}

func (s *Server) listAt(ctx context.Context, in *siteListInput) (*pageOutput, error) {
	states, faults := statesOf(in.State)
	if len(faults) > 0 {
		return nil, invalid(faults...)
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
func asThere(m *Message, r *holdfast.Record) { m.Category = string(r.Category) }

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
