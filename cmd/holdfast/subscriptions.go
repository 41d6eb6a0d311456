package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// subscriptions holds the commands about subscriptions, at central or a node that works alone.
type subscriptions struct {
	*app
	*global
}

func (a *app) subscriptionsCommand(g *global) *cobra.Command {
	s := &subscriptions{a, g}
	cmd := &cobra.Command{
		Use:   "subscriptions",
		Short: "List, show, set, pause, resume, disable, test and remove subscriptions to events, and replace their secrets",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(s.list(), s.show(), s.set(), s.remove(), s.test(), s.rotate(),
		s.decide("pause", "Let the messages of a subscription wait", client.Subscriptions.Pause),
		s.decide("resume", "Send what waits, in its order", client.Subscriptions.Resume),
		s.decide("disable", "Let its messages wait, and take no new ones", client.Subscriptions.Disable))
	return cmd
}

func (s *subscriptions) list() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List subscriptions",
		Example: `  holdfast subscriptions ls
  holdfast subscriptions ls --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				all := api.SubscriptionPage{Subscriptions: []api.Subscription{}}
				for more := true; more; more = all.Next != "" {
					page, err := node.Subscriptions().List(ctx, all.Next, 500)
					if err != nil {
						return err
					}
					all.Subscriptions, all.Next = append(all.Subscriptions, page.Subscriptions...), page.Next
				}
				if s.json {
					return printJSON(s.stdout, all)
				}
				rows := make([][]string, len(all.Subscriptions))
				for i, one := range all.Subscriptions {
					rows[i] = []string{one.ID, one.State, waiting(one.Pending), waiting(one.Parked), strings.Join(one.Topics, ","), one.URL, one.Fault + one.Why}
				}
				return table(s.stdout, []string{"ID", "STATE", "PENDING", "PARKED", "TOPICS", "URL", "REMARKS"}, rows)
			})
		},
	}
}

func waiting(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func (s *subscriptions) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a subscription",
		Example: `  holdfast subscriptions show shop
  holdfast subscriptions show shop --json >shop.json`,
		Args: args(1, 1, "the subscription's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				one, err := node.Subscriptions().Get(ctx, given[0])
				if err != nil {
					return err
				}
				return s.print(&one)
			})
		},
	}
}

// print shows a subscription.
func (s *subscriptions) print(one *api.Subscription) error {
	if s.json {
		return printJSON(s.stdout, one)
	}
	return printSubscription(s.stdout, one)
}

func printSubscription(w io.Writer, one *api.Subscription) error {
	out := newSheet(w)
	out.line("id", one.ID)
	out.line("description", one.Description)
	out.line("url", one.URL)
	out.line("topics", strings.Join(one.Topics, ", "))
	out.line("filter", string(one.Filter))
	if one.Authorization != nil {
		out.line("authorization", one.Authorization.Kind)
	}
	out.line("state", one.State)
	out.line("why", one.Why)
	out.line("set by", one.Actor)
	out.when("since", one.Since)
	out.line("fault", one.Fault)
	out.line("pending", waiting(one.Pending))
	out.line("parked", waiting(one.Parked))
	out.line("version", one.Version)
	out.when("changed", one.Changed)
	return out.end()
}

func (s *subscriptions) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Aliases: []string{"delete"},
		Short:   "Remove a subscription; its messages that were not delivered park",
		Example: `  holdfast subscriptions rm shop`,
		Args:    args(1, 1, "the subscription's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				if err := node.Subscriptions().Delete(ctx, given[0]); err != nil || s.json {
					return err
				}
				_, err := fmt.Fprintf(s.stdout, "subscription %s is removed\n", given[0])
				return err
			})
		},
	}
}

func (s *subscriptions) decide(verb, short string, do func(s client.Subscriptions, ctx context.Context, id, reason string) (api.Subscription, error)) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: `  holdfast subscriptions ` + verb + ` shop --reason 'their maintenance until noon'`,
		Args:    args(1, 1, "the subscription's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				one, err := do(node.Subscriptions(), ctx, given[0], reason)
				switch {
				case err != nil:
					return err
				case s.json:
					return printJSON(s.stdout, one)
				}
				_, err = fmt.Fprintf(s.stdout, "subscription %s is %s\n", one.ID, one.State)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is shown with the state")
	return cmd
}

func (s *subscriptions) test() *cobra.Command {
	var topic, kind, data string
	cmd := &cobra.Command{
		Use:     "test ID",
		Short:   "Call a subscriber with an event that is not stored, and show what it answers",
		Example: `  holdfast subscriptions test shop --topic orders --type order.paid --data '{"test":true}'`,
		Args:    args(1, 1, "the subscription's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				x, err := node.Subscriptions().Test(ctx, given[0], api.NewEvent{Topic: topic, Type: kind, Data: []byte(data)})
				switch {
				case err != nil:
					return err
				case s.json:
					return printJSON(s.stdout, x)
				}
				out := newSheet(s.stdout)
				out.line("url", x.URL)
				out.line("sent", x.Body)
				out.line("status", fmt.Sprint(x.Status))
				out.line("answer", x.Response)
				out.line("took", fmt.Sprintf("%.1f ms", x.TookMS))
				out.line("error", x.Error)
				out.line("advice", x.Advice)
				return out.end()
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "test", "topic of the event")
	cmd.Flags().StringVar(&kind, "type", "", "type of the event; empty: the topic")
	cmd.Flags().StringVar(&data, "data", "{}", "data of the event, as JSON")
	return cmd
}
