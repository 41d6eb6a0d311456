package admintest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// Sites is a central's sites without a link: whoever is added is there at once,
// with an outbox of its own.
type Sites struct {
	mu       sync.Mutex
	list     []link.SiteInfo
	outboxes map[string]*Memory
}

// Add makes a site.
func (s *Sites) Add(_ context.Context, name string, _ string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(name); i >= 0 {
		if s.list[i].Revoked.IsZero() {
			return "", fmt.Errorf("add site %s: %w", name, holdfast.ErrConflict)
		}
		s.list = slices.Delete(s.list, i, i+1)
	}
	now := time.Now()
	s.list = append(s.list, link.SiteInfo{
		Info:  sites.Info{Name: name, Created: now, Enrolled: now, Seen: now, Version: "1.2.3"},
		State: link.Online, Connected: true, Nodes: []link.ReportedNode{{Age: 10 * time.Second, Health: link.Health{
			Node: name + "-1", Role: "site", Status: "degraded", Problems: []string{"disk"}, Depth: 3, Parked: 2, Oldest: time.Minute,
			Categories: []link.CategoryDepth{{Category: "notification", Depth: 3, Parked: 2}}, Followers: []link.FollowerLag{{Name: "activity", Behind: 2 * time.Second}},
		}}},
	})
	slices.SortFunc(s.list, func(a, b link.SiteInfo) int { return strings.Compare(a.Name, b.Name) })
	if s.outboxes == nil {
		s.outboxes = map[string]*Memory{}
	}
	s.outboxes[name] = &Memory{}
	return bearer.New("hfe_"), nil
}

func (s *Sites) find(name string) int {
	return slices.IndexFunc(s.list, func(i link.SiteInfo) bool { return i.Name == name })
}

// Rotate makes another token.
func (s *Sites) Rotate(_ context.Context, name string, _ bool, _ string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(name); i < 0 || !s.list[i].Revoked.IsZero() {
		return "", fmt.Errorf("rotate site %s: %w", name, holdfast.ErrNotFound)
	}
	return bearer.New("hfe_"), nil
}

// Revoke shuts a site out.
func (s *Sites) Revoke(_ context.Context, name string, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(name)
	if i < 0 {
		return fmt.Errorf("revoke site %s: %w", name, holdfast.ErrNotFound)
	}
	s.list[i].Revoked, s.list[i].State, s.list[i].Connected = time.Now(), link.Revoked, false
	return nil
}

// Sites lists the sites.
func (s *Sites) Sites(context.Context) ([]link.SiteInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list), nil
}

// Away makes every question to a site fail; nil ends that.
func (s *Sites) Away(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outboxes[name].FailWith(err)
	one := &s.list[s.find(name)]
	one.Connected, one.State = err == nil, link.Online
	if err != nil {
		one.State, one.Silent = link.Offline, 3*time.Minute
	}
}

// At is the store behind a site's outbox.
func (s *Sites) At(name string) *Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outboxes[name]
}

// Outbox is a site's outbox. As central has it, a list without states is one of
// parked messages.
func (s *Sites) Outbox(name string) holdfast.Outbox { return parkedFirst{s.At(name)} }

type parkedFirst struct{ *Memory }

func (p parkedFirst) List(ctx context.Context, q holdfast.Query) (holdfast.Page, error) {
	if len(q.States) == 0 {
		q.States = []holdfast.State{holdfast.Parked}
	}
	return p.Memory.List(ctx, q)
}
