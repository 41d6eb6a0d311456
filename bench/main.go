// Bench compares Holdfast with its peers, and with the least that any outbox on the same file must
// do. See README.md for the rules.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	run := runParent
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "child" {
		run, args = runChild, args[1:]
	}
	switch err := run(args); {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	asJSON, quick, list, verbose bool
	match, dir, profile          string
	rounds                       int
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.BoolVar(&o.asJSON, "json", false, "print JSON, not a table")
	f.BoolVar(&o.quick, "quick", false, "measure all of it, but less, in a minute and a half")
	f.BoolVar(&o.list, "list", false, "print the measures' names and end")
	f.BoolVar(&o.verbose, "v", false, "tell of each cell on standard error")
	f.StringVar(&o.match, "run", "", "measure only what matches this regular `expression`")
	f.StringVar(&o.dir, "dir", "", "make the files below this `directory`, which must be on a disk (default: the system's for temporary files)")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of each cell, and of its child process, to this `directory`")
	f.IntVar(&o.rounds, "rounds", 0, "rounds per measure (default 5, or 1 with -quick)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if o.rounds == 0 {
		o.rounds = 5
		if o.quick {
			o.rounds = 1
		}
	}
	if o.rounds < 0 {
		return o, fmt.Errorf("-rounds is %d, below 1", o.rounds)
	}
	return o, nil
}

// measures returns all measures, in the order of the output.
func measures(z sizes, p *pgServer) []measure {
	ms := []measure{enqueueMeasure(z, 8), enqueueMeasure(z, 64), enqueueMeasure(z, 256)}
	for _, n := range z.callers {
		ms = append(ms, joinMeasure(z, n))
	}
	if withC {
		ms = append(ms, joinMattnMeasure(z, 8))
	}
	for _, n := range z.senders {
		ms = append(ms, processMeasure(z, n, false), processMeasure(z, n, true))
	}
	ms = append(ms,
		cycleMeasure(z, 64),
		drainMeasure(z),
		latencyMeasure(z),
		claimMeasure(z),
		backlogMeasure(z),
		deadMeasure(z),
		lanesMeasure(z),
		followMeasure(z),
		recordMeasure(z), statusMeasure(z), auditMeasure(z),
		hopMeasure(z, false), hopMeasure(z, true),
		siteMeasure(z, 0), siteMeasure(z, 50*time.Millisecond), telemetryMeasure(z),
		ingestMeasure(z), linkMeasure(z, 1), linkMeasure(z, 16),
		mailMeasure(z), silentMeasure(z),
		publishMeasure(z), webhookMeasure(z, eventFan), webhookMeasure(z, 1), hooksMeasure(z), matchMeasure(z),
	)
	return append(ms, pgMeasures(z, p)...)
}

func runParent(args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	match, err := regexp.Compile(o.match)
	if err != nil {
		return fmt.Errorf("read -run: %w", err)
	}
	z, limit := fullSizes(), 3*time.Minute
	if o.quick {
		z, limit = quickSizes(), 30*time.Second
	}
	pg := &pgServer{dir: o.dir}
	defer func() { err = errors.Join(err, pg.Close()) }()
	all := measures(z, pg)
	if o.list {
		for _, m := range all {
			fmt.Println(m.name)
		}
		return nil
	}
	root, err := os.MkdirTemp(o.dir, "holdfast-bench-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(root)
	if err := onDisk(root); err != nil {
		return err
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return fmt.Errorf("make directory for profiles: %w", err)
		}
	}
	syncs, err := syncRate(root, 300*time.Millisecond)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{root: root, rounds: o.rounds, limit: limit, profile: o.profile, progress: func(format string, args ...any) {
		if o.verbose {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}
	}}
	results, err := b.run(ctx, all, match)
	report := newReport(results, o.rounds, syncs)
	report.Settings["PostgreSQL"] = pg.settings()
	return errors.Join(err, show(report, o)) // show what was measured all the same
}

// show prints the report; a contender that failed fails the run.
func show(p report, o options) error {
	written := p.table
	if o.asJSON {
		written = p.json
	}
	if err := written(os.Stdout); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	if n := len(p.Failures); n > 0 {
		return fmt.Errorf("%d contenders failed", n)
	}
	return nil
}
