package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// notificationDecision describes a command that decides about notifications.
type notificationDecision struct {
	name, short, long, example string
	copies                     string // which copies it is about
	change                     func(ctx context.Context, c *client.Client, site, id, channel string) (api.DecidedNotification, error)
}

func (n *notifications) command(d *notificationDecision) *cobra.Command {
	var site, channel string
	cmd := &cobra.Command{
		Use: d.name + " ID...", Short: d.short,
		Long:    d.short + ". " + d.long + "\nEach id is tried; the exit code is that of the first that failed.",
		Example: "  holdfast notifications " + d.name + " " + d.example,
		Args:    args(1, -1, "one or more notification ids"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return n.decide(cmd, ids, func(ctx context.Context, c *client.Client, id string) (api.DecidedNotification, error) {
				return d.change(ctx, c, site, id, channel)
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only the copy over this channel; default: all that are "+d.copies)
	siteFlag(cmd, &site)
	return cmd
}

func (n *notifications) retry() *cobra.Command {
	return n.command(&notificationDecision{
		name: "retry", short: "Retry notifications that are parked or discarded", copies: "parked or discarded",
		long: `Failures count from zero, and they are
due at once. Recipients who have accepted are not asked again; those who refused
are.`,
		example: "alarm-42 alarm-43 --channel mail",
		change: func(ctx context.Context, c *client.Client, site, id, channel string) (api.DecidedNotification, error) {
			return c.Notifications().Retry(ctx, site, id, api.RetryNotification{Channel: channel})
		},
	})
}

func (n *notifications) discard() *cobra.Command {
	var reason string
	cmd := n.command(&notificationDecision{
		name: "discard", short: "Give up notifications that are not delivered", copies: "neither delivered nor discarded",
		long: `A copy that is being tried ends
with that attempt, unless the attempt delivers it. The rows are kept for their
retention, and retry takes them up again.`,
		example: "alarm-42 --reason 'the alarm is over'",
		change: func(ctx context.Context, c *client.Client, site, id, channel string) (api.DecidedNotification, error) {
			return c.Notifications().Discard(ctx, site, id, api.DiscardNotification{Channel: channel, Reason: reason})
		},
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, in one line, for the node's log")
	return cmd
}

func (n *notifications) run() *cobra.Command {
	return n.command(&notificationDecision{
		name: "run", short: "Make pending notifications due at once", copies: "pending or retrying",
		long: `The count of failures goes on. A copy
that is being tried is tried again at once if the attempt fails. Copies still wait for
a channel that is held or in back-off.`,
		example: "alarm-42",
		change: func(ctx context.Context, c *client.Client, site, id, channel string) (api.DecidedNotification, error) {
			return c.Notifications().Run(ctx, site, id, api.RunNotification{Channel: channel})
		},
	})
}

func (n *notifications) reschedule() *cobra.Command {
	var r api.RescheduleRequest
	cmd := n.command(&notificationDecision{
		name: "reschedule", short: "Set when pending notifications are tried next", copies: "pending or retrying",
		long:    "For a copy that is\nbeing tried, this applies to the retry.",
		example: "alarm-42 --in 2h",
		change: func(ctx context.Context, c *client.Client, site, id, channel string) (api.DecidedNotification, error) {
			if err := timed(&r); err != nil {
				return api.DecidedNotification{}, err
			}
			return c.Notifications().Reschedule(ctx, site, id, api.RescheduleNotification{Channel: channel, In: r.In, At: r.At})
		},
	})
	timeFlags(cmd, &r)
	return cmd
}

func (n *notifications) decide(cmd *cobra.Command, ids []string, change func(context.Context, *client.Client, string) (api.DecidedNotification, error)) error {
	return n.each(cmd, n.global, ids, "a notification id is empty", func(ctx context.Context, c *client.Client, id string) error {
		d, err := change(ctx, c, id)
		switch {
		case err != nil:
			return err
		case n.json:
			return printJSON(n.stdout, d)
		}
		for i := range d.Copies {
			one := &d.Copies[i]
			if _, err := fmt.Fprintf(n.stdout, "%s over %s is %s%s\n", d.ID, orDash(one.Channel), one.Status, copyAfterwards(one)); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		return nil
	})
}

// copyAfterwards says what happens to a copy next.
func copyAfterwards(c *api.DecidedCopy) string {
	if !c.Changed {
		return ", and was left"
	}
	return afterwards(c.Discarding, c.NextAttempt)
}
