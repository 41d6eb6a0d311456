package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
)

func (a *app) auditEraseCommand(g *global) *cobra.Command {
	var e api.AuditErasure
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Erase personal values from the audit log",
		Long: `Erase the personal values that stand beside the records of the audit log: addresses
of recipients, what mail servers said of them, contents, and filters of searches. By
--person each value that names an address goes, by --value each that is exactly this,
by --record all values of one record. The records stay, and so does all that proves
them. The log has a record of how many values went, of which records, who erased them
and why, and not what they were.

What a hold keeps stays, unless --despite-hold is given. Look with --dry-run first:
nothing brings a value back. The node erases its own log, and a central also the copies
of its sites' logs. What a site has of them it erases, too, once it is told; and what a
site erases, its central. Who has not confirmed that yet is said.`,
		Example: `  holdfast audit erase --person a.smit@example.org --reason 'request 4711' --dry-run
  holdfast audit erase --person a.smit@example.org --reason 'request 4711'`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case e.Reason == "":
				return usage(errReason)
			case e.Person+e.Value+e.Record == "":
				return usage(errors.New("say what to erase: --person, --value or --record"))
			}
			c, err := a.client(cmd, g)
			if err != nil {
				return err
			}
			gone, err := c.Audit().Erase(cmd.Context(), &e) // however long it takes
			switch {
			case err != nil:
				return err
			case g.json:
				return printJSON(a.stdout, gone)
			}
			would := ""
			if e.DryRun {
				would = "would be "
			}
			_, err = fmt.Fprintf(a.stdout, "%d values of %d records %serased, %d kept by holds\n", gone.Values, gone.Records, would, gone.Held)
			for _, u := range gone.Unconfirmed {
				_, failed := fmt.Fprintf(a.stdout, "%d values not confirmed yet by %s, the oldest since %s\n", u.Values, cmp.Or(plain(u.Site), "central"), u.Since.UTC().Format(time.RFC3339))
				err = errors.Join(err, failed)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.Person, "person", "", "an address: values that name it")
	f.StringVar(&e.Value, "value", "", "values that are exactly this text")
	f.StringVar(&e.Record, "record", "", "all values of the record with this id of its event")
	f.StringVar(&e.Reason, "reason", "", "why, in one line, for the audit log; do not name the person")
	f.BoolVar(&e.DespiteHold, "despite-hold", false, "also values of records that a hold keeps")
	f.BoolVar(&e.DryRun, "dry-run", false, "only say how many would go")
	return cmd
}
