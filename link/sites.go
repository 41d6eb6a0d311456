package link

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// SiteInfo is a site as an operator at central sees it.
type SiteInfo struct {
	sites.Info
	State     SiteState
	Connected bool           // it polls this node now, and can be asked from here
	Silent    time.Duration  // since it was last heard; zero: never, or just now
	Nodes     []ReportedNode // the last report of each of its nodes, the newest first
	Telemetry Telemetry      // what this node knows of its audit log
}

// SiteState is whether a site is there.
type SiteState string

// The states. A site is online while central hears of it at least every OfflineAfter.
const (
	Online    SiteState = "online"
	Offline   SiteState = "offline"
	NeverSeen SiteState = "never"
	Revoked   SiteState = "revoked"
)

// ReportedNode is the last report of a node of a site.
type ReportedNode struct {
	Age time.Duration // since central took it
	Health
}

// Health returns the site's newest report; zero: there is none.
func (s *SiteInfo) Health() Health {
	if len(s.Nodes) == 0 {
		return Health{}
	}
	return s.Nodes[0].Health
}

// Unsent returns how many records of the site's audit logs have not come to central, as its nodes last said, how
// long the oldest has waited since, and why central did not take the last of them. At a node of central, what it
// has refused itself comes first.
func (s *SiteInfo) Unsent() (records int64, lasts time.Duration, problem string) {
	problem = s.Telemetry.Problem
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Unsent > 0 {
			records, lasts = records+n.Unsent, max(lasts, n.UnsentFor+n.Age)
		}
		problem = cmp.Or(problem, n.Refused)
	}
	return records, lasts, problem
}

// Add makes a site and returns its enrolment token, which is shown only this once. The error is
// holdfast.ErrConflict if the name is taken.
func (c *Central) Add(ctx context.Context, name string, actor string) (token string, err error) {
	if err := CheckName(name); err != nil {
		return "", fmt.Errorf("add site: %w: %w", holdfast.ErrInvalid, err)
	}
	if name == c.conf.Own {
		return "", fmt.Errorf("add site: %w: %w", holdfast.ErrInvalid, &holdfast.FieldError{
			Field: "name", Value: name, Problem: "is the name of this node's own messages; choose another",
		})
	}
	token = bearer.New(tokenPrefix)
	if err := c.conf.Store.AddSite(ctx, name, bearer.Hash(token), actor); err != nil {
		return "", fmt.Errorf("add site %s: %w", name, err)
	}
	c.log.LogAttrs(ctx, slog.LevelInfo, "site added", slog.String("site", name))
	return token, nil
}

// Rotate returns a new enrolment token for a site, which is shown only this once. The site's
// credential stays good until the site enrolls again, and for sites.OverlapFor after that. With now
// the credential ends at once: the site is shut out until it enrolls again, and so is a thief of
// the credential.
func (c *Central) Rotate(ctx context.Context, name string, now bool, actor string) (token string, err error) {
	token = bearer.New(tokenPrefix)
	if err := c.conf.Store.RotateSite(ctx, name, bearer.Hash(token), now, actor); err != nil {
		return "", fmt.Errorf("rotate site %s: %w", clip(name), err)
	}
	c.log.LogAttrs(ctx, slog.LevelInfo, "site may enroll again", slog.String("site", name), slog.Bool("credentials_ended", now))
	if now {
		c.state(name).end()
	}
	return token, nil
}

// Revoke shuts a site out at once. Messages that wait there keep waiting.
func (c *Central) Revoke(ctx context.Context, name string, actor string) error {
	if err := c.conf.Store.RevokeSite(ctx, name, actor); err != nil {
		return fmt.Errorf("revoke site %s: %w", clip(name), err)
	}
	c.log.LogAttrs(ctx, slog.LevelWarn, "site revoked", slog.String("site", name))
	c.state(name).end()
	return nil
}

// Sites lists all sites, by name.
func (c *Central) Sites(ctx context.Context) ([]SiteInfo, error) {
	all, err := c.conf.Store.Sites(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]SiteInfo, len(all))
	for i, info := range all {
		list[i] = c.present(info)
	}
	return list, nil
}

// present adds what this node knows about the site. Its own knowledge of when the site was here is
// monotonic: no step of the clock makes a site offline while it runs. What other nodes know, and
// what was known before the start, is in the store.
func (c *Central) present(info sites.Info) SiteInfo {
	s := SiteInfo{Info: info, State: Revoked}
	if !info.Revoked.IsZero() {
		return s
	}
	for _, r := range info.Reports {
		s.Nodes = append(s.Nodes, ReportedNode{max(time.Since(r.At), 0), healthOf(r.Text)})
	}
	s.State = NeverSeen
	if !info.Seen.IsZero() {
		s.State, s.Silent = Offline, max(time.Since(info.Seen), 0)
	}
	c.mu.Lock()
	b, ok := c.boxes[info.Name]
	c.mu.Unlock()
	if ok && !info.Enrolled.IsZero() { // else it is a new site with the name of another
		b.presentIn(&s)
	}
	if s.State == Offline && s.Silent < OfflineAfter {
		s.State = Online
	}
	return s
}

// presentIn adds what is known in memory, as far as it is newer.
func (b *siteState) presentIn(s *SiteInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen.IsZero() {
		return
	}
	s.Telemetry = b.telemetry
	s.Connected = b.poll != nil || time.Since(b.seen) < backSoon
	silent := time.Since(b.seen)
	if b.poll != nil {
		silent = 0
	}
	if s.State == NeverSeen || silent <= s.Silent {
		s.State, s.Silent, s.Seen = Offline, silent, b.seen
	}
	now := ReportedNode{max(time.Since(b.reported), 0), b.health}
	i := slices.IndexFunc(s.Nodes, func(n ReportedNode) bool { return n.Node == now.Node })
	switch {
	case b.reported.IsZero() || i >= 0 && s.Nodes[i].Age < now.Age:
		return
	case i >= 0:
		s.Nodes = slices.Delete(s.Nodes, i, i+1)
	}
	s.Nodes = append(s.Nodes, now)
	slices.SortStableFunc(s.Nodes, func(a, b ReportedNode) int { return cmp.Compare(a.Age, b.Age) })
}

// info returns a site that can be asked.
func (c *Central) info(ctx context.Context, name string) (sites.Info, error) {
	all, err := c.conf.Store.Sites(ctx)
	if err != nil {
		return sites.Info{}, err
	}
	for _, s := range all {
		if s.Name == name && s.Revoked.IsZero() {
			return s, nil
		}
	}
	return sites.Info{}, fmt.Errorf("site %s: %w", clip(name), holdfast.ErrNotFound)
}
