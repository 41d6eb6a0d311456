package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin"
)

// channels are the commands about channels, at central.
type channels struct {
	*app
	*global
}

func (a *app) channelsCommand(g *global) *cobra.Command {
	c := &channels{a, g}
	cmd := &cobra.Command{
		Use: "channels", Aliases: []string{"channel"},
		Short: "List, show, set, test, resume and remove the ways to people",
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
			return c.ask(cmd, c.global, func(ctx context.Context, node *admin.Client) error {
				list, err := node.Channels(ctx)
				switch {
				case err != nil:
					return err
				case c.json:
					return printJSON(c.stdout, admin.ChannelList{Channels: list})
				}
				rows := make([][]string, len(list))
				for i, one := range list {
					s := one.Status
					if s == nil {
						s = &admin.ChannelStatus{}
					}
					rows[i] = []string{one.Name, one.Kind, s.State, optional(s.Since), fmt.Sprint(s.Due), fmt.Sprint(s.InFlight), fmt.Sprint(s.Parked), s.Reason}
				}
				return table(c.stdout, []string{"NAME", "KIND", "STATE", "SINCE", "DUE", "IN FLIGHT", "PARKED", "REASON"}, rows)
			})
		},
	}
}

func (c *channels) show() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a channel: settings, and how it fares",
		Example: `  holdfast channels show mail`,
		Args:    args(1, 1, "the channel's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.ask(cmd, c.global, func(ctx context.Context, node *admin.Client) error {
				one, err := node.Channel(ctx, given[0])
				switch {
				case err != nil:
					return err
				case c.json:
					return printJSON(c.stdout, one)
				}
				return printChannel(c.stdout, &one)
			})
		},
	}
}

func printChannel(w io.Writer, c *admin.Channel) error {
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

// retryOf is how often a channel tries, in words.
func retryOf(r *admin.ChannelRetry) string {
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
	return fmt.Sprintf("%d attempts, with a wait between of %s", attempts, waits)
}

type channelFlags struct {
	kind, settings, interval string
	attempts, workers        int
	waits                    []string
	disabled                 bool
}

func (c *channels) set() *cobra.Command {
	var f channelFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a channel, or change what the flags say of one",
		Long: `Make a channel, or change what the flags say of one; the rest stays as it is.
It is used within about a second, without a restart. If somebody else changes it
at the same moment, nothing is changed, and the exit code is 4.

Settings are an object in YAML or JSON: the guides on e-mail and on chat have
its fields. Secrets stand in it by name: files of the folder notifications.secrets.`,
		Example: `  holdfast channels set mail --kind email --settings mail.yaml
  echo '{url: https://ntfy.example, topic: alarms}' | holdfast channels set push --kind ntfy --settings -
  holdfast channels set mail --attempts 10 --waits 1m,5m,15m,1h
  holdfast channels set mail --disabled
  holdfast channels set mail --disabled=false`,
		Args: args(1, 1, "the channel's name"),
		RunE: func(cmd *cobra.Command, given []string) error { return c.change(cmd, given[0], &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "email, teams, slack, ntfy, gotify or webhook; a new channel needs it")
	flags.StringVar(&f.settings, "settings", "", `file that holds the settings, in YAML or JSON; "-" for standard input`)
	flags.IntVar(&f.attempts, "attempts", 0, "failed attempts until a notification parks (default 10)")
	flags.StringVar(&f.interval, "interval", "", "between two attempts: 30s, 5m (default 1m)")
	flags.StringSliceVar(&f.waits, "waits", nil, "instead of --interval: one wait after another, the last repeats: 1m,5m,15m,1h")
	flags.IntVar(&f.workers, "workers", 0, "the most deliveries at once, up to 64 (default 4)")
	flags.BoolVar(&f.disabled, "disabled", false, "deliver nothing over it; what comes for it waits")
	return cmd
}

func (c *channels) change(cmd *cobra.Command, name string, f *channelFlags) error {
	var settings json.RawMessage
	if f.settings != "" {
		var err error
		if settings, err = c.readObject(f.settings); err != nil {
			return err
		}
	}
	return c.ask(cmd, c.global, func(ctx context.Context, node *admin.Client) error {
		old, err := node.Channel(ctx, name)
		if err != nil && !absent(err) {
			return err
		}
		spec := admin.ChannelSpec(old)
		f.over(cmd, &spec)
		if settings != nil {
			spec.Settings = settings
		}
		made, err := node.PutChannel(ctx, name, spec)
		if err != nil {
			return err
		}
		for _, text := range made.Warnings {
			c.note("holdfast: warning: %s\n", plain(text))
		}
		if c.json {
			return printJSON(c.stdout, made)
		}
		_, err = fmt.Fprintf(c.stdout, "channel %s is set\n", made.Name)
		return err
	})
}

// absent says whether nothing is kept under a name.
func absent(err error) bool {
	p, ok := errors.AsType[*admin.Problem](err)
	return ok && p.Status == http.StatusNotFound
}

// over changes what flags were given for.
func (f *channelFlags) over(cmd *cobra.Command, spec *admin.ChannelSpec) {
	given := cmd.Flags().Changed
	if given("kind") {
		spec.Kind = f.kind
	}
	if given("workers") {
		spec.Workers = f.workers
	}
	if given("disabled") {
		spec.Disabled = f.disabled
	}
	retry := admin.ChannelRetry{}
	if spec.Retry != nil {
		retry = *spec.Retry
	}
	if given("attempts") {
		retry.Attempts = &f.attempts
	}
	if given("interval") {
		retry.Interval, retry.Waits = f.interval, nil
	}
	if given("waits") {
		retry.Interval, retry.Waits = "", f.waits
	}
	if given("attempts") || given("interval") || given("waits") {
		spec.Retry = &retry
	}
}

func (c *channels) test() *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME [ADDRESS]",
		Short: "Send a test over a channel, and tell what the other side says",
		Long: `Send a notification of its own over a channel to one address, once, and tell
what the other side says. Nothing is kept of it. It works over a channel that is
held or disabled, too. The exit code is 0 if the other side has taken it, 4 if it
refused the address or the credentials, and 1 if it may work later.`,
		Example: `  holdfast channels test mail jane@example.com
  holdfast channels test push`,
		Args: args(1, 2, "the channel's name and at most one address"),
		RunE: func(cmd *cobra.Command, given []string) error {
			g := *c.global
			if !cmd.Flags().Changed("timeout") {
				g.timeout = 6 * time.Minute // the node bounds it
			}
			address := strings.Join(given[1:], "")
			return c.ask(cmd, &g, func(ctx context.Context, node *admin.Client) error {
				r, err := node.TestChannel(ctx, given[0], address)
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

func printTest(w io.Writer, r *admin.TestResult) error {
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
		Short:   "Let a held channel go on at once, after what held it was mended",
		Example: `  holdfast channels resume mail`,
		Args:    args(1, 1, "the channel's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.ask(cmd, c.global, func(ctx context.Context, node *admin.Client) error {
				one, err := node.ResumeChannel(ctx, given[0])
				switch {
				case err != nil:
					return err
				case c.json:
					return printJSON(c.stdout, one)
				}
				_, err = fmt.Fprintf(c.stdout, "channel %s is resumed\n", one.Name)
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
			return c.ask(cmd, c.global, func(ctx context.Context, node *admin.Client) error {
				if err := node.DeleteChannel(ctx, given[0], force); err != nil || c.json {
					return err
				}
				_, err := fmt.Fprintf(c.stdout, "channel %s is removed\n", given[0])
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also while lists use it or notifications wait for it; those wait until there is a channel of this name again")
	return cmd
}
