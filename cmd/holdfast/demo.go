package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
)

type demoFlags struct {
	seconds, rate int
	keep          string
}

func (a *app) demoCommand(g *global) *cobra.Command {
	f := &demoFlags{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See two sites and their central survive kill -9, lost acks and outages",
		Long: `Start two sites and their central on this machine, hand in orders,
notifications, calls and writes at the sites, and do to them what the world
does: central and a site are killed without warning (SIGKILL), acks are lost on
the way, the mail server is away, the target of calls answers 500 or refuses
some for good, answers are lost after the work is done, the database is locked.
A table shows what becomes of it all; Ctrl-C ends it early, with the account.

The nodes are processes of this program, with files in a temporary folder and
free ports of the loopback. Mail server, target and database are the demo's own.
What is counted, the demo has seen there itself, outside of the nodes. Of orders,
from the sites to a program behind central:

  sent                orders that a site answered as accepted
  waiting             of these, those whose ack has not come through so far
  delivered           orders whose ack came through to the site
  effects             orders that took effect exactly once, in the program
  duplicates_refused  repeats without an effect: those that central recognised
                      by their id, and calls that the program recognised by
                      their Idempotency-Key (repeated_calls), which a kill
                      between a call and its note repeats
  lost                accepted orders without an effect at the end

notifications, mails, calls and writes have each sent, waiting, delivered,
refused, duplicates and lost. A notification is delivered with the last of its
mails. Refused is what was refused for good and a node has set aside, with the
reason; what is neither delivered nor refused at the end is lost.

It takes --seconds, and a moment more until nothing waits. --json prints the
counts as one object on standard output, and what happens on standard error.
The exit code is 1 if something was lost or took effect twice, or a node
failed; the files are then left for whoever looks into it.`,
		Example: `  holdfast demo
  holdfast demo --seconds 5 --json
  holdfast demo --rate 200 --keep ./demo-files`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDemo(cmd, g, f) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.seconds, "seconds", int(demo.DefaultLength/time.Second), "how long things are handed in")
	flags.IntVar(&f.rate, "rate", demo.DefaultRate, "things per second, at both sites together; a slow machine takes fewer")
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
