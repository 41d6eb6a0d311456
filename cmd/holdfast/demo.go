package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/internal/demo"
)

type demoFlags struct {
	seconds, rate int
	keep          string
}

func (a *app) demoCommand(g *global) *cobra.Command {
	f := &demoFlags{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See messages survive kill -9 and lost acks",
		Long: `Start a sender and a receiver on this machine, send messages between them, and
do to them what the world does: the receiver is killed without warning (SIGKILL)
while messages come in, acks are lost on the way, the sender is killed. A table
shows what becomes of the messages; Ctrl-C ends it early, with the account.

Both nodes are processes of this program, with files in a temporary folder and
free ports of the loopback. What is counted, the demo has seen itself, outside
of both:

  sent                messages that the sender answered as accepted
  waiting             of these, those whose ack has not come through so far
  delivered           messages whose ack came through to the sender
  effects             messages that took effect exactly once, in the program
                      behind the receiver
  duplicates_refused  repeats without an effect: those that the receiver
                      recognised by their id, and calls that the program
                      recognised by their Idempotency-Key (repeated_calls),
                      which a kill between a call and its note repeats
  lost                accepted messages without an effect at the end

It takes --seconds, and a moment more until nothing waits. --json prints the
counts as one object on standard output, and what happens on standard error.
The exit code is 1 if a message was lost or took effect twice, or a node
failed; the files are then left for whoever looks into it.`,
		Example: `  holdfast demo
  holdfast demo --seconds 5 --json
  holdfast demo --rate 200 --keep ./demo-files`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDemo(cmd, g, f) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.seconds, "seconds", int(demo.DefaultLength/time.Second), "how long messages are sent")
	flags.IntVar(&f.rate, "rate", demo.DefaultRate, "messages per second; a slow machine sends fewer")
	flags.StringVar(&f.keep, "keep", "", "keep the files (data, configurations, logs, ledger) in this new or empty folder")
	return cmd
}

func (a *app) runDemo(cmd *cobra.Command, g *global, f *demoFlags) error {
	if most := int(demo.MaxLength / time.Second); f.seconds < 1 || f.seconds > most {
		return usage(fmt.Errorf("--seconds %d: must be from 1 to %d", f.seconds, most))
	}
	if f.rate < 1 || f.rate > demo.MaxRate {
		return usage(fmt.Errorf("--rate %d: must be from 1 to %d", f.rate, demo.MaxRate))
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o := demo.Options{
		Program: []string{program},
		Length:  time.Duration(f.seconds) * time.Second, Rate: f.rate, Keep: f.keep, Out: a.stdout,
	}
	if g.json {
		o.Out = a.stderr
	}
	if screen, ok := o.Out.(*os.File); ok {
		o.Redraw = a.getenv("TERM") != "dumb" && demo.CanRedraw(screen)
		o.Color = o.Redraw && a.getenv("NO_COLOR") == ""
	}
	return a.untilTold(cmd.Context(), func(ctx context.Context) error {
		counts, err := a.demo(ctx, o)
		if g.json && counts != nil {
			if err := printJSON(a.stdout, counts); err != nil {
				return err
			}
		}
		if errors.Is(err, demo.ErrFolder) {
			return usage(err)
		}
		return err
	})
}
