package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// channels holds the commands about channels, at central.
type channels struct {
	*app
	*global
}

func (a *app) channelsCommand(g *global) *cobra.Command {
	c := &channels{a, g}
	cmd := &cobra.Command{
		Use: "channels", Aliases: []string{"channel"},
		Short: "List, show, set, test, resume and remove channels, which bring notifications to people",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(c.list(), c.show(), c.set(), c.test(), c.resume(), c.remove())
	return cmd
}

func (c *channels) list() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List channels, and how they fare",
		Example: `  holdfast channels ls
  holdfast channels ls --json`,
		Aliases: []string{"list"},
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(c.app, cmd, c.global, func(ctx context.Context, node *client.Client) (all api.ChannelList, err error) {
				all.Channels, err = node.Channels().List(ctx)
				return all, err
			}, func(w io.Writer, all *api.ChannelList) error {
				return listing(w, []string{"NAME", "KIND", "STATE", "SINCE", "DUE", "IN FLIGHT", "PARKED", "REASON"}, all.Channels, channelRow)
			})
		},
	}
}

func channelRow(c *api.Channel) []string {
	s := c.Status
	if s == nil {
		s = &api.ChannelStatus{}
	}
	return []string{c.Name, c.Kind, s.State, optional(s.Since), fmt.Sprint(s.Due), fmt.Sprint(s.InFlight), fmt.Sprint(s.Parked), s.Reason}
}

func (c *channels) show() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a channel: settings, and how it fares",
		Example: `  holdfast channels show mail`,
		Args:    args(1, 1, "the channel's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(c.app, cmd, c.global, func(ctx context.Context, node *client.Client) (api.Channel, error) {
				return node.Channels().Get(ctx, given[0])
			}, printChannel)
		},
	}
}

func printChannel(w io.Writer, c *api.Channel) error {
	s := newSheet(w)
	s.line("name", c.Name)
	s.line("kind", c.Kind)
	if c.Status != nil {
		s.line("state", c.Status.State)
		s.line("reason", c.Status.Reason)
		s.when("since", c.Status.Since)
		s.when("next probe", c.Status.NextProbe)
		s.line("waiting", fmt.Sprintf("%d due, %d in flight, %d parked", c.Status.Due, c.Status.InFlight, c.Status.Parked))
	}
	s.line("retry", retryOf(c.Retry))
	s.line("workers", fmt.Sprint(cmp.Or(c.Workers, 4)))
	s.line("version", c.Version)
	s.when("changed", c.Changed)
	for _, text := range c.Warnings {
		s.line("warning", text)
	}
	if err := s.end(); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, c.Settings, "", "  "); err != nil {
		b.Reset()
		b.Write(c.Settings)
	}
	_, err := fmt.Fprintf(w, "\nsettings\n%s\n", plain(b.String()))
	return err
}

// retryOf says in words how often a channel tries.
func retryOf(r *api.ChannelRetry) string {
	attempts, waits := 10, "1m"
	if r != nil {
		if r.Attempts != nil && *r.Attempts > 0 {
			attempts = *r.Attempts
		}
		if r.Interval != "" && !strings.HasPrefix(r.Interval, "-") {
			waits = r.Interval
		}
		if len(r.Waits) > 0 {
			waits = strings.Join(r.Waits, ", ")
		}
	}
	return fmt.Sprintf("%s, with a wait of %s between them", brief.Count(attempts, "attempt", "attempts"), waits)
}

func (c *channels) test() *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME [ADDRESS]",
		Short: "Send a test over a channel, and print what the other side says",
		Long: `Send a test notification over a channel to one address, once, and print what the
other side says. The node keeps nothing of it. This works over a channel that is held
or disabled, too. The exit code is 0 if the other side has taken it, 4 if it refused
the address or the credentials, and 1 if it may work later.`,
		Example: `  holdfast channels test mail jane@example.com
  holdfast channels test push`,
		Args: args(1, 2, "the channel's name and at most one address"),
		RunE: func(cmd *cobra.Command, given []string) error {
			g := *c.global
			if !cmd.Flags().Changed("timeout") {
				g.timeout = 6 * time.Minute // longer than the node's own limit
			}
			address := strings.Join(given[1:], "")
			return c.ask(cmd, &g, func(ctx context.Context, node *client.Client) error {
				r, err := node.Channels().Test(ctx, given[0], address)
				switch {
				case err != nil:
					return err
				case c.json:
					err = printJSON(c.stdout, r)
				default:
					err = printTest(c.stdout, &r)
				}
				if err != nil || r.Accepted {
					return err
				}
				if r.Result == "refused" || r.Outcome == "permanent" || r.Outcome == "lane_fault" {
					return verdict(exitConflict)
				}
				return verdict(exitFailure)
			})
		},
	}
}

func printTest(w io.Writer, r *api.TestResult) error {
	s := newSheet(w)
	s.line("result", r.Result)
	s.line("outcome", strings.ReplaceAll(r.Outcome, "_", " "))
	s.line("code", r.Code)
	s.line("text", r.Text)
	s.line("receipt", r.Receipt)
	if r.Maybe {
		s.line("note", "the answer was lost: it may have been delivered")
	}
	if r.Truncated {
		s.line("note", "the text was cut to what the channel takes")
	}
	s.line("server", r.Server)
	s.line("tls", r.TLS)
	return s.end()
}

func (c *channels) resume() *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "Make a held channel go on at once, after its fault was fixed",
		Example: `  holdfast channels resume mail`,
		Args:    args(1, 1, "the channel's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(c.app, cmd, c.global, func(ctx context.Context, node *client.Client) (api.Channel, error) {
				return node.Channels().Resume(ctx, given[0])
			}, func(w io.Writer, one *api.Channel) error {
				_, err := fmt.Fprintf(w, "channel %s is resumed\n", one.Name)
				return err
			})
		},
	}
}

func (c *channels) remove() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove", "delete"},
		Short: "Remove a channel that no list uses and no notification waits for",
		Example: `  holdfast channels rm old-mail
  holdfast channels rm old-mail --force`,
		Args: args(1, 1, "the channel's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.ask(cmd, c.global, func(ctx context.Context, node *client.Client) error {
				if err := node.Channels().Delete(ctx, given[0], force); err != nil || c.json {
					return err
				}
				_, err := fmt.Fprintf(c.stdout, "channel %s is removed\n", given[0])
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it even if lists use it or notifications wait for it; those wait until a channel of this name exists again")
	return cmd
}
