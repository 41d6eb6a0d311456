package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// errReason asks for what the log keeps for good.
var errReason = errors.New("--reason is missing: the log has it for good")

func (a *app) auditHoldCommand(g *global) *cobra.Command {
	var f auditFilter
	h := api.NewAuditHold{}
	cmd := &cobra.Command{
		Use:   "hold NAME",
		Short: "Keep records of the audit log from being purged",
		Long: `Keep the records that a filter selects from being purged, those that are there and
those that come, and with them all later ones of the same log. The log has a record
of the hold, with who and why. Release it by its name.`,
		Example: `  holdfast audit hold case-2026-17 --site plant-7 --since 2026-11-01 --reason 'inquiry of the inspectorate' --dry-run
  holdfast audit hold case-2026-17 --site plant-7 --since 2026-11-01 --reason 'inquiry of the inspectorate'`,
		Args: args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			if h.Reason == "" {
				return usage(errReason)
			}
			h.Name = given[0]
			if h.Filter, err = f.read(); err != nil {
				return err
			}
			return a.hold(cmd, g, &h)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().StringVar(&h.Reason, "reason", "", "why, in one line, for the audit log")
	cmd.Flags().BoolVar(&h.DryRun, "dry-run", false, "only say how many records match now")
	return cmd
}

func (a *app) hold(cmd *cobra.Command, g *global, h *api.NewAuditHold) error {
	c, err := a.client(cmd, g)
	if err != nil {
		return err
	}
	made, err := c.Audit().Hold(cmd.Context(), h) // counting takes a while
	switch {
	case err != nil:
		return err
	case g.json:
		return printJSON(a.stdout, made)
	}
	least := ""
	if made.More {
		least = "at least "
	}
	did := "keeps"
	if h.DryRun {
		did = "would keep"
	}
	_, err = fmt.Fprintf(a.stdout, "%s %s %s%d records that are there, and all that follow them\n", h.Name, did, least, made.Records)
	return err
}

func (a *app) auditHoldsCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "holds",
		Short: "List what is kept from being purged",
		Args:  args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				list, err := c.Audit().Holds(ctx)
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, list)
				}
				rows := make([][]string, len(list.Holds))
				for i := range list.Holds {
					h := &list.Holds[i]
					rows[i] = []string{h.Name, at(h.Since), h.Actor, filterText(&h.Filter), h.Reason}
				}
				return table(a.stdout, []string{"NAME", "SINCE", "BY", "FILTER", "REASON"}, rows)
			})
		},
	}
}

func filterText(f *api.AuditFilter) string {
	all := f.Map()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, name+"="+all[name])
	}
	return strings.Join(parts, " ")
}

func (a *app) auditReleaseCommand(g *global) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "release NAME",
		Short:   "Release a hold, so that the next purge takes what is old",
		Example: `  holdfast audit release case-2026-17 --reason 'the inquiry has ended'`,
		Args:    args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if reason == "" {
				return usage(errReason)
			}
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				return c.Audit().Release(ctx, given[0], reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in one line, for the audit log")
	return cmd
}
