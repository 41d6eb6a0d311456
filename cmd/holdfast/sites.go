package main

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) sitesCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sites", Aliases: []string{"site"},
		Short: "Add, list, rotate and revoke sites; look at what waits there, and decide",
		Long: `Add, list, rotate and revoke the sites of a central node, and ask a site for
what waits there. A site that is not connected cannot be asked; the error says
when it was last seen.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.siteAdd(g), a.siteList(g), a.siteHealth(g), a.siteRotate(g), a.siteRevoke(g), a.siteParked(g), a.siteHeld(g), a.siteShow(g))
	cmd.AddCommand(a.decisions(g, "sites", of)...)
	return cmd
}

// of returns a function that makes the client of a site's messages.
func of(site string) func(*client.Client) *client.Client {
	return func(c *client.Client) *client.Client { return c.At(site) }
}

func (a *app) siteAdd(g *global) *cobra.Command {
	var central string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a site, and print the token with which it enrolls",
		Long: `Add a site, and print the token with which it enrolls, and the command to run
there. The token can be used once, within a day; central keeps only a hash of it.`,
		Example: `  holdfast sites add plant-7 --central https://central.example:8420`,
		Args:    args(1, 1, "the site's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.siteToken(cmd, g, central, func(ctx context.Context, c *client.Client) (api.SiteToken, error) {
				return c.Sites().Add(ctx, given[0])
			})
		},
	}
	centralFlag(cmd, &central)
	return cmd
}

func centralFlag(cmd *cobra.Command, central *string) {
	cmd.Flags().StringVar(central, "central", "", "central's address as the site sees it, for the printed command; default: that of --url")
}

// siteToken prints a token, and on standard error what to do with it.
func (a *app) siteToken(cmd *cobra.Command, g *global, central string, ask func(context.Context, *client.Client) (api.SiteToken, error)) error {
	return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
		t, err := ask(ctx, c)
		switch {
		case err != nil:
			return err
		case g.json:
			return printJSON(a.stdout, t)
		}
		a.note("token for site %s, for one use until %s; it cannot be shown again. Run at the site:\n", t.Name, at(t.Expires))
		ca := ""
		if g.ca != "" || a.getenv(envCA) != "" { // if this machine needs an extra CA, the site will probably need one, too
			ca = " --ca FILE"
		}
		a.note("  holdfast enroll %s%s\nand give it the token on standard input:\n", a.seenFrom(cmd, g, central), ca)
		_, err = fmt.Fprintln(a.stdout, t.Token)
		return err
	})
}

// seenFrom returns central's address as a site sees it, as far as this machine can know it.
func (a *app) seenFrom(cmd *cobra.Command, g *global, central string) string {
	address := g.url
	if given := a.getenv(envURL); given != "" && !cmd.Flags().Changed("url") {
		address = given
	}
	if central != "" {
		address = central
	}
	if u, err := url.Parse(address); err == nil && u.Scheme == "https" {
		return address
	}
	return "https://ADDRESS-OF-CENTRAL"
}

func (a *app) siteRotate(g *global) *cobra.Command {
	var central string
	var now bool
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Print a token with which a site enrolls again",
		Long: `Print a token with which a site enrolls again, even if its first token is spent or
too old. The old credential stays valid until then, and for a day after. Use --now if
a credential was stolen: it ends at once, and the site is shut out until it enrolls
again.`,
		Example: `  holdfast sites rotate plant-7
  holdfast sites rotate plant-7 --now
  holdfast enroll https://central.example:8420 --force    # at the site`,
		Args: args(1, 1, "the site's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.siteToken(cmd, g, central, func(ctx context.Context, c *client.Client) (api.SiteToken, error) {
				return c.Sites().Rotate(ctx, given[0], now)
			})
		},
	}
	centralFlag(cmd, &central)
	cmd.Flags().BoolVar(&now, "now", false, "end the site's credentials at once")
	return cmd
}

func (a *app) siteRevoke(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Shut a site out: its credential ends at once, and messages there go on waiting",
		Example: `  holdfast sites revoke plant-7`,
		Args:    args(1, 1, "the site's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				if err := c.Sites().Revoke(ctx, given[0]); err != nil {
					return err
				}
				if g.json {
					return nil
				}
				_, err := fmt.Fprintf(a.stdout, "site %s is revoked\n", given[0])
				return err
			})
		},
	}
}

func (a *app) siteList(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short:   "List sites, with when each was last heard and what it reported then",
		Example: `  holdfast sites ls --json`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.allSites(cmd, g, []string{"NAME", "STATE", "LAST SEEN", "PENDING", "PARKED", "OLDEST", "VERSION"}, siteRow)
		},
	}
}

// allSites prints a row for each site.
func (a *app) allSites(cmd *cobra.Command, g *global, columns []string, row func(*api.Site) []string) error {
	return show(a, cmd, g, func(ctx context.Context, c *client.Client) (all api.SiteList, err error) {
		all.Sites, err = c.Sites().List(ctx)
		return all, err
	}, func(w io.Writer, all *api.SiteList) error { return listing(w, columns, all.Sites, row) })
}

// siteRow leaves out what a site has not reported.
func siteRow(s *api.Site) []string {
	row := []string{s.Name, s.State, silence(s), "-", "-", "-", s.Version}
	if s.ReportMs != nil {
		row[3], row[4], row[5] = fmt.Sprint(s.Pending), fmt.Sprint(s.Parked), lasting(s.OldestMs)
	}
	return row
}

func (a *app) siteParked(g *global) *cobra.Command {
	return a.siteMessages(g, client.MessageQuery{States: []string{"parked"}}, &cobra.Command{
		Use:   "parked SITE",
		Short: "List the parked messages of a site, of all destinations",
		Example: `  holdfast sites parked plant-7
  holdfast sites parked plant-7 --all -q | xargs holdfast sites retry plant-7`,
	})
}

func (a *app) siteHeld(g *global) *cobra.Command {
	return a.siteMessages(g, client.MessageQuery{Held: true}, &cobra.Command{
		Use:   "held SITE",
		Short: "List the messages of a site that are held because its clock is doubted",
		Example: `  holdfast sites held plant-7
  holdfast sites held plant-7 --all -q | xargs holdfast sites run plant-7`,
	})
}

// siteMessages makes a command that lists what q finds at a site.
func (a *app) siteMessages(g *global, q client.MessageQuery, cmd *cobra.Command) *cobra.Command {
	var all, quiet bool
	cmd.Args = args(1, 1, "the site's name")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		return a.listMessages(cmd, g, of(given[0]), q, all, quiet)
	}
	f := cmd.Flags()
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.IntVar(&q.Limit, "limit", 50, "messages per page, 1 to 500")
	f.StringVar(&q.After, "after", "", "begin after this position, which the previous page gave")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	f.BoolVarP(&quiet, "quiet", "q", false, "print message ids only, oldest first")
	return cmd
}

func (a *app) siteShow(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show SITE ID",
		Short:   "Show a message of a site, by its id or that of the operation",
		Example: `  holdfast sites show plant-7 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(2, 2, "the site's name and a message id"),
		RunE:    func(cmd *cobra.Command, given []string) error { return a.showMessage(cmd, g, of(given[0]), given[1]) },
	}
}
