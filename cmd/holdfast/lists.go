package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// lists holds the commands about lists, at central.
type lists struct {
	*app
	*global
}

func (a *app) listsCommand(g *global) *cobra.Command {
	l := &lists{a, g}
	cmd := &cobra.Command{
		Use:   "lists",
		Short: "List, show, set and remove lists of recipients; add, remove and import recipients",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(l.list(), l.show(), l.set(), l.remove(), l.add(), l.drop(), l.imports())
	return cmd
}

func (l *lists) list() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List lists",
		Example: `  holdfast lists ls
  holdfast lists ls --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(l.app, cmd, l.global, func(ctx context.Context, node *client.Client) (all api.Lists, err error) {
				all.Lists, err = node.Lists().List(ctx)
				return all, err
			}, func(w io.Writer, all *api.Lists) error {
				return listing(w, []string{"NAME", "RECIPIENTS", "CHANNELS", "CHANGED", "REMARKS"}, all.Lists, listRow)
			})
		},
	}
}

func listRow(l *api.ListSummary) []string {
	count := fmt.Sprint(l.Recipients)
	if l.Disabled > 0 {
		count += fmt.Sprintf(" (%d disabled)", l.Disabled)
	}
	return []string{l.Name, count, strings.Join(l.Channels, ","), optional(l.Changed), strings.Join(append(l.Warnings, l.Description), "; ")}
}

func (l *lists) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a list with its recipients",
		Example: `  holdfast lists show operators
  holdfast lists show operators --json >operators.json`,
		Args: args(1, 1, "the list's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(l.app, cmd, l.global, func(ctx context.Context, node *client.Client) (api.List, error) {
				return node.Lists().Get(ctx, given[0])
			}, printList)
		},
	}
}

func printList(w io.Writer, l *api.List) error {
	s := newSheet(w)
	s.line("name", l.Name)
	s.line("description", l.Description)
	if l.Partial {
		s.line("partial", "delivered, with a mark, if some refused for good")
	}
	s.line("recipients", fmt.Sprint(len(l.Recipients)))
	s.line("version", l.Version)
	s.when("changed", l.Changed)
	for _, text := range l.Warnings {
		s.line("warning", text)
	}
	if err := s.end(); err != nil || len(l.Recipients) == 0 {
		return err
	}
	rows := make([][]string, len(l.Recipients))
	for i, r := range l.Recipients {
		state := ""
		if r.Disabled {
			state = "disabled"
		}
		rows[i] = []string{r.Channel, orDash(r.Address), r.Name, state}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return table(w, []string{"CHANNEL", "ADDRESS", "NAME", "STATE"}, rows)
}

func (l *lists) set() *cobra.Command {
	var file, description string
	var partial bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a list, or change the fields whose flags are given",
		Long: `Make a list, or change the fields whose flags are given; the rest stays as it is.
With --file, the file in YAML or JSON holds the whole list. You can edit the output of
"show --json" and give it back; if the list was changed meanwhile, it is refused with
exit code 4.`,
		Example: `  holdfast lists set operators --description 'Who is on call'
  holdfast lists set operators --partial
  holdfast lists set operators --file operators.yaml`,
		Args: args(1, 1, "the list's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			spec, err := l.fromFile(file)
			if err != nil {
				return err
			}
			return l.ask(cmd, l.global, func(ctx context.Context, node *client.Client) error {
				if file == "" {
					old, err := node.Lists().Get(ctx, given[0])
					if err != nil && !absent(err) {
						return err
					}
					spec = api.ListSpec(old)
				}
				if cmd.Flags().Changed("description") {
					spec.Description = description
				}
				if cmd.Flags().Changed("partial") {
					spec.Partial = partial
				}
				if spec.Recipients == nil {
					spec.Recipients = []api.Recipient{}
				}
				made, err := node.Lists().Put(ctx, given[0], spec)
				switch {
				case err != nil:
					return err
				case l.json:
					return printJSON(l.stdout, made)
				}
				l.warn(made.Warnings)
				_, err = fmt.Fprintf(l.stdout, "list %s has %s\n", made.Name, brief.Count(len(made.Recipients), "recipient", "recipients"))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", `file that holds the whole list, in YAML or JSON; "-" for standard input`)
	cmd.Flags().StringVar(&description, "description", "", "what it is for, in one line")
	cmd.Flags().BoolVar(&partial, "partial", false, "if some recipients refuse a notification for good, it is delivered, with a mark, instead of parked")
	return cmd
}

func (l *lists) fromFile(file string) (spec api.ListSpec, err error) {
	if file == "" {
		return spec, nil
	}
	data, err := l.readObject(file)
	if err != nil {
		return spec, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&spec); err != nil {
		return spec, usage(fmt.Errorf("%s: %w", file, err))
	}
	return spec, nil
}

func (l *lists) warn(warnings []string) {
	for _, text := range warnings {
		l.note("holdfast: warning: %s\n", plain(text))
	}
}

func (l *lists) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Aliases: []string{"delete"},
		Short:   "Remove a list; notifications for it park",
		Example: `  holdfast lists rm old-team`,
		Args:    args(1, 1, "the list's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return l.ask(cmd, l.global, func(ctx context.Context, node *client.Client) error {
				if err := node.Lists().Delete(ctx, given[0]); err != nil || l.json {
					return err
				}
				_, err := fmt.Fprintf(l.stdout, "list %s is removed\n", given[0])
				return err
			})
		},
	}
}
