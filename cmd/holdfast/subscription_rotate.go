package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/client"
)

func (s *subscriptions) rotate() *cobra.Command {
	var overlap string
	cmd := &cobra.Command{
		Use:   "rotate-secret ID",
		Short: "Replace the secret that signs, and print what its receiver verifies with",
		Long: `Replace the secret that signs the requests to a subscriber. The new one is printed
once, on standard output: whsec_…, or for a subscription that signs by ed25519 the
public key, whpk_…. The former ones go on to sign for --overlap, so that the receiver
can change its own meanwhile. If the answer is lost, run it again.`,
		Example: `  holdfast subscriptions rotate-secret shop >shop.secret
  holdfast subscriptions rotate-secret shop --overlap 0s`,
		Args: args(1, 1, "the subscription's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return s.ask(cmd, s.global, func(ctx context.Context, node *client.Client) error {
				out, err := node.Subscriptions().RotateSecret(ctx, given[0], overlap)
				switch {
				case err != nil:
					return err
				case s.json:
					return printJSON(s.stdout, out)
				}
				_, err = fmt.Fprintln(s.stdout, cmp.Or(out.Secret, out.Public))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "", "how long the former ones go on to sign, at most 7d (default 24h)")
	return cmd
}
