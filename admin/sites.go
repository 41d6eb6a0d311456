package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// Sites offers the sites of a central node.
type Sites struct{ *Service }

func noCentral() *api.Problem {
	return api.Unsupported.Problem("this node is not a central and has no sites")
}

// List returns the sites of the caller's scope by name, with the last report of each.
func (s Sites) List(ctx context.Context) (api.SiteList, error) {
	if s.Central == nil {
		return api.SiteList{}, noCentral()
	}
	all, err := s.Central.Sites(ctx)
	if err != nil {
		return api.SiteList{}, s.refuse(ctx, "list sites", err)
	}
	list := make([]api.Site, 0, len(all))
	for i := range all {
		if within(ctx, api.Object{Site: all[i].Name}) {
			list = append(list, siteOf(&all[i]))
		}
	}
	return api.SiteList{Sites: list}, nil
}

func siteOf(s *link.SiteInfo) api.Site {
	out := api.Site{
		Name: s.Name, State: string(s.State), Connected: s.Connected, LastSeen: instant(s.Seen), SilentMs: s.Silent.Milliseconds(), Version: s.Version,
		Created: s.Created.UTC(), Enrolled: instant(s.Enrolled), TokenUntil: instant(s.TokenUntil), Revoked: instant(s.Revoked),
	}
	if len(s.Nodes) > 0 {
		h, age := s.Health(), s.Nodes[0].Age.Milliseconds()
		out.ReportMs, out.Status, out.Pending, out.Parked, out.OldestMs = &age, h.Status, h.Depth, h.Parked, h.Oldest.Milliseconds()
		out.Version = cmp.Or(h.Version, s.Version)
	}
	return out
}

func siteNodeOf(r *link.ReportedNode) api.SiteNode {
	out := api.SiteNode{
		Node: r.Node, ReportMs: r.Age.Milliseconds(), Version: r.Version, Role: r.Role, Status: r.Status, Problems: r.Problems, Durability: r.Durability,
		Pending: r.Depth, Parked: r.Parked, OldestMs: r.Oldest.Milliseconds(), LagMs: r.Lag.Milliseconds(), StalledMs: r.Stalled.Milliseconds(),
		Unsent: r.Unsent, UnsentMs: r.UnsentFor.Milliseconds(), AuditFault: r.Refused, Replaying: r.Replaying, DiskFree: r.DiskFree, DiskFull: r.DiskFull, DoubtedMs: r.Doubted.Milliseconds(), Held: r.Held,
	}
	for _, c := range r.Categories {
		out.Categories = append(out.Categories, api.SiteCategory{Category: c.Category, Pending: c.Depth, Parked: c.Parked, OldestMs: c.Oldest.Milliseconds()})
	}
	for _, f := range r.Followers {
		out.Followers = append(out.Followers, api.SiteFollower{Name: f.Name, BehindMs: f.Behind.Milliseconds()})
	}
	return out
}

// site finds a site by name.
func (s Sites) site(ctx context.Context, name string) (link.SiteInfo, error) {
	if s.Central == nil {
		return link.SiteInfo{}, noCentral()
	}
	all, err := s.Central.Sites(ctx)
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

// Get returns one site, with the last report of each of its nodes.
func (s Sites) Get(ctx context.Context, name string) (api.Site, error) {
	if !within(ctx, api.Object{Site: name}) {
		return api.Site{}, outside("site", name)
	}
	one, err := s.site(ctx, name)
	if err != nil {
		return api.Site{}, err
	}
	out := siteOf(&one)
	for i := range one.Nodes {
		out.Nodes = append(out.Nodes, siteNodeOf(&one.Nodes[i]))
	}
	return out, nil
}

// Add makes a site. The answer holds the token with which it enrolls, only this once.
func (s Sites) Add(ctx context.Context, req *api.NewSite, wrong ...api.Fault) (t api.SiteToken, err error) {
	if s.Central == nil {
		return t, noCentral()
	}
	if faults := slices.Concat(wrong, api.FaultsOf(link.CheckName(req.Name))); len(faults) > 0 {
		return t, api.Faulty(withoutRepeats(faults)...)
	}
	token, err := s.Central.Add(ctx, req.Name, Actor(ctx))
	if errors.Is(err, holdfast.ErrConflict) {
		return t, api.Conflict.Problem(fmt.Sprintf("there is a site %q already; rotate its credential, or take another name", req.Name),
			api.Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if err != nil {
		return t, s.refuse(ctx, "add the site", err)
	}
	return tokenFor(req.Name, token), nil
}

func tokenFor(name, token string) api.SiteToken {
	return api.SiteToken{Name: name, Token: token, Expires: time.Now().Add(sites.TokenFor).UTC().Truncate(time.Second)}
}

// Rotate makes a token with which a site enrolls again. now ends its credentials at once.
func (s Sites) Rotate(ctx context.Context, name string, now bool) (t api.SiteToken, err error) {
	if s.Central == nil {
		return t, noCentral()
	}
	token, err := s.Central.Rotate(ctx, name, now, Actor(ctx))
	if errors.Is(err, holdfast.ErrNotFound) {
		return t, noSite(name)
	}
	if err != nil {
		return t, s.refuse(ctx, "rotate the site's credential", err)
	}
	return tokenFor(name, token), nil
}

// Revoke shuts a site out.
func (s Sites) Revoke(ctx context.Context, name string) error {
	if s.Central == nil {
		return noCentral()
	}
	err := s.Central.Revoke(ctx, name, Actor(ctx))
	if errors.Is(err, holdfast.ErrNotFound) {
		return noSite(name)
	}
	if err != nil {
		return s.refuse(ctx, "revoke the site", err)
	}
	return nil
}

// At returns the messages of a site that can be asked. People may read them and decide about them from here,
// but cannot send any there. Categories are the site's own.
func (s Sites) At(ctx context.Context, name string) (m Messages, err error) {
	if may := Granted(ctx); !may.AtSite(name) {
		return m, outside("site", name)
	}
	one, err := s.site(ctx, name)
	if err != nil {
		return m, err
	}
	if !one.Revoked.IsZero() {
		return m, api.NotFound.Problem(fmt.Sprintf("site %q is revoked, and cannot be asked", name), api.Fault{Field: "site", Value: name, Problem: "is revoked"})
	}
	return Messages{s.Service, s.Central.Outbox(name), name}, nil
}
