package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

func (a *app) tokensCommand(g *global) *cobra.Command {
	t := &tokens{app: a, global: g}
	cmd := &cobra.Command{
		Use: "tokens", Aliases: []string{"token"},
		Short: "Create, list and remove tokens",
		Long: `Create, list and remove the tokens with which programs and people call the node. A
node that listens on the loopback needs none.

A node that other machines can reach does not start before it has one with the
role admin, unless it has sites or peers to serve, or something waits. With
--data the commands work on the data folder of a node that does not run, with
--config or --store on the store that a configuration names: a folder, or a
PostgreSQL database, whose nodes may run meanwhile.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&t.over.Data, "data", "", "data folder of a node that does not run, instead of asking a running node")
	flags.StringVar(&t.file, "config", "", "configuration file whose store is used, instead of asking a node")
	flags.StringVar(&t.over.Store, "store", "", "address of a PostgreSQL database, instead of asking a node")
	cmd.AddCommand(t.create(), t.list(), t.remove())
	return cmd
}

// tokens holds the commands about tokens, of a running node or of a store.
type tokens struct {
	*app
	*global
	configFlags
}

// ask calls f with a client of the node, or of the store.
func (t *tokens) ask(cmd *cobra.Command, f func(ctx context.Context, c *client.Client) error) error {
	if t.over.Data == "" && t.over.Store == "" && t.file == "" {
		return t.app.ask(cmd, t.global, f)
	}
	if cmd.Flags().Changed("url") {
		return usage(errors.New("--url and a store exclude each other: leave out --data, --config and --store, or --url"))
	}
	conf, err := t.store(cmd)
	if err != nil {
		return err
	}
	url, stop, err := node.Offline(cmd.Context(), conf)
	if err != nil {
		return ofStores(err)
	}
	c, err := client.New(url, "")
	if err == nil {
		err = f(cmd.Context(), c)
	}
	return errors.Join(err, stop())
}

// store returns the configuration of the store. If only a folder is named, it is that folder,
// whatever the environment says.
func (t *tokens) store(cmd *cobra.Command) (*config.Config, error) {
	if t.file == "" && t.over.Store == "" {
		c := config.Default()
		c.Data = t.over.Data
		return c, nil
	}
	if t.over.Data != "" && t.over.Store != "" {
		return nil, usage(errors.New("--data and --store exclude each other: name a folder or a database"))
	}
	return t.load(cmd, &t.configFlags)
}

func (t *tokens) create() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Create a token and print its secret. It cannot be shown again: the node keeps only
a hash of it. The roles are

  read     look
  operate  look, send, retry, discard, mark done
  admin    all of these, and tokens, backups, channels and lists`,
		Example: `  holdfast tokens create erp --role operate
  holdfast tokens create backup --role read >token && chmod 600 token
  holdfast tokens create first --role admin --data /var/lib/holdfast
  holdfast tokens create first --role admin --config /etc/holdfast/holdfast.yaml`,
		Args: args(1, 1, "the token's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) error {
				created, err := c.Tokens().Create(ctx, api.NewToken{Name: given[0], Role: api.Role(role)})
				switch {
				case err != nil:
					return err
				case t.json:
					return printJSON(t.stdout, created)
				}
				t.note("token %s with the role %s; keep it now, it cannot be shown again:\n", created.Name, created.Role)
				_, err = fmt.Fprintln(t.stdout, created.Secret)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", string(api.Read), "read, operate or admin")
	return cmd
}

func (t *tokens) list() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List tokens",
		Args:  args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) error {
				list, err := c.Tokens().List(ctx)
				switch {
				case err != nil:
					return err
				case t.json:
					return printJSON(t.stdout, api.TokenList{Tokens: list})
				}
				rows := make([][]string, len(list))
				for i, k := range list {
					rows[i] = []string{k.Name, string(k.Role), optional(k.Created), optional(k.LastUsed)}
				}
				return table(t.stdout, []string{"NAME", "ROLE", "CREATED", "LAST USED"}, rows)
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

func (t *tokens) remove() *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove", "delete"},
		Short: "Remove a token: requests that use it are refused from now on",
		Long: `Remove a token: requests that use it are refused from now on. The last one with
the role admin stays unless --force is given: without one nobody can operate a
node that asks for tokens.`,
		Args: args(1, 1, "the token's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) error {
				if err := c.Tokens().Delete(ctx, given[0], force); err != nil {
					return err
				}
				if t.json {
					return nil
				}
				_, err := fmt.Fprintf(t.stdout, "token %s is removed\n", given[0])
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove even the last token with the role admin")
	return cmd
}
