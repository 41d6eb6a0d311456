package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

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

func (a *app) auditRotateCommand(g *global) *cobra.Command {
	var req api.AuditRotation
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Change the key that signs the audit log",
		Long: `Change the key that signs the audit log, while the node runs. The new key is that of
the file beside audit.key with .new at its end, or one that the node makes there. The
log has a record of it, and both keys sign what the log then has: whoever believes the
old key believes the new one by that. Then the new key takes the file of the old one.
The note that both have signed is printed.

If no answer comes, the command names the key that was to be replaced. Asked again with
--from that key, it changes the key once, and prints the same note.

Nodes that share a database: put the new key beside the audit.key of each of them first.`,
		Example: `  holdfast audit rotate-key --reason 'yearly change'`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.Reason == "" {
				return usage(errReason)
			}
			if req.From == "" {
				if err := a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
					signed, err := c.Audit().Checkpoint(ctx)
					req.From = signed.Key
					return err
				}); err != nil {
					return err
				}
			}
			c, err := a.client(cmd, g)
			if err != nil {
				return err
			}
			made, err := c.Audit().Rotate(cmd.Context(), req) // it waits for the record
			refused, answered := errors.AsType[*api.Problem](err)
			switch {
			case err != nil && (!answered || refused.Status >= http.StatusInternalServerError):
				return fmt.Errorf("%w; the key may have changed: ask again with --from %s", err, req.From)
			case err != nil:
				return err
			case g.json:
				return printJSON(a.stdout, made)
			}
			_, err = io.WriteString(a.stdout, made.Note)
			return err
		},
	}
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why, in one line, for the audit log")
	cmd.Flags().StringVar(&req.From, "from", "", "verifier key to replace, to ask again when an answer was lost; default: the one that signs now")
	return cmd
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
