package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// events holds the commands about events, at central or a node that works alone.
type events struct {
	*app
	*global
}

func (a *app) eventsCommand(g *global) *cobra.Command {
	e := &events{a, g}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Publish, list, show, explain and resend events",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(e.publish(), e.list(), e.show(), e.explain(), e.resend())
	return cmd
}

func (e *events) publish() *cobra.Command {
	var n api.NewEvent
	cmd := &cobra.Command{
		Use:   "publish TOPIC [DATA]",
		Short: "Publish an event; DATA is JSON, or - for standard input",
		Example: `  holdfast events publish orders '{"total":12.5}' --type order.paid --subject order-42
  holdfast events publish orders - <order.json`,
		Args: args(1, 2, "the topic, and perhaps the data"),
		RunE: func(cmd *cobra.Command, given []string) error {
			n.Topic = given[0]
			if len(given) == 2 {
				n.Data = []byte(given[1])
				if given[1] == "-" {
					data, err := e.readInput("-")
					if err != nil {
						return err
					}
					n.Data = data
				}
			}
			return e.ask(cmd, e.global, func(ctx context.Context, node *client.Client) error {
				taken, err := node.Events().Publish(ctx, n)
				switch {
				case err != nil:
					return err
				case e.json:
					return printJSON(e.stdout, taken)
				}
				_, err = fmt.Fprintf(e.stdout, "%s for %s\n", taken.ID, brief.Count(taken.Matched, "subscription", "subscriptions"))
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&n.ID, "id", "", "id of the event; default: the node mints one")
	f.StringVar(&n.Source, "source", "", "who it is from; absent: the node")
	f.StringVar(&n.Type, "type", "", "what has happened; absent: the topic")
	f.StringVar(&n.Subject, "subject", "", "what it happened to")
	f.StringToStringVar(&n.Attributes, "attribute", nil, "more about it: NAME=VALUE, may be repeated")
	return cmd
}

func (e *events) list() *cobra.Command {
	var topic, after string
	var limit int
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List events, newest first",
		Example: `  holdfast events ls
  holdfast events ls --topic orders --limit 200`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.ask(cmd, e.global, func(ctx context.Context, node *client.Client) error {
				page, err := node.Events().List(ctx, topic, after, limit)
				switch {
				case err != nil:
					return err
				case e.json:
					return printJSON(e.stdout, page)
				}
				rows := make([][]string, len(page.Events))
				for i, one := range page.Events {
					rows[i] = []string{optional(&one.Received), one.ID, one.Source, one.Topic, one.Type, fmt.Sprint(one.Matched), one.Subject}
				}
				if err := table(e.stdout, []string{"RECEIVED", "ID", "SOURCE", "TOPIC", "TYPE", "MATCHED", "SUBJECT"}, rows); err != nil || page.Next == "" {
					return err
				}
				e.note("more: --after %s\n", page.Next)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "only of this topic")
	cmd.Flags().StringVar(&after, "after", "", "go on behind this place, which the page before has told")
	cmd.Flags().IntVar(&limit, "limit", 50, "the largest number of events")
	return cmd
}

func (e *events) show() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an event with its data and what became of it",
		Example: `  holdfast events show 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(1, 1, "the event's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return e.ask(cmd, e.global, func(ctx context.Context, node *client.Client) error {
				one, err := node.Events().Get(ctx, source, given[0], "")
				switch {
				case err != nil:
					return err
				case e.json:
					return printJSON(e.stdout, one)
				}
				out := newSheet(e.stdout)
				out.line("id", one.ID)
				out.line("source", one.Source)
				out.line("topic", one.Topic)
				out.line("type", one.Type)
				out.line("subject", one.Subject)
				out.line("published by", one.Actor)
				out.when("received", &one.Received)
				out.line("matched", brief.Count(one.Matched, "subscription", "subscriptions"))
				out.line("data", string(one.Data))
				if err := out.end(); err != nil || len(one.Deliveries) == 0 {
					return err
				}
				rows := make([][]string, len(one.Deliveries))
				for i := range one.Deliveries {
					d := &one.Deliveries[i]
					rows[i] = []string{d.Subscription, d.State, fmt.Sprint(d.Attempts), optional(d.Settled), d.Message, d.Actor, cmp.Or(d.WaitsFor, d.LastError)}
				}
				if _, err := fmt.Fprintln(e.stdout); err != nil {
					return fmt.Errorf("print: %w", err)
				}
				return table(e.stdout, []string{"SUBSCRIPTION", "STATE", "ATTEMPTS", "ENDED", "MESSAGE", "RESENT BY", "REMARKS"}, rows)
			})
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "who it is from, if several have sent this id")
	return cmd
}

func (e *events) explain() *cobra.Command {
	var source, after string
	cmd := &cobra.Command{
		Use:     "explain ID",
		Short:   "Say why each subscription got an event or not, as it was when the event came",
		Example: `  holdfast events explain 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(1, 1, "the event's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return e.ask(cmd, e.global, func(ctx context.Context, node *client.Client) error {
				all, err := node.Events().Explain(ctx, source, given[0], after, 500)
				switch {
				case err != nil:
					return err
				case e.json:
					return printJSON(e.stdout, all)
				}
				rows := make([][]string, len(all.Subscriptions))
				for i, x := range all.Subscriptions {
					got, why := "no", x.Why
					if x.Matched {
						got = "yes"
					}
					if x.Delivery != nil {
						got, why = x.Delivery.State, cmp.Or(x.Delivery.WaitsFor, x.Delivery.LastError)
					}
					rows[i] = []string{x.ID, x.State, got, why}
				}
				if err := table(e.stdout, []string{"SUBSCRIPTION", "STATE THEN", "GOT IT", "WHY"}, rows); err != nil || all.Next == "" {
					return err
				}
				e.note("more: --after %s\n", all.Next)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "who it is from, if several have sent this id")
	cmd.Flags().StringVar(&after, "after", "", "go on behind this subscription")
	return cmd
}
