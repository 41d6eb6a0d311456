package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
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
role admin that does not end, unless it has sites or peers to serve, or something waits. With
--data the commands work on the data folder of a node that does not run, with
--config or --store on the store that a configuration names: a folder, or a
PostgreSQL database, whose nodes may run meanwhile.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&t.over.Data, "data", "", "data folder of a node that does not run, instead of asking a running node")
	flags.StringVar(&t.file, "config", "", "configuration file whose store is used, instead of asking a node")
	flags.StringVar(&t.over.Store, "store", "", "address of a PostgreSQL database, instead of asking a node")
	cmd.AddCommand(t.create(), t.list(), t.self(), t.remove())
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
	var req api.NewToken
	var role string
	var rights, portal []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Create a token and print its secret. It cannot be shown again: the node keeps only
a hash of it. A token has rights:

  read          look at everything but the audit
  send          hand in messages and notifications
  operate       retry, discard, reschedule, pause, resume, mark done
  audit-read    look at the audit
  audit-export  take the audit away; only with audit-read
  audit-hold    say what stays in the audit, and what is erased; only with audit-read

The roles are sets of them:

  read     read
  operate  read, send, operate
  auditor  audit-read, audit-export
  admin    all, and tokens, sites, backups, channels and lists

With --site, --destination and --topic a token is only for what these name: it sees
nothing else, and no numbers of the whole node. The role admin cannot be narrowed.

With --portal a token is for a subscriber to events: it sees these subscriptions and
what they were sent, and may have an event sent again, call the subscriber with a
test, and replace the secret. With --right portal-pause it may pause them too. It is
valid for an hour unless --for says otherwise, and for a day at most.`,
		Example: `  holdfast tokens create erp --role operate
  holdfast tokens create mixer --right send --destination erp,mes
  holdfast tokens create shift --role operate --site plant-4 --for 90d
  holdfast tokens create shop-anna --portal shop --for 2h
  holdfast tokens create backup --role read >token && chmod 600 token
  holdfast tokens create first --role admin --data /var/lib/holdfast
  holdfast tokens create first --role admin --config /etc/holdfast/holdfast.yaml`,
		Args: args(1, 1, "the token's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) error {
				req.Name, req.Role = given[0], api.Role(role)
				if len(portal) > 0 {
					rights = append([]string{string(api.Portal)}, rights...)
				}
				for _, id := range portal {
					req.Destinations = append(req.Destinations, "subscription:"+id)
				}
				for _, r := range rights {
					req.Rights = append(req.Rights, api.Right(r))
				}
				if len(rights) > 0 && !cmd.Flags().Changed("role") {
					req.Role = ""
				}
				created, err := c.Tokens().Create(ctx, req)
				switch {
				case err != nil:
					return err
				case t.json:
					return printJSON(t.stdout, created)
				}
				t.note("token %s with %s; keep it now, it cannot be shown again:\n", created.Name, may(created.Role, &created.Grant, created.Until))
				_, err = fmt.Fprintln(t.stdout, created.Secret)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&role, "role", string(api.RoleRead), "read, operate, auditor or admin")
	flags.StringSliceVar(&rights, "right", nil, "rights in place of a role, separated by commas")
	flags.StringSliceVar(&req.Sites, "site", nil, "only what is at this site; may be repeated")
	flags.StringSliceVar(&req.Destinations, "destination", nil, "only what goes to this destination; may be repeated")
	flags.StringSliceVar(&req.Topics, "topic", nil, "only what is about this topic; may be repeated")
	flags.StringSliceVar(&portal, "portal", nil, "for the subscriber of this subscription; may be repeated")
	flags.StringVar(&req.For, "for", "", "how long it is valid, such as 12h or 90d (default: until it is removed)")
	return cmd
}

// may describes what a token may do, in words.
func may(role api.Role, g *api.Grant, until *time.Time) string {
	text := "the role " + string(role)
	if role == "" {
		text = "the rights " + rightsOf(g)
	}
	if scope := scopeOf(g); scope != "-" {
		text += ", only for " + scope
	}
	if until != nil {
		text += ", until " + at(*until)
	}
	return text
}

func rightsOf(g *api.Grant) string {
	names := make([]string, len(g.Rights))
	for i, r := range g.Rights {
		names[i] = string(r)
	}
	return cmp.Or(strings.Join(names, ","), "none")
}

func scopeOf(g *api.Grant) string {
	var parts []string
	for _, d := range []struct {
		kind  string
		names []string
	}{{"site", g.Sites}, {"destination", g.Destinations}, {"topic", g.Topics}} {
		if len(d.names) > 0 {
			parts = append(parts, d.kind+" "+strings.Join(d.names, ","))
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "-")
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
				return listing(t.stdout, []string{"NAME", "RIGHTS", "ONLY FOR", "CREATED", "LAST USED", "UNTIL"}, list, func(k *api.Token) []string {
					until := optional(k.Until)
					if k.Ended {
						until = "ended"
					}
					return []string{k.Name, cmp.Or(string(k.Role), rightsOf(&k.Grant)), scopeOf(&k.Grant), optional(k.Created), optional(k.LastUsed), until}
				})
			})
		},
	}
}

func (t *tokens) self() *cobra.Command {
	return &cobra.Command{
		Use:   "self",
		Short: "Show who asks, and what they may do",
		Args:  args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.ask(cmd, func(ctx context.Context, c *client.Client) error {
				who, err := c.Tokens().Self(ctx)
				switch {
				case err != nil:
					return err
				case t.json:
					return printJSON(t.stdout, who)
				}
				_, err = fmt.Fprintf(t.stdout, "%s with %s\n", who.Name, may(who.Role, &who.Grant, nil))
				return err
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
the role admin that does not end stays unless --force is given: without one nobody
can operate a node that asks for tokens.`,
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
	cmd.Flags().BoolVar(&force, "force", false, "remove even the last token with the role admin that does not end")
	return cmd
}
