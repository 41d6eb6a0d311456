package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

type notifyFlags struct {
	n           api.NewNotification
	data        string
	quiet, asks bool
}

func (a *app) notifyCommand(g *global) *cobra.Command {
	f := &notifyFlags{}
	cmd := &cobra.Command{
		Use:   "notify LIST --subject SUBJECT",
		Short: "Tell the people on a list",
		Long: `Send a notification to the people on a list, through the node. The command returns
when the notification is on the node's disk, and prints its id. A site forwards it to
central, which knows who is on the list and how to reach them.

Give --id to be able to repeat the command: the same id with the same content is
the same notification, and is sent once.

With --status the argument is the id of a notification, and the command shows how it
stands.`,
		Example: `  holdfast notify operators --subject 'Tank 4 is full' --body 'Level 98 %.'
  df -h | holdfast notify admins --subject 'Disk of plant 7' --body - --id disk-2026-03-01
  holdfast notify operators --subject Alarm --type alarm --data '{"level":98}' --instance tank-4
  holdfast notify --status disk-2026-03-01`,
		Args: args(1, 1, "one list, or with --status one id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if f.asks {
				return a.notificationStatus(cmd, g, given[0])
			}
			return a.tell(cmd, g, f, given[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.n.Subject, "subject", "", "one line of at most 1000 bytes")
	flags.StringVar(&f.n.Body, "body", "", "plain text; -: standard input")
	flags.StringVar(&f.n.Type, "type", "", "your name for this sort of notification; for people and rules")
	flags.StringVar(&f.data, "data", "", "JSON for programs that receive it")
	flags.StringVar(&f.n.ID, "id", "", "notification id; default: the node mints one")
	originFlags(flags, &f.n.OriginInstance, &f.n.SourceScript, &f.n.ExecutionID, &f.n.ParentExecutionID)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print the id only")
	flags.BoolVar(&f.asks, "status", false, "show how the notification with this id stands")
	return cmd
}

func (a *app) tell(cmd *cobra.Command, g *global, f *notifyFlags, list string) error {
	n := f.n
	n.List = list
	if n.Subject == "" && n.Body == "" {
		return usage(errors.New("the subject is missing; give --subject"))
	}
	if n.Body == "-" {
		text, err := a.readInput("-")
		if err != nil {
			return err
		}
		n.Body = string(text)
	}
	if f.data != "" {
		data, err := rawJSON("--data", []byte(f.data))
		if err != nil {
			return err
		}
		n.Data = data
	}
	return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
		taken, err := c.Notifications().Send(ctx, n)
		switch {
		case err != nil:
			return err
		case g.json:
			return printJSON(a.stdout, taken)
		case f.quiet:
			_, err = fmt.Fprintln(a.stdout, taken.ID)
		case taken.Duplicate:
			_, err = fmt.Fprintf(a.stdout, "%s was known already\n", taken.ID)
		default:
			_, err = fmt.Fprintf(a.stdout, "%s accepted\n", taken.ID)
		}
		return err
	})
}

func (a *app) notificationStatus(cmd *cobra.Command, g *global, id string) error {
	if id == "" {
		return usage(errors.New("the notification id is empty"))
	}
	return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.NotificationStatus, error) {
		return c.Notifications().Status(ctx, id)
	}, func(w io.Writer, is *api.NotificationStatus) error {
		text := fmt.Sprintf("%s is %s", is.ID, plain(is.Status))
		if is.Delivered != nil {
			text += " since " + at(*is.Delivered)
		}
		if is.Retries > 0 {
			text += fmt.Sprintf("; retries: %d", is.Retries)
		}
		if is.LastError != "" {
			text += "; last error: " + oneLine(is.LastError)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}
