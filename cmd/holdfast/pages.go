package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/client"
)

// show asks the node, and prints the answer: as JSON, or as text does it for people.
func show[T any](a *app, cmd *cobra.Command, g *global, ask func(ctx context.Context, c *client.Client) (T, error), text func(w io.Writer, v *T) error) error {
	return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
		v, err := ask(ctx, c)
		switch {
		case err != nil:
			return err
		case g.json:
			return printJSON(a.stdout, v)
		}
		return text(a.stdout, &v)
	})
}

// pages shows pages from a position on until there are no more, or only the first one without all. ask
// returns a page, and where the next one begins; the zero value means that there is none. text is told
// which page is the last. A next page that is the one just shown is an error: otherwise pages would never end.
func pages[P any, C comparable](a *app, cmd *cobra.Command, g *global, after C, all bool,
	ask func(ctx context.Context, c *client.Client, after C) (page P, next C, err error), text func(w io.Writer, page *P, last bool) error,
) error {
	var end, next C
	for {
		err := show(a, cmd, g, func(ctx context.Context, c *client.Client) (page P, err error) {
			page, next, err = ask(ctx, c, after)
			return page, err
		}, func(w io.Writer, page *P) error { return text(w, page, !all || next == end) })
		switch {
		case err != nil || next == end:
			return err
		case !all && g.json:
			return nil
		case !all:
			a.note("there are more; continue with --after %v, or take all with --all\n", next)
			return nil
		case next == after:
			return errors.New("list: the node answers with the same page again")
		}
		after = next
	}
}
