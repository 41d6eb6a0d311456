package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// Variables that replace flags.
const (
	envURL   = "HOLDFAST_URL"
	envToken = "HOLDFAST_TOKEN"
	envCA    = "HOLDFAST_CA"
)

const defaultURL = "http://127.0.0.1:8420"

// global holds the flags of every command.
type global struct {
	url, token, tokenFile, ca string
	json                      bool
	timeout                   time.Duration
}

// group is the action of a command that only holds other commands.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(errors.New(text))
}

// args turns a wrong number of arguments into a usage error that says what is expected.
func args(least, most int, expected string) cobra.PositionalArgs {
	return func(_ *cobra.Command, given []string) error {
		if len(given) < least || most >= 0 && len(given) > most {
			return usage(fmt.Errorf("got %s; expected %s", brief.Count(len(given), "argument", "arguments"), expected))
		}
		return nil
	}
}

// ask runs f with a client of the node, within the time-out of one answer.
func (a *app) ask(cmd *cobra.Command, g *global, f func(ctx context.Context, c *client.Client) error) error {
	if g.timeout <= 0 {
		return usage(fmt.Errorf("--timeout %s: must be longer than 0", g.timeout))
	}
	c, err := a.client(cmd, g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), g.timeout)
	defer cancel()
	return f(ctx, c)
}

func (a *app) client(cmd *cobra.Command, g *global) (*client.Client, error) {
	address := g.url
	if given := a.getenv(envURL); given != "" && !cmd.Flags().Changed("url") {
		address = given
	}
	token, err := a.secret(g)
	if err != nil {
		return nil, err
	}
	trust, err := a.trust(g)
	if err != nil {
		return nil, err
	}
	c, err := client.New(address, token)
	if err != nil {
		return nil, usage(err)
	}
	if trust != nil {
		c = c.WithTLS(trust)
	}
	return c, nil
}

// trust returns the CAs to trust; nil if the system's CAs are enough.
func (a *app) trust(g *global) (*tls.Config, error) {
	name := cmp.Or(g.ca, a.getenv(envCA))
	if name == "" {
		return nil, nil //nolint:nilnil // nil means the defaults
	}
	roots, err := namedfile.Authorities(name)
	if err != nil {
		return nil, usage(fmt.Errorf("--ca: %w", err))
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

func (a *app) secret(g *global) (string, error) {
	switch {
	case g.token != "" && g.tokenFile != "":
		return "", usage(errors.New("--token and --token-file exclude each other; keep --token-file"))
	case g.tokenFile != "":
		text, err := os.ReadFile(g.tokenFile)
		if err != nil {
			return "", usage(fmt.Errorf("--token-file: %w", err))
		}
		if token := strings.TrimSpace(string(text)); token != "" {
			return token, nil
		}
		return "", usage(fmt.Errorf("--token-file %s: the file is empty", g.tokenFile))
	case g.token != "":
		return g.token, nil
	}
	return a.getenv(envToken), nil
}

// readInput reads a file, or standard input for "-".
func (a *app) readInput(name string) ([]byte, error) {
	if name == "-" {
		text, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, usage(err)
	}
	return text, nil
}
