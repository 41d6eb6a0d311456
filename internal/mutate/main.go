package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"
)

// options are the command line's options.
type options struct {
	number   int           // mutants per target
	seed     uint64        // of the draw
	procs    int           // test processes at a time
	longest  time.Duration // longest test; a longer one is not used
	skip     *regexp.Regexp
	only     *regexp.Regexp // filter for the drawn mutants
	accepted map[string]bool
	verbose  bool
	listing  bool
	out, log io.Writer
}

// enough is the share of mutants that must die.
const enough = 0.9

// Tests that kill, cut and soak for minutes; scripts/test runs them in separate steps.
const ownSteps = `^(TestKill|TestChaos$|TestALongOutage|TestAny(ByteMayFlip|FileMayBeCut)|TestPowerCut|TestSoak)`

// targets are mutated if the command line names none.
var targets = [...]string{".", "./transport", "./notify", "./link", "./adapter/...", "./sqlite", "./postgres"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	os.Exit(code)
}

// run returns the exit code: 1 if too many live, 2 if they could not be tried.
func run(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	o := options{out: out, log: log}
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&o.number, "n", 100, "how many mutants to try in each target")
	flags.Uint64Var(&o.seed, "seed", 1, "another seed draws others")
	flags.IntVar(&o.procs, "procs", runtime.GOMAXPROCS(0), "how many test processes run at a time")
	flags.DurationVar(&o.longest, "longest", 30*time.Second, "a test that takes longer by itself is not used")
	flags.BoolVar(&o.verbose, "v", false, "name each mutant, and the test that it died of")
	flags.BoolVar(&o.listing, "list", false, "name the mutants that are drawn, and try none")
	skip := flags.String("skip", ownSteps, "tests that are not used")
	only := flags.String("only", "", "of the mutants that are drawn, try only those whose name this expression finds")
	file := flags.String("accepted", "docs/testing.md", "the file that lists survivors that are equal")
	if err := flags.Parse(args); err != nil {
		return 2, nil //nolint:nilerr // the flags have said it
	}
	var err error
	if o.skip, err = regexp.Compile(*skip); err != nil {
		return 2, fmt.Errorf("read -skip: %w", err)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return 2, fmt.Errorf("read -only: %w", err)
	}
	if o.accepted, err = readAccepted(*file); err != nil {
		return 2, err
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = targets[:]
	}
	return o.all(ctx, patterns)
}

// all tries the targets, one after the other.
func (o options) all(ctx context.Context, patterns []string) (code int, err error) {
	for _, pattern := range patterns {
		began := time.Now()
		units, err := o.try(ctx, pattern)
		if err != nil {
			return 2, fmt.Errorf("try %s: %w", pattern, err)
		}
		if o.listing {
			o.list(units)
			continue
		}
		if !o.report(pattern, units, time.Since(began)) {
			code = 1
		}
	}
	return code, nil
}

// try draws a target's mutants, compiles them, and runs the tests against each.
func (o options) try(ctx context.Context, pattern string) ([]*unit, error) {
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	units, err := load(ctx, pattern)
	if err != nil {
		return nil, err
	}
	if err := o.draw(units); err != nil {
		return nil, err
	}
	for i, u := range units {
		if len(u.drawn) == 0 || o.listing {
			continue
		}
		if err := u.compile(ctx, folder, i); err != nil {
			return nil, err
		}
		if err := o.reach(ctx, u); err != nil {
			return nil, err
		}
		if err := o.kill(ctx, u); err != nil {
			return nil, err
		}
	}
	return units, nil
}
