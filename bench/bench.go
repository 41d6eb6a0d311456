package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"
)

type role int

const (
	roleOurs role = iota
	rolePeer
	roleBare
)

// values are the results of one cell, by column key.
type values map[string]float64

// column is one printed number of a measure.
type column struct {
	key   string // in values
	title string // printed after the measure's name
	unit  string
	lower bool // lower is better
}

// contender is one side of a measure.
type contender struct {
	name     string
	settings string // how it differs from its own defaults
	role     role
	// prepare fills a directory once for all rounds, and for all contenders
	// that name the same files. May be nil.
	prepare func(ctx context.Context, dir string) error
	files   string
	run     func(ctx context.Context, c cell) (values, error)
}

// cell is the place where one contender runs once.
type cell struct {
	dir      string // fresh, on disk
	prepared string // what prepare filled
	profile  string // file for the CPU profile of a child process; empty: none
}

// measure is one line of the comparison with all its contenders.
type measure struct {
	name       string
	columns    []column
	contenders []contender
}

// source is a contender that is not yet part of a measure.
type source struct {
	name     string
	settings string
	role     role
	open     Opener
	files    string // sources with the same value can work off each other's files; empty: its name
}

// add adds s to the measure. It leaves out a source that does not exist yet.
func (m *measure) add(s source, prepare func(context.Context, string) error, run func(context.Context, cell) (values, error)) {
	if s.open == nil {
		return
	}
	m.contenders = append(m.contenders, contender{
		name: s.name, settings: s.settings, role: s.role, prepare: prepare, files: cmp.Or(s.files, s.name), run: run,
	})
}

// result is a measure with the values of all its rounds.
type result struct {
	measure
	rounds []map[string][]float64 // by contender, then by column key
	failed []error                // by contender
}

// bench runs measures.
type bench struct {
	root     string // all cells are below it
	rounds   int
	limit    time.Duration // of one cell
	profile  string        // directory for CPU profiles; empty: none
	progress func(format string, args ...any)
}

// run runs the measures whose names match, one after the other.
func (b *bench) run(ctx context.Context, all []measure, match *regexp.Regexp) ([]result, error) {
	var out []result
	for _, m := range all {
		if !match.MatchString(m.name) {
			continue
		}
		r, err := b.measure(ctx, m)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (b *bench) measure(ctx context.Context, m measure) (result, error) {
	n := len(m.contenders)
	r := result{measure: m, rounds: make([]map[string][]float64, n), failed: make([]error, n)}
	prepared, unprepared := map[string]string{}, map[string]error{} // by files
	for i, c := range m.contenders {
		r.rounds[i] = map[string][]float64{}
		if c.prepare == nil {
			continue
		}
		if prepared[c.files] == "" {
			dir, err := os.MkdirTemp(b.root, "prepared-")
			if err != nil {
				return r, fmt.Errorf("make directory: %w", err)
			}
			defer os.RemoveAll(dir)
			prepared[c.files], unprepared[c.files] = dir, b.prepare(ctx, m, c, dir)
		}
		r.failed[i] = unprepared[c.files]
	}
	for round := range b.rounds {
		for k := range n {
			i := (k + round) % n // each round begins with another contender
			if r.failed[i] != nil {
				continue
			}
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			v, err := b.cell(ctx, m, i, round, prepared[m.contenders[i].files])
			if err != nil {
				r.failed[i] = fmt.Errorf("%s: %s: round %d: %w", m.name, m.contenders[i].name, round+1, err)
				b.progress("%v", r.failed[i])
				continue
			}
			for key, x := range v {
				r.rounds[i][key] = append(r.rounds[i][key], x)
			}
		}
	}
	return r, nil
}

func (b *bench) prepare(ctx context.Context, m measure, c contender, dir string) error {
	began := time.Now()
	_, err := within(10*b.limit, func() (struct{}, error) { return struct{}{}, c.prepare(ctx, dir) })
	if err != nil {
		return fmt.Errorf("%s: %s: prepare: %w", m.name, c.name, err)
	}
	b.progress("%-12s %-18s prepared in %v", m.name, c.name, time.Since(began).Round(time.Millisecond))
	return nil
}

// cell runs one contender once, from a quiet disk and a clean heap.
func (b *bench) cell(ctx context.Context, m measure, i, round int, prepared string) (v values, err error) {
	c := m.contenders[i]
	dir, err := os.MkdirTemp(b.root, "cell-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	debug.FreeOSMemory()
	syncDisks()
	in := cell{dir: dir, prepared: prepared}
	if b.profile != "" {
		base := filepath.Join(b.profile, fileName(fmt.Sprintf("%s-%s-%d", m.name, c.name, round+1)))
		in.profile = base + "-child.pprof"
		end, err := profileTo(base + ".pprof")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	began := time.Now()
	v, err = within(b.limit, func() (values, error) { return c.run(ctx, in) })
	b.progress("%-12s %-18s round %d in %-7v %s", m.name, c.name, round+1, time.Since(began).Round(time.Millisecond), format(m.columns, v))
	return v, err
}

// within runs do for at most limit. It abandons work that does not end in time; the report says so,
// since that work may disturb later measures.
func within[T any](limit time.Duration, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := do()
		done <- outcome{v, err}
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-late.C:
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		var none T
		return none, fmt.Errorf("did not end within %v and may disturb what follows", limit)
	}
}

func format(columns []column, v values) string {
	var parts []string
	for _, c := range columns {
		if x, ok := v[c.key]; ok {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.title, number(x), c.unit)))
		}
	}
	return strings.Join(parts, ", ")
}

// profileTo writes a CPU profile to the file until end is called.
func profileTo(file string) (end func() error, err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("create profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func fileName(s string) string {
	return strings.NewReplacer("/", "-", " ", "-").Replace(s)
}
