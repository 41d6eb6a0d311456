package main

import (
	"github.com/spf13/cobra"
)

func (a *app) auditCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Ask what has happened on a node, and who did it",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.auditQueryCommand(g), a.auditShowCommand(g), a.auditExportCommand(g), a.auditKPIsCommand(g))
	return cmd
}
