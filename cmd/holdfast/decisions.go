package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// decisions returns the commands that decide about messages: those of the node, or those of the
// site that is the first argument of each.
func (a *app) decisions(g *global, group string, atSite func(site string) func(*client.Client) *client.Client) []*cobra.Command {
	d := &deciding{a, g, group, atSite}
	return []*cobra.Command{d.retry(), d.discard(), d.run(), d.reschedule()}
}

type deciding struct {
	*app
	*global
	group  string
	atSite func(site string) func(*client.Client) *client.Client // nil: the node's own messages
}

// command makes one of these commands. It tries every id.
func (d *deciding) command(name, short, long, flags string, change func(context.Context, *client.Client, string) (api.Message, error)) *cobra.Command {
	use, site, ids, least := " ID...", "", "one or more message ids", 1
	if d.atSite != nil {
		use, site, ids, least = " SITE ID...", " plant-7", "the site's name and one or more message ids", 2
	}
	return &cobra.Command{
		Use: name + use, Short: short,
		Long:    short + `. ` + long + " Each id is tried;\nthe exit code is that of the first that failed.",
		Example: fmt.Sprintf("  holdfast %s %s%s order-42 order-43%s", d.group, name, site, flags),
		Args:    args(least, -1, ids),
		RunE: func(cmd *cobra.Command, given []string) error {
			of := own
			if d.atSite != nil {
				of, given = d.atSite(given[0]), given[1:]
			}
			return d.decide(cmd, d.global, given, func(ctx context.Context, c *client.Client, id string) (api.Message, error) {
				return change(ctx, of(c), id)
			})
		},
	}
}

func (d *deciding) retry() *cobra.Command {
	var r api.RetryRequest
	cmd := d.command("retry", "Retry messages that are parked, expired or discarded",
		"Failures count from zero,\nthey are due at once, and their TTL begins anew. Within an ordering key,\nthe message that was accepted first goes first.", " --ttl 7d",
		func(ctx context.Context, c *client.Client, id string) (api.Message, error) {
			return c.Messages().Retry(ctx, id, r)
		})
	cmd.Flags().StringVar(&r.TTL, "ttl", "", "a new TTL: 90s, 24h, 7d; default: as long as the message had at first")
	cmd.Flags().BoolVar(&r.Force, "force", false, "send it even if the receiver may have forgotten the id and might do it a second time")
	return cmd
}

func (d *deciding) discard() *cobra.Command {
	return d.command("discard", "Give up messages that are not delivered",
		"A message that is\nbeing tried ends with that attempt, unless the attempt delivers it. The rows are kept\nfor their retention, and retry takes the messages up again.", "",
		func(ctx context.Context, c *client.Client, id string) (api.Message, error) {
			return c.Messages().Discard(ctx, id)
		})
}

func (d *deciding) run() *cobra.Command {
	return d.command("run", "Make pending messages due at once",
		"The count of failures\ngoes on. A message that is being tried is tried again at once if the attempt fails.\nMessages still wait for a destination that is down or held, and for earlier messages\nof their ordering key.", "",
		func(ctx context.Context, c *client.Client, id string) (api.Message, error) {
			return c.Messages().Run(ctx, id)
		})
}

func (d *deciding) reschedule() *cobra.Command {
	var r api.RescheduleRequest
	cmd := d.command("reschedule", "Set when pending messages are tried next",
		"For a message that\nis being tried, this applies to the retry. The time must be before the message's TTL\nends.", " --in 2h",
		func(ctx context.Context, c *client.Client, id string) (api.Message, error) {
			if err := timed(&r); err != nil {
				return api.Message{}, err
			}
			return c.Messages().Reschedule(ctx, id, r)
		})
	timeFlags(cmd, &r)
	return cmd
}

// timeFlags adds the flags that say when something is tried next. timed demands one of them.
func timeFlags(cmd *cobra.Command, r *api.RescheduleRequest) {
	cmd.Flags().StringVar(&r.In, "in", "", "how long from now: 90s, 2h, 1d")
	cmd.Flags().StringVar(&r.At, "at", "", "when, as an instant: 2026-11-30T06:00:00Z")
}

func timed(r *api.RescheduleRequest) error {
	if r.In == "" && r.At == "" {
		return usage(errors.New("say --in, such as 2h, or --at, such as 2026-11-30T06:00:00Z"))
	}
	return nil
}

// decide changes each message, and prints its new state.
func (a *app) decide(cmd *cobra.Command, g *global, ids []string, change func(context.Context, *client.Client, string) (api.Message, error)) error {
	return a.each(cmd, g, ids, "a message id is empty", func(ctx context.Context, c *client.Client, id string) error {
		m, err := change(ctx, c, id)
		switch {
		case err != nil:
			return err
		case g.json:
			return printJSON(a.stdout, m)
		}
		_, err = fmt.Fprintf(a.stdout, "%s is %s%s\n", m.ID, m.State, afterwards(m.Discarding, m.Due))
		return err
	})
}

// afterwards says what happens to a message after a decision.
func afterwards(discarding bool, due *time.Time) string {
	switch {
	case discarding:
		return ", and is discarded with the attempt under way, unless that delivers it"
	case due != nil && time.Until(*due) > time.Second:
		return ", due at " + at(*due)
	}
	return ""
}

// each calls f for each id. If one is refused, it goes on with the others; if the node is gone, it stops.
func (a *app) each(cmd *cobra.Command, g *global, ids []string, empty string, f func(context.Context, *client.Client, string) error) error {
	var faults several
	for _, id := range ids {
		err := a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
			if id == "" {
				return usage(errors.New(empty))
			}
			return f(ctx, c, id)
		})
		if err != nil {
			faults = append(faults, err)
		}
		if _, refused := errors.AsType[*api.Problem](err); err != nil && !refused {
			break
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}
