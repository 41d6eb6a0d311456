package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/logs"
	"github.com/holdfast-mq/holdfast/node"
)

// serveNode runs a node until ctx ends, and returns when it has stopped.
//
// Only this function joins the command to package node.
func serveNode(ctx context.Context, o ServeOptions) error {
	// A panic ends a Go program with code 2. Here that code means wrong use, and a supervisor would
	// not start the program again. With this setting it ends by a signal, SIGABRT.
	debug.SetTraceback("crash")
	return node.Serve(ctx, o.Config, node.Options{Version: o.Version, Commit: o.Commit, Out: o.Stdout, Log: o.Stderr, Reload: o.Reload})
}

func (a *app) serveCommand() *cobra.Command {
	s := &serveRun{app: a, hup: make(chan struct{}, 1), reload: make(chan *config.Config, 1)}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node",
		Long: `Run a node until it is told to stop.

The first SIGINT or SIGTERM stops it gracefully: it drains, takes no more work, and
lets work in hand end, for as long as the configuration says. A second one ends the
process at once; nothing that was accepted is lost then, either. SIGHUP makes it read
its configuration again.

Flags override the environment (HOLDFAST_...), and the environment overrides the
file.`,
		Example: `  holdfast serve
  holdfast serve --config /etc/holdfast/holdfast.yaml
  holdfast serve --data /var/lib/holdfast --listen 127.0.0.1:8420`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.unbind()
			return ofStores(a.told(cmd.Context(), s.hup, func(ctx context.Context) error { return s.run(ctx, cmd) }))
		},
	}
	s.flags.add(cmd)
	cmd.Flags().BoolVar(&s.withStdin, "stop-with-stdin", false, "stop when standard input ends, as it does when the program that started the node is gone")
	return cmd
}

// serveRun is the running command serve.
type serveRun struct {
	*app
	flags     configFlags
	withStdin bool
	hup       chan struct{} // of one entry: read the configuration again
	reload    chan *config.Config
}

func (s *serveRun) run(ctx context.Context, cmd *cobra.Command) error {
	_, c, warnings, err := s.readWhole(cmd, &s.flags)
	if c != nil && c.Log.Format == config.LogJSON {
		s.log.Store(slog.New(slog.NewJSONHandler(s.stderr, nil)))
	}
	s.warn(warnings)
	if err != nil {
		return err
	}
	if s.withStdin {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		go s.cancelWithStdin(cancel) // ends with the process at the latest
	}
	reloading, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.reloads(reloading, cmd)
	b := build()
	return s.serve(ctx, ServeOptions{Config: c, Version: b.Version, Commit: b.Commit, Stdout: s.stdout, Stderr: s.stderr, Reload: s.reload})
}

// reloads reads the configuration each time it is asked to, and hands it to the node. A
// configuration with faults changes nothing.
func (s *serveRun) reloads(ctx context.Context, cmd *cobra.Command) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hup:
		}
		_, c, warnings, err := s.readWhole(cmd, &s.flags)
		s.warn(warnings)
		if err != nil {
			if log := s.log.Load(); log != nil {
				log.ErrorContext(ctx, "configuration not reloaded", slog.Any("error", err))
			} else {
				s.note("holdfast: configuration not reloaded: %s\n", plain(err.Error()))
			}
			continue
		}
		select {
		case <-s.reload: // the node has not taken the previous one, and need not
		default:
		}
		s.reload <- c
	}
}

// cancelWithStdin cancels when standard input ends.
func (s *serveRun) cancelWithStdin(cancel context.CancelCauseFunc) {
	_, _ = io.Copy(io.Discard, s.stdin) // however it ends
	if s.log.Load() == nil {
		s.note("holdfast: standard input has ended: stopping\n")
	}
	cancel(errors.New("standard input has ended"))
}

// lastLines is how long the end of serve waits until its last lines are written.
const lastLines = 200 * time.Millisecond

// unbind makes the process independent of the reader of its output: the reader can neither hold it
// up, nor end it by going away.
func (a *app) unbind() {
	a.ignore(syscall.SIGPIPE)
	for _, w := range []*io.Writer{&a.stdout, &a.stderr} {
		l := logs.New(*w)
		*w = l
		a.lines = append(a.lines, l)
	}
}

// flush waits a moment for the last lines of serve.
func (a *app) flush() {
	for _, l := range a.lines {
		l.Close(lastLines)
	}
}

// untilTold runs f with a context. The first signal to stop ends the context, and the second ends
// the process.
func (a *app) untilTold(ctx context.Context, f func(context.Context) error) error {
	return a.told(ctx, nil, f)
}

// told is untilTold for a command that can also be told to reload: SIGHUP rings.
func (a *app) told(ctx context.Context, ring chan<- struct{}, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 3) // the second may come before the first is read
	which := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if ring != nil {
		which = append(which, syscall.SIGHUP)
	}
	defer a.notify(signals, which...)()
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	for told := false; ; {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			switch {
			case s == syscall.SIGHUP:
				select {
				case ring <- struct{}{}:
				default:
				}
			case told:
				a.note("holdfast: %s again: ending at once\n", s)
				a.flush()
				a.exit(exitFailure)
				return errors.New("ended before work in hand was done")
			default:
				told = true
				if a.log.Load() == nil { // else the node logs it
					a.note("holdfast: %s: stopping; a second one ends it at once\n", s)
				}
				cancel(errors.New(s.String()))
			}
		}
	}
}
