package main

import (
	"context"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/opennotificaties"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// schedule compares the schedule with the node's. What the file leaves out stays.
func (p *importing) schedule(ctx context.Context, s *opennotificaties.Schedule, all *[]change) error {
	old, err := p.node.Schedule(ctx)
	if err != nil {
		return err
	}
	next := api.UsualScheduleSpec(old)
	next.Backoff = "exponential" // the one way of the upstream
	if s.Factor > 0 {
		next.Factor = setting.FormatDuration(s.Factor)
	}
	if s.Cap > 0 {
		next.Cap = setting.FormatDuration(s.Cap)
	}
	if s.Base > 0 {
		next.Base = float64(s.Base)
	}
	if s.Retries > 0 {
		next.Retries = &s.Retries
	}
	c := change{Kind: "schedule", Name: "of subscriptions", Change: "changed", apply: func(ctx context.Context) error {
		_, err := p.node.SetSchedule(ctx, next)
		return err
	}}
	for _, f := range []struct {
		key  string
		same bool
	}{
		{"notification_delivery_max_retries", old.Retries != nil && *old.Retries == *next.Retries},
		{"notification_delivery_retry_backoff", old.Factor == next.Factor && old.Backoff == next.Backoff},
		{"notification_delivery_retry_backoff_max", old.Cap == next.Cap},
		{"notification_delivery_base_factor", old.Base == next.Base},
	} {
		if !f.same {
			c.Fields = append(c.Fields, f.key)
		}
	}
	if len(c.Fields) == 0 {
		c.Change = "same"
	}
	*all = append(*all, c)
	return nil
}
