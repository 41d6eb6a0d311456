package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) usersCommand(g *global) *cobra.Command {
	u := &users{tokens{app: a, global: g}}
	cmd := &cobra.Command{
		Use: "users", Aliases: []string{"user", "people"},
		Short: "Add, list and change the people who sign in",
		Long: `Add, list and change the people who sign in to the pages of a node. Once there is
one, every request needs a token or a session, also on the loopback; the first one
must have the role admin.

With --data the commands work on the data folder of a node that does not run, with
--config or --store on the store that a configuration names. Passwords are asked for,
or read from standard input; none is an argument, where other users see it.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&u.over.Data, "data", "", "data folder of a node that does not run, instead of asking a running node")
	flags.StringVar(&u.file, "config", "", "configuration file whose store is used, instead of asking a node")
	flags.StringVar(&u.over.Store, "store", "", "address of a PostgreSQL database, instead of asking a node")
	cmd.AddCommand(u.add(), u.list(), u.show(), u.password(), u.role(), u.disable(), u.enable(), u.remove(), u.sessions(), u.end(), u.totp())
	return cmd
}

// users holds the commands about people, of a running node or of a store.
type users struct{ tokens }

// grantFlags are the flags that say what a person may do.
func grantFlags(cmd *cobra.Command, g *api.PersonGrant) (read func()) {
	var role string
	var rights []string
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "read, operate, auditor or admin")
	f.StringSliceVar(&rights, "right", nil, "in place of a role: a right, as of a token; may be repeated")
	f.StringSliceVar(&g.Sites, "site", nil, "only at this site; may be repeated")
	f.StringSliceVar(&g.Destinations, "destination", nil, "only what goes to this destination; may be repeated")
	f.StringSliceVar(&g.Topics, "topic", nil, "only what is about this topic; may be repeated")
	return func() {
		g.Role = api.Role(role)
		for _, r := range rights {
			g.Rights = append(g.Rights, api.Right(r))
		}
	}
}

// secret asks for a text without showing it, or reads a line of standard input.
func (u *users) secret(prompt string) (string, error) {
	if f, ok := u.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		_, _ = fmt.Fprint(u.stderr, prompt+": ")
		text, err := term.ReadPassword(int(f.Fd()))
		_, _ = fmt.Fprintln(u.stderr)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", strings.ToLower(prompt), err)
		}
		return string(text), nil
	}
	// Byte by byte: what follows is for the next question.
	var line []byte
	for b := make([]byte, 1); len(line) < 1<<10; {
		n, err := u.stdin.Read(b)
		if n == 1 && b[0] == '\n' || err != nil && len(line) > 0 {
			break
		}
		if err != nil {
			return "", usage(fmt.Errorf("%s: nothing to read in standard input", strings.ToLower(prompt)))
		}
		line = append(line, b[:n]...)
	}
	return strings.TrimSuffix(string(line), "\r"), nil
}

// newPassword asks for a password, twice where somebody types it.
func (u *users) newPassword() (string, error) {
	first, err := u.secret("New password")
	if f, ok := u.stdin.(*os.File); err != nil || !ok || !term.IsTerminal(int(f.Fd())) {
		return first, err
	}
	again, err := u.secret("Once more")
	if err == nil && again != first {
		err = usage(errors.New("the two passwords differ"))
	}
	return first, err
}

// done asks the node for a change, and says that it is made.
func (u *users) done(cmd *cobra.Command, said string, f func(ctx context.Context, p client.People) error) error {
	return u.ask(cmd, func(ctx context.Context, c *client.Client) error {
		if err := f(ctx, c.People()); err != nil || u.json {
			return err
		}
		_, err := io.WriteString(u.stdout, said+"\n")
		return err
	})
}

func (u *users) add() *cobra.Command {
	var req api.NewPerson
	cmd := &cobra.Command{
		Use: "add NAME", Aliases: []string{"create"},
		Short:   "Add a person; the password is asked for",
		Args:    args(1, 1, "the person's name"),
		Example: "  holdfast users add anna --role admin --data ./holdfast-data",
	}
	var grant api.PersonGrant
	read := grantFlags(cmd, &grant)
	cmd.Flags().StringVar(&req.Display, "display-name", "", "name that pages show (default: the name)")
	cmd.RunE = func(cmd *cobra.Command, given []string) (err error) {
		read()
		req.Name = given[0]
		req.Set(grant)
		if req.Password, err = u.newPassword(); err != nil {
			return err
		}
		return u.ask(cmd, func(ctx context.Context, c *client.Client) error {
			p, err := c.People().Add(ctx, req)
			switch {
			case err != nil:
				return err
			case u.json:
				return printJSON(u.stdout, p)
			}
			_, err = fmt.Fprintf(u.stdout, "%s is added, with %s\nRequests need a token or a password from now on, unless the node has tokens: never.\n", p.Name, may(p.Role, &p.Grant, nil))
			return err
		})
	}
	return cmd
}

func (u *users) list() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List people", Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return u.ask(cmd, func(ctx context.Context, c *client.Client) error {
				list, err := c.People().List(ctx)
				switch {
				case err != nil:
					return err
				case u.json:
					return printJSON(u.stdout, api.PersonList{People: list})
				}
				return listing(u.stdout, []string{"NAME", "RIGHTS", "ONLY FOR", "SIGNS IN BY", "LAST", "DISABLED"}, list, func(p *api.Person) []string {
					return []string{p.Name, cmp.Or(string(p.Role), rightsOf(&p.Grant)), scopeOf(&p.Grant), proofOf(p), optional(p.SignedIn), optional(p.Disabled)}
				})
			})
		},
	}
}

// proofOf says how a person signs in.
func proofOf(p *api.Person) string {
	switch {
	case p.Provider:
		return "provider"
	case p.TOTP:
		return "password, code"
	case p.Password:
		return "password"
	}
	return "-"
}

func (u *users) show() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a person", Args: args(1, 1, "the person's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return u.ask(cmd, func(ctx context.Context, c *client.Client) error {
				p, err := c.People().Get(ctx, given[0])
				switch {
				case err != nil:
					return err
				case u.json:
					return printJSON(u.stdout, p)
				}
				_, err = fmt.Fprintf(u.stdout, "%s (%s) with %s\nsigns in by %s, last %s\nrecovery codes left: %d\ncreated %s, disabled %s\n", p.Name, cmp.Or(p.Display, "-"),
					may(p.Role, &p.Grant, nil), proofOf(&p), optional(p.SignedIn), p.Codes, optional(p.Created), optional(p.Disabled))
				return err
			})
		},
	}
}

func (u *users) password() *cobra.Command {
	return &cobra.Command{
		Use: "set-password NAME", Aliases: []string{"passwd"},
		Short: "Set the password of a person; their sessions end", Args: args(1, 1, "the person's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var req api.NewPassword
			var err error
			if req.Password, err = u.newPassword(); err != nil {
				return err
			}
			return u.done(cmd, "the password of "+given[0]+" is set; their sessions have ended", func(ctx context.Context, p client.People) error {
				return p.SetPassword(ctx, given[0], req)
			})
		},
	}
}

func (u *users) role() *cobra.Command {
	var g api.PersonGrant
	force := false
	cmd := &cobra.Command{Use: "set-role NAME", Short: "Give a person other rights, at once", Args: args(1, 1, "the person's name")}
	read := grantFlags(cmd, &g)
	cmd.Flags().BoolVar(&force, "force", false, "also if nobody with the role admin is left")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		read()
		return u.done(cmd, given[0]+" has other rights now", func(ctx context.Context, p client.People) error { return p.SetRights(ctx, given[0], g, force) })
	}
	return cmd
}

// forced is a command that may take the last administrator away.
func (u *users) forced(use, short, said string, f func(p client.People, ctx context.Context, name string, force bool) error) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use: use + " NAME", Short: short, Args: args(1, 1, "the person's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return u.done(cmd, given[0]+said, func(ctx context.Context, p client.People) error { return f(p, ctx, given[0], force) })
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also if nobody with the role admin is left")
	return cmd
}

func (u *users) disable() *cobra.Command {
	return u.forced("disable", "End the sessions of a person, who signs in no more", " is disabled; their sessions have ended", client.People.Disable)
}

func (u *users) remove() *cobra.Command {
	cmd := u.forced("rm", "Remove a person and their sessions", " is removed", client.People.Remove)
	cmd.Aliases = []string{"remove", "delete"}
	return cmd
}

func (u *users) enable() *cobra.Command {
	return &cobra.Command{
		Use: "enable NAME", Short: "Let a person sign in again", Args: args(1, 1, "the person's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return u.done(cmd, given[0]+" may sign in", func(ctx context.Context, p client.People) error { return p.Enable(ctx, given[0]) })
		},
	}
}

func (u *users) sessions() *cobra.Command {
	return &cobra.Command{
		Use: "sessions [NAME]", Short: "List the sessions of a person, or of all", Args: args(0, 1, "the person's name, or none"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return u.ask(cmd, func(ctx context.Context, c *client.Client) error {
				list, err := c.People().Sessions(ctx, strings.Join(given, ""))
				switch {
				case err != nil:
					return err
				case u.json:
					return printJSON(u.stdout, api.SessionList{Sessions: list})
				}
				return listing(u.stdout, []string{"ID", "PERSON", "BY", "FROM", "SINCE", "LAST REQUEST", "UNTIL"}, list, func(s *api.Session) []string {
					return []string{s.ID, s.Person, s.Via, cmp.Or(s.From, "-"), optional(s.Created), optional(s.Seen), optional(s.Until)}
				})
			})
		},
	}
}

func (u *users) end() *cobra.Command {
	id := ""
	cmd := &cobra.Command{
		Use: "end-sessions [NAME]", Short: "End the sessions of a person, or one by its id", Args: args(0, 1, "the person's name, or --id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if (id == "") == (len(given) == 0) {
				return usage(errors.New("name a person, or a session with --id"))
			}
			return u.ask(cmd, func(ctx context.Context, c *client.Client) error {
				n := int64(1)
				var err error
				if id != "" {
					err = c.People().EndSession(ctx, id)
				} else {
					n, err = c.People().EndSessions(ctx, given[0])
				}
				switch {
				case err != nil:
					return err
				case u.json:
					return printJSON(u.stdout, api.Ended{Ended: n})
				}
				_, err = fmt.Fprintf(u.stdout, "sessions ended: %d\n", n)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "end the session with this id")
	return cmd
}

func (u *users) totp() *cobra.Command {
	remove := false
	cmd := &cobra.Command{
		Use:   "totp NAME",
		Short: "Set the second factor of a person, or remove it",
		Long: `Set the second factor of a person: print a secret for an authenticator program,
and ask for the code that it then shows. The recovery codes are printed once.`,
		Args: args(1, 1, "the person's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if remove {
				return u.done(cmd, given[0]+" signs in by password alone", func(ctx context.Context, p client.People) error { return p.RemoveTOTP(ctx, given[0]) })
			}
			return u.ask(cmd, func(ctx context.Context, c *client.Client) error { return u.enroll(ctx, c.People(), given[0]) })
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the second factor; the person's sessions end")
	return cmd
}

func (u *users) enroll(ctx context.Context, p client.People, name string) error {
	n, err := p.NewTOTP(ctx, name)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(u.stderr, "secret   %s\naddress  %s\n", n.Secret, n.Address)
	code, err := u.secret("Code")
	if err != nil {
		return err
	}
	made, err := p.SetTOTP(ctx, name, api.EnrollTOTP{Secret: n.Secret, Code: code})
	switch {
	case err != nil:
		return err
	case u.json:
		return printJSON(u.stdout, made)
	}
	_, err = fmt.Fprintf(u.stdout, "recovery codes, each for one sign-in:\n%s\n", strings.Join(made.Codes, "\n"))
	return err
}
