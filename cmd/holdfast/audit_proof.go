package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) auditCheckpointCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint",
		Short: "Sign what the audit log has now, and print that",
		Long: `Sign what the node's own audit log has now, and print the signed note. Kept where
those who can change the database cannot change it, it shows later that nothing of
that was changed or cut off: holdfast audit verify --witness reads a file of notes.`,
		Example: `  holdfast audit checkpoint >> /mnt/witness/shop-12`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				made, err := c.Audit().Checkpoint(ctx)
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, made)
				}
				_, err = io.WriteString(a.stdout, made.Note)
				return err
			})
		},
	}
}

func (a *app) auditProveCommand(g *global) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "prove ID",
		Short: "Prove that a record is in the audit log",
		Long: `Write a proof that a record is in the audit log, by the id of its event. With the
verifier key anybody can verify it, without the node and its database: holdfast audit
verify --proof. The proof has the record, and none of its personal values. Of a site's
record it can be asked at central, too.`,
		Example: `  holdfast audit prove 5e4f9f6c-8d9e-8f0a-9b1c-0d2e3f405162 --out proof.json
  holdfast audit verify --proof proof.json --key "$VERIFIER_KEY"`,
		Args: args(1, 1, "one id of an event"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var proof api.AuditProof
			if err := a.ask(cmd, g, func(ctx context.Context, c *client.Client) (err error) {
				proof, err = c.Audit().Prove(ctx, given[0])
				return err
			}); err != nil {
				return err
			}
			return a.writeExport(file, func(w io.Writer) error { return json.NewEncoder(w).Encode(proof) })
		},
	}
	cmd.Flags().StringVar(&file, "out", "-", `new file to write; "-" for standard output`)
	return cmd
}
