package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) scheduleCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Show and set when messages to subscribers are tried again",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.showSchedule(g), a.setSchedule(g), a.resetSchedule(g))
	return cmd
}

func (a *app) showSchedule(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the schedule of subscriptions without one of their own, as a timetable",
		Example: `  holdfast schedule show`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, node *client.Client) error {
				s, err := node.Schedule(ctx)
				if err != nil {
					return err
				}
				return a.printSchedule(g, &s)
			})
		},
	}
}

func (a *app) printSchedule(g *global, s *api.UsualSchedule) error {
	if g.json {
		return printJSON(a.stdout, s)
	}
	out := newSheet(a.stdout)
	out.line("backoff", s.Backoff)
	out.line("factor", s.Factor)
	out.line("base", fmt.Sprint(s.Base))
	out.line("cap", s.Cap)
	out.line("retries", fmt.Sprint(*s.Retries))
	out.line("from", s.From)
	out.line("set by", s.Actor)
	out.when("changed", s.Changed)
	out.line("counts for", map[string]string{"next": "what fails from then on", "waiting": "what fails from then on, and retries that were planned"}[s.Apply])
	if s.Moving {
		out.line("moving", "planned retries are still moving")
	}
	if err := out.end(); err != nil {
		return err
	}
	return listing(a.stdout, []string{"ATTEMPT", "WAIT", "AFTER THE FIRST"}, s.Timetable, func(p *api.PlannedAttempt) []string {
		return []string{fmt.Sprint(p.Attempt), p.Wait, p.After}
	})
}

func (a *app) resetSchedule(g *global) *cobra.Command {
	var apply string
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Give up what was set: the configuration of each node holds again",
		Example: `  holdfast schedule reset
  holdfast schedule reset --apply waiting`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, node *client.Client) error {
				s, err := node.ResetSchedule(ctx, apply)
				if err != nil {
					return err
				}
				return a.printSchedule(g, &s)
			})
		},
	}
	cmd.Flags().StringVar(&apply, "apply", "next", "for what it counts: next or waiting")
	return cmd
}

func (a *app) setSchedule(g *global) *cobra.Command {
	var given api.UsualSchedule
	var retries int
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the values whose flags are given, on all nodes of the store",
		Long: `Change the values whose flags are given, on all nodes of the store. Before retry c, counted
from 0, a message waits min(cap, factor · base^c). Subscriptions with a schedule of their own
keep it.

--apply next leaves each retry that is planned already when it was planned: what fails from
now on waits by the new schedule. --apply waiting moves planned retries, too, as if the new
schedule had planned them. What has had as many attempts as it allows parks when it would be
due.`,
		Example: `  holdfast schedule set --factor 10s --retries 10
  holdfast schedule set --cap 1h --apply waiting`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, node *client.Client) error {
				s, err := node.Schedule(ctx)
				if err != nil {
					return err
				}
				s.Apply = given.Apply
				for flag, set := range map[string]func(){
					"backoff": func() { s.Backoff = given.Backoff }, "factor": func() { s.Factor = given.Factor }, "base": func() { s.Base = given.Base },
					"cap": func() { s.Cap = given.Cap }, "retries": func() { s.Retries = &retries },
				} {
					if cmd.Flags().Changed(flag) {
						set()
					}
				}
				if s, err = node.SetSchedule(ctx, api.UsualScheduleSpec(s)); err != nil {
					return err
				}
				return a.printSchedule(g, &s)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&given.Backoff, "backoff", "", "how waits grow: exponential, plain (a factor of one second) or off (each retry is at once)")
	f.StringVar(&given.Factor, "factor", "", "the first wait")
	f.Float64Var(&given.Base, "base", 0, "what each wait is multiplied by to get the next")
	f.StringVar(&given.Cap, "cap", "", "the longest wait")
	f.IntVar(&retries, "retries", 0, "attempts after the first")
	f.StringVar(&given.Apply, "apply", "next", "for what it counts: next or waiting")
	return cmd
}
