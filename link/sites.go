package link

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// SiteInfo is a site as an operator at central sees it.
type SiteInfo struct {
	sites.Info
	Connected bool   // it polls this node now
	Health    Health // as last reported; zero: nothing since this node started
	Telemetry Telemetry
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

// present adds what this node knows about the site.
func (c *Central) present(info sites.Info) SiteInfo {
	c.mu.Lock()
	b, ok := c.boxes[info.Name]
	c.mu.Unlock()
	s := SiteInfo{Info: info}
	if !ok || !info.Revoked.IsZero() {
		return s
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Connected = b.poll != nil || time.Since(b.seen) < backSoon
	s.Health, s.Telemetry = b.health, b.telemetry
	if b.seen.After(s.Seen) {
		s.Seen = b.seen
	}
	return s
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
