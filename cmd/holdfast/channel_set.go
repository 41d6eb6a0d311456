package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

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
		Short: "Make a channel, or change the settings whose flags are given",
		Long: `Make a channel, or change the settings whose flags are given; the rest stays as it
is. It is used within about a second, without a restart. If somebody else changes it
at the same moment, nothing is changed, and the exit code is 4.

Settings are an object in YAML or JSON: the guides on e-mail and on chat list its
fields. {secret: NAME} names a secret, a file in the folder notifications.secrets, and
{secret: {value: …}} gives it, which the node seals and shows nobody again. Give those
in a file or on standard input: other users see the arguments of a program.`,
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
	flags.StringSliceVar(&f.waits, "waits", nil, "instead of --interval: the waits one after another, the last one repeats: 1m,5m,15m,1h")
	flags.IntVar(&f.workers, "workers", 0, "the most deliveries at once, up to 64 (default 4)")
	flags.BoolVar(&f.disabled, "disabled", false, "deliver nothing over it; notifications for it wait")
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
	return c.ask(cmd, c.global, func(ctx context.Context, node *client.Client) error {
		old, err := node.Channels().Get(ctx, name)
		if err != nil && !absent(err) {
			return err
		}
		spec := api.ChannelSpec(old)
		f.over(cmd, &spec)
		if settings != nil {
			spec.Settings = settings
		}
		made, err := node.Channels().Put(ctx, name, spec)
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

// absent reports whether the error says that nothing is kept under the name.
func absent(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == http.StatusNotFound
}

// over changes the fields whose flags were given.
func (f *channelFlags) over(cmd *cobra.Command, spec *api.ChannelSpec) {
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
	retry := api.ChannelRetry{}
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
