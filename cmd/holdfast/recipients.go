package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// changed prints the change of a list.
func (l *lists) changed(c *api.ListChange) error {
	if l.json {
		return printJSON(l.stdout, c)
	}
	l.warn(c.Warnings)
	_, err := fmt.Fprintf(l.stdout, "list %s: %d added, %d changed, %d unchanged, %d removed; it has %s\n",
		c.List, c.Added, c.Changed, c.Unchanged, c.Removed, brief.Count(c.Recipients, "recipient", "recipients"))
	return err
}

func (l *lists) add() *cobra.Command {
	var r api.RecipientSpec
	cmd := &cobra.Command{
		Use:   "add NAME [ADDRESS]",
		Short: "Add a recipient to a list, or change the one with this channel and address",
		Example: `  holdfast lists add operators jane@example.com --channel mail --name 'Doe, Jane'
  holdfast lists add operators jane@example.com --channel mail --disabled
  holdfast lists add operators --channel team-room`,
		Args: args(1, 2, "the list's name and at most one address"),
		RunE: func(cmd *cobra.Command, given []string) error {
			r.Address = strings.Join(given[1:], "")
			return l.ask(cmd, l.global, func(ctx context.Context, node *client.Client) error {
				c, err := node.Lists().PutRecipient(ctx, given[0], r)
				if err != nil {
					return err
				}
				return l.changed(&c)
			})
		},
	}
	cmd.Flags().StringVar(&r.Channel, "channel", "", "how the recipient is reached; needed")
	cmd.Flags().StringVar(&r.Name, "name", "", "the recipient's name, for people")
	cmd.Flags().BoolVar(&r.Disabled, "disabled", false, "the recipient is on the list but gets nothing")
	return cmd
}

func (l *lists) drop() *cobra.Command {
	var channel string
	cmd := &cobra.Command{
		Use:     "remove NAME [ADDRESS]",
		Short:   "Remove a recipient from a list",
		Example: `  holdfast lists remove operators jane@example.com --channel mail`,
		Args:    args(1, 2, "the list's name and at most one address"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return l.ask(cmd, l.global, func(ctx context.Context, node *client.Client) error {
				c, err := node.Lists().DeleteRecipient(ctx, given[0], channel, strings.Join(given[1:], ""))
				if err != nil {
					return err
				}
				return l.changed(&c)
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "how the recipient is reached; needed")
	return cmd
}

func (l *lists) imports() *cobra.Command {
	var r api.ImportRequest
	cmd := &cobra.Command{
		Use:   "import NAME FILE",
		Short: "Add recipients of a file to a list, all of them or none",
		Long: `Add the recipients of a file to a list, and change the names of those that are on it
already. If a line is unclear, the command names it and changes nothing. A file is
one of

  lines  one recipient a line: jane@example.com, Jane <jane@example.com>, or,
         with a comma in the name, "Doe, Jane" <jane@example.com>
  csv    a first row that names the columns address, name, channel, disabled, at
         least address; with commas, or with semicolons`,
		Example: `  holdfast lists import operators team.txt --channel mail
  holdfast lists import operators team.csv
  holdfast lists import operators - --channel mail <team.txt`,
		Args: args(2, 2, "the list's name and a file"),
		RunE: func(cmd *cobra.Command, given []string) error {
			text, err := l.readInput(given[1])
			if err != nil {
				return err
			}
			if line, ok := foreignLine(text); ok {
				return usage(fmt.Errorf("%s: line %d is not UTF-8; save the file as UTF-8", given[1], line))
			}
			if len(text) > 8<<20 {
				return usage(errors.New("the file is larger than 8 MiB; divide it"))
			}
			if r.Format == "" && strings.EqualFold(filepath.Ext(given[1]), ".csv") {
				r.Format = "csv"
			}
			r.Text = string(text)
			return l.ask(cmd, l.global, func(ctx context.Context, node *client.Client) error {
				c, err := node.Lists().Import(ctx, given[0], r)
				if err != nil {
					return err
				}
				return l.changed(&c)
			})
		},
	}
	cmd.Flags().StringVar(&r.Channel, "channel", "", "the channel of recipients for which the file names none")
	cmd.Flags().StringVar(&r.Format, "format", "", "lines or csv (default: csv for a file that ends in .csv, else lines)")
	return cmd
}

// foreignLine finds the first line that has another encoding: JSON would change its letters.
func foreignLine(text []byte) (line int, found bool) {
	for part := range bytes.Lines(text) {
		line++
		if !utf8.Valid(part) {
			return line, true
		}
	}
	return 0, false
}
