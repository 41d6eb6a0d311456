package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin"
)

func (a *app) tokensCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tokens", Aliases: []string{"token"},
		Short: "Create, list and remove tokens",
		Long: `Create, list and remove the tokens that programs and people use towards the
node. A node that listens on the loopback asks for none: so the first one is
made on its own machine.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.createTokenCommand(g), a.listTokensCommand(g), a.removeTokenCommand(g))
	return cmd
}

func (a *app) createTokenCommand(g *global) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Create a token and print its secret, this once: the node keeps only a hash of
it. The roles are

  read     look
  operate  look, send, retry, discard, mark done
  admin    all of it, and tokens`,
		Example: `  holdfast tokens create erp --role operate
  holdfast tokens create backup --role read >token && chmod 600 token`,
		Args: args(1, 1, "the token's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *admin.Client) error {
				created, err := c.CreateToken(ctx, admin.NewToken{Name: given[0], Role: admin.Role(role)})
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, created)
				}
				a.note("token %s with the role %s; keep it now, it cannot be shown again:\n", created.Name, created.Role)
				_, err = fmt.Fprintln(a.stdout, created.Secret)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", string(admin.Read), "read, operate or admin")
	return cmd
}

func (a *app) listTokensCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List tokens",
		Args:  args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *admin.Client) error {
				list, err := c.Tokens(ctx)
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, admin.TokenList{Tokens: list})
				}
				rows := make([][]string, len(list))
				for i, t := range list {
					rows[i] = []string{t.Name, string(t.Role), optional(t.Created), optional(t.LastUsed)}
				}
				return table(a.stdout, []string{"NAME", "ROLE", "CREATED", "LAST USED"}, rows)
			})
		},
	}
}

func optional(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return at(*t)
}

func (a *app) removeTokenCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove", "delete"},
		Short: "Remove a token: requests that use it are refused from now on",
		Args:  args(1, 1, "the token's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *admin.Client) error {
				if err := c.DeleteToken(ctx, given[0]); err != nil {
					return err
				}
				if g.json {
					return nil
				}
				_, err := fmt.Fprintf(a.stdout, "token %s is removed\n", given[0])
				return err
			})
		},
	}
}
