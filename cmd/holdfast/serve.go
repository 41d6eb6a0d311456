package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

// ServeOptions is what a node is started with.
type ServeOptions struct {
	Config         *config.Config
	Version        string
	Commit         string
	Stdout, Stderr io.Writer
}

// serveNode runs a node until ctx ends, and returns when it has stopped.
//
// It is the one place that joins the command to package node.
func serveNode(ctx context.Context, o ServeOptions) error {
	return node.Serve(ctx, o.Config, node.Options{Version: o.Version, Commit: o.Commit, Out: o.Stdout, Log: o.Stderr})
}

func (a *app) serveCommand() *cobra.Command {
	f := &configFlags{}
	withStdin := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node",
		Long: `Run a node until it is told to stop.

The first SIGINT or SIGTERM stops it gracefully: it takes no more work, and
what is in hand may end. A second one ends the process at once; nothing that
was accepted is lost by that either.

Flags stand over the environment (HOLDFAST_...), the environment over the file.`,
		Example: `  holdfast serve
  holdfast serve --config /etc/holdfast/holdfast.yaml
  holdfast serve --data /var/lib/holdfast --listen 127.0.0.1:8420`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd, f)
			if err != nil {
				return err
			}
			b := build()
			return ofStores(a.untilTold(cmd.Context(), func(ctx context.Context) error {
				if withStdin {
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					defer cancel()
					go a.cancelWithStdin(cancel) // ends with the process at the latest
				}
				return a.serve(ctx, ServeOptions{Config: c, Version: b.Version, Commit: b.Commit, Stdout: a.stdout, Stderr: a.stderr})
			}))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&withStdin, "stop-with-stdin", false, "stop when standard input ends, as it does when the program that started the node is gone")
	return cmd
}

// cancelWithStdin cancels when standard input ends.
func (a *app) cancelWithStdin(cancel context.CancelFunc) {
	_, _ = io.Copy(io.Discard, a.stdin) // however it ends
	a.note("holdfast: standard input has ended: stopping\n")
	cancel()
}

// untilTold runs f with a context that the first signal ends; the second
// ends the process.
func (a *app) untilTold(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2) // the second may come before the first is read
	defer a.notify(signals)()
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	for told := false; ; {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if told {
				a.note("holdfast: %s again: ending at once\n", s)
				a.exit(exitFailure)
				return errors.New("ended before work in hand was done")
			}
			told = true
			a.note("holdfast: %s: stopping; a second one ends it at once\n", s)
			cancel()
		}
	}
}
