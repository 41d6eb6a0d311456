package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// topics holds the commands about topics, at central or a node that works alone.
type topics struct {
	*app
	*global
}

func (a *app) topicsCommand(g *global) *cobra.Command {
	t := &topics{a, g}
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List, set and remove topics of events",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(t.list(), t.set(), t.remove())
	return cmd
}

func (t *topics) list() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List topics",
		Example: `  holdfast topics ls
  holdfast topics ls --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, t.global, func(ctx context.Context, node *client.Client) error {
				all, err := node.Topics().List(ctx)
				switch {
				case err != nil:
					return err
				case t.json:
					return printJSON(t.stdout, api.TopicList{Topics: all})
				}
				rows := make([][]string, len(all))
				for i, one := range all {
					rows[i] = []string{one.Name, optional(one.Changed), orDash(one.Documentation), one.Description}
				}
				return table(t.stdout, []string{"NAME", "CHANGED", "DOCUMENTATION", "DESCRIPTION"}, rows)
			})
		},
	}
}

func (t *topics) set() *cobra.Command {
	var description, documentation string
	cmd := &cobra.Command{
		Use:     "set NAME",
		Short:   "Make a topic, or change the fields whose flags are given",
		Example: `  holdfast topics set orders --description 'What happens to orders'`,
		Args:    args(1, 1, "the topic's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return t.ask(cmd, t.global, func(ctx context.Context, node *client.Client) error {
				old, err := node.Topics().Get(ctx, given[0])
				if err != nil && !absent(err) {
					return err
				}
				spec := api.TopicSpec(old)
				if cmd.Flags().Changed("description") {
					spec.Description = description
				}
				if cmd.Flags().Changed("documentation") {
					spec.Documentation = documentation
				}
				made, err := node.Topics().Put(ctx, given[0], spec)
				switch {
				case err != nil:
					return err
				case t.json:
					return printJSON(t.stdout, made)
				}
				_, err = fmt.Fprintf(t.stdout, "topic %s is set\n", made.Name)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	cmd.Flags().StringVar(&documentation, "documentation", "", "a link for people")
	return cmd
}

func (t *topics) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Aliases: []string{"delete"},
		Short:   "Remove a topic; nothing more can be published to it",
		Example: `  holdfast topics rm orders`,
		Args:    args(1, 1, "the topic's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return t.ask(cmd, t.global, func(ctx context.Context, node *client.Client) error {
				if err := node.Topics().Delete(ctx, given[0]); err != nil || t.json {
					return err
				}
				_, err := fmt.Fprintf(t.stdout, "topic %s is removed\n", given[0])
				return err
			})
		},
	}
}

// decodeStrict reads JSON into a request; file names where it is from.
func decodeStrict(file string, data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return usage(fmt.Errorf("%s: %w", file, err))
	}
	return nil
}
