package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

// schemaStatus is the JSON output of migrate.
type schemaStatus struct {
	Store  string `json:"store"`
	Schema int    `json:"schema"` // 0: none
	Newest int    `json:"newest"`
	From   *int   `json:"from,omitempty"` // before "up"
}

func (a *app) migrateCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Show the tables of a node's store, or bring them up to date",
		Long: `Show which tables the store of a configuration has, or bring them up to those
of this program.

A node does this by itself at its start. "up" is for those who do not let a node
change tables: run it with the rights that it needs, and give the node's own user
fewer.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	status, up := &configFlags{}, &configFlags{}
	statusCommand := &cobra.Command{
		Use:   "status",
		Short: "Show which tables the store has, and which this program makes",
		Long: `Show the number of the last migration of the store, and of the last one that this
program has. Nothing is changed; a node may run.

The exit code is 7 if the store has older tables than this program's, or none.`,
		Example: `  holdfast migrate status --config /etc/holdfast/holdfast.yaml
  holdfast migrate status --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd, status)
			if err != nil {
				return err
			}
			s := schemaStatus{Store: place(c)}
			if s.Schema, s.Newest, err = node.SchemaStatus(cmd.Context(), c); err != nil {
				return ofStores(err)
			}
			return a.printSchema(g, s)
		},
	}
	upCommand := &cobra.Command{
		Use:   "up",
		Short: "Bring the tables of the store up to those of this program",
		Long: `Bring the tables of the store up to those of this program, each step in a
transaction of its own. If it is cut off, the next try goes on. If there is nothing
to do, nothing is changed.

A PostgreSQL database may have running nodes, of this release and the one before. A
data folder may not.`,
		Example: `  holdfast migrate up --config /etc/holdfast/holdfast.yaml
  HOLDFAST_STORE=postgres://owner@db.example/holdfast?sslmode=verify-full holdfast migrate up`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd, up)
			if err != nil {
				return err
			}
			s := schemaStatus{Store: place(c)}
			log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			err = a.untilTold(cmd.Context(), func(ctx context.Context) error {
				var from int
				from, s.Schema, err = node.Migrate(ctx, c, log)
				s.From, s.Newest = &from, s.Schema
				return err
			})
			if err != nil {
				return ofStores(err)
			}
			return a.printSchema(g, s)
		},
	}
	status.add(statusCommand)
	up.add(upCommand)
	cmd.AddCommand(statusCommand, upCommand)
	return cmd
}

// place returns where the store of a configuration is.
func place(c *config.Config) string {
	if c.Store.IsZero() {
		return c.Data
	}
	return c.Store.String()
}

func (a *app) printSchema(g *global, s schemaStatus) error {
	text := fmt.Sprintf("%s: schema %d, that of this program\n", s.Store, s.Schema)
	switch {
	case s.From != nil && *s.From < s.Schema:
		text = fmt.Sprintf("%s: schema %d, from %d\n", s.Store, s.Schema, *s.From)
	case s.Schema == 0:
		text = fmt.Sprintf("%s: no tables yet; this program makes schema %d: holdfast migrate up, or the start of a node\n", s.Store, s.Newest)
	case s.Schema < s.Newest:
		text = fmt.Sprintf("%s: schema %d; this program makes %d: holdfast migrate up, or the start of a node\n", s.Store, s.Schema, s.Newest)
	case s.Schema > s.Newest:
		text = fmt.Sprintf("%s: schema %d is of a newer release; this program knows %d\n", s.Store, s.Schema, s.Newest)
	}
	var err error
	if g.json {
		err = printJSON(a.stdout, s)
	} else {
		_, err = fmt.Fprint(a.stdout, plain(text))
	}
	if err == nil && s.Schema != s.Newest {
		return verdict(exitWarnings)
	}
	return err
}
