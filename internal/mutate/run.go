package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A test is one test of a package, or a part of one, by name: Test or Test/part.
type test struct {
	name string
	took time.Duration
}

const (
	slack = 10 * time.Second // what a run of tests may take beyond three times its usual time
	small = time.Second      // the first tests of a mutant take about this long together
)

// execute runs tests of a unit. Processes that they started end with the binary.
func (u *unit) execute(ctx context.Context, limit time.Duration, env string, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, u.binary, args...) //nolint:gosec // the binary that compile made
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), env)
	cmd.WaitDelay = slack
	endTogether(cmd)
	text, err := cmd.CombinedOutput()
	if p := cmd.ProcessState; p != nil {
		u.cpu.Add(int64(p.UserTime() + p.SystemTime()))
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text), err
}

func named(tests ...*test) string {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = "^" + strings.ReplaceAll(regexp.QuoteMeta(t.name), "/", "$/^") + "$"
	}
	return "-test.run=" + strings.Join(names, "|")
}

// reach runs each test alone, and notes how long it took and which mutants it reached. A suite that
// takes too long as a whole is used part by part.
func (o options) reach(ctx context.Context, u *unit) error {
	tests, err := o.names(ctx, u)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	for len(tests) > 0 && ctx.Err() == nil {
		var parts []*test
		o.each(len(tests), func(i int) {
			t := tests[i]
			came, fault := u.alone(ctx, t, o.longest)
			var of []*test
			if errors.Is(fault, context.DeadlineExceeded) {
				of = u.parts(ctx, t, o.longest)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case len(of) > 0:
				parts = append(parts, of...)
			case errors.Is(fault, context.DeadlineExceeded):
				u.slow = append(u.slow, t.name)
			case fault != nil:
				u.broken = append(u.broken, t.name)
			default:
				u.tests = append(u.tests, t)
				for n, note := range came {
					if note != 0 {
						u.drawn[n-1].reached = append(u.drawn[n-1].reached, t)
					}
				}
			}
		})
		tests = parts
	}
	if ctx.Err() == nil && len(u.tests) == 0 {
		err = fmt.Errorf("no test of %s passes without a fault", u.path)
	}
	return errors.Join(ctx.Err(), err)
}

// parts names what a test runs by t.Run. What these run in their turn is left out, so that
// suites of suites are quick to tell.
func (u *unit) parts(ctx context.Context, t *test, longest time.Duration) (parts []*test) {
	out, _ := u.execute(ctx, longest, "", named(t)+"/./^$", "-test.v") // the names that it came to
	for line := range strings.Lines(out) {
		rest, ok := strings.CutPrefix(line, "=== RUN ")
		if name := strings.TrimSpace(rest); ok && strings.Count(name, "/") == strings.Count(t.name, "/")+1 {
			parts = append(parts, &test{name: name})
		}
	}
	return parts
}

// names asks the binary for the names of its tests.
func (o options) names(ctx context.Context, u *unit) (tests []*test, err error) {
	out, err := u.execute(ctx, time.Minute, "", "-test.list=^(Test|Fuzz|Example)")
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w\n%s", u.path, err, out)
	}
	for line := range strings.Lines(out) {
		name := strings.TrimSpace(line)
		if regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`).MatchString(name) && !o.skip.MatchString(name) {
			tests = append(tests, &test{name: name})
		}
	}
	return tests, nil
}

// alone runs one test without a fault, and returns a byte for each mutant.
func (u *unit) alone(ctx context.Context, t *test, longest time.Duration) ([]byte, error) {
	notes := u.binary + "." + strings.ReplaceAll(t.name, "/", ".")
	if err := os.WriteFile(notes, make([]byte, len(u.drawn)+1), 0o600); err != nil {
		return nil, err
	}
	began := time.Now()
	_, err := u.execute(ctx, longest, reachedEnv+"="+notes, named(t))
	t.took = time.Since(began)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(notes) //nolint:gosec // beside the binary that compile made
}

// kill runs against each mutant the tests that reach it.
func (o options) kill(ctx context.Context, u *unit) error {
	begin := time.Duration(0) // how long a process takes before its first test
	if len(u.tests) > 0 {
		begin = slices.MinFunc(u.tests, quicker).took
	}
	o.each(len(u.drawn), func(i int) {
		m := u.drawn[i]
		began := time.Now()
		slices.SortStableFunc(m.reached, quicker)
		for _, tests := range batches(m.reached, begin) {
			if m.dead = u.meet(ctx, m, tests); m.dead != "" || ctx.Err() != nil {
				break
			}
		}
		if o.verbose && ctx.Err() == nil { // otherwise it was interrupted
			_, _ = fmt.Fprintf(o.log, "%s (%.1f s)\n", m.fate(), time.Since(began).Seconds())
		}
	})
	return ctx.Err()
}

func quicker(a, b *test) int { return int(a.took - b.took) }

// batches divides tests into runs of growing length: most mutants die in the first.
func batches(tests []*test, begin time.Duration) (runs [][]*test) {
	room, taken := small, time.Duration(0)
	for _, t := range tests {
		net := t.took - begin
		if len(runs) == 0 || taken+net > room && taken > 0 {
			if len(runs) > 0 {
				room *= 4
			}
			runs, taken = append(runs, nil), 0
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], t)
		taken += net
	}
	return runs
}

// meet returns what kills a mutant. A test that fails among others but passes alone is flaky: the
// mutant then meets the others without it.
func (u *unit) meet(ctx context.Context, m *mutant, tests []*test) string {
	for len(tests) > 0 {
		name, hung := u.fails(ctx, m, tests)
		if name == "" || ctx.Err() != nil {
			return ""
		}
		if hung {
			return "its time, in " + name
		}
		i := slices.IndexFunc(tests, func(t *test) bool { return t.name == name })
		if i < 0 {
			return name
		}
		if again, _ := u.fails(ctx, m, tests[i:i+1]); again != "" {
			return again
		}
		tests = slices.Delete(slices.Clone(tests), i, i+1)
	}
	return ""
}

// fails returns the name of the first of some tests that fails with a mutant, or that does not end.
func (u *unit) fails(ctx context.Context, m *mutant, tests []*test) (name string, hung bool) {
	limit := slack
	for _, t := range tests {
		limit += 3 * t.took
	}
	out, err := u.execute(ctx, limit, chosenEnv+"="+strconv.Itoa(m.number), named(tests...), "-test.failfast", "-test.v")
	switch {
	case err == nil, ctx.Err() != nil:
		return "", false
	case errors.Is(err, context.DeadlineExceeded):
		return last(out, "=== RUN ", "=== NAME ", "=== CONT "), true
	}
	for line := range strings.Lines(out) {
		rest, failed := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: ")
		if !failed {
			continue
		}
		name, _, _ = strings.Cut(rest, " ")
		if slices.ContainsFunc(tests, func(t *test) bool { return t.name == name }) {
			return name, false
		}
	}
	if name != "" {
		return name, false
	}
	return last(out, "=== RUN ", "=== NAME ", "=== CONT "), false
}

// last returns the test that the binary named last.
func last(out string, marks ...string) string {
	name := "the binary"
	for line := range strings.Lines(out) {
		for _, mark := range marks {
			if rest, ok := strings.CutPrefix(line, mark); ok {
				name, _, _ = strings.Cut(strings.TrimSpace(rest), "/")
			}
		}
	}
	return name
}

// each calls do for all numbers below n, with as many goroutines as there may be processes.
func (o options) each(n int, do func(int)) {
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range o.procs {
		workers.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}
