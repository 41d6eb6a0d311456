package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// readAccepted reads the accepted survivors: lines that begin with "- `file: function: a → b`".
func readAccepted(path string) (map[string]bool, error) {
	f, err := os.Open(path) //nolint:gosec // the file that the command line names
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	accepted := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "- `")
		if name, _, closed := strings.Cut(rest, "`"); ok && closed && strings.Contains(name, " → ") {
			accepted[name] = true
		}
	}
	return accepted, lines.Err()
}

func (m *mutant) fate() string {
	switch {
	case m.dead != "":
		return fmt.Sprintf("dead     %s, of %s", m.place(), m.dead)
	case len(m.reached) == 0:
		return "unmet    " + m.place()
	default:
		return fmt.Sprintf("alive    %s, after %d tests", m.place(), len(m.reached))
	}
}

// place returns the mutant with its line.
func (m *mutant) place() string {
	file, rest, _ := strings.Cut(m.String(), ": ")
	return fmt.Sprintf("%s:%d: %s", file, m.line, rest)
}

// list prints the drawn mutants.
func (o options) list(units []*unit) {
	for _, u := range units {
		for _, m := range u.inOrder() {
			_, _ = fmt.Fprintln(o.out, m.place())
		}
	}
}

// inOrder returns the drawn mutants in the order of the files.
func (u *unit) inOrder() []*mutant {
	return slices.SortedFunc(slices.Values(u.drawn), func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.file.name, b.file.name), cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order))
	})
}

// report prints the results of a target, and reports whether enough mutants died.
func (o options) report(pattern string, units []*unit, took time.Duration) bool {
	var dead, alive, unmet, equal int
	var cpu time.Duration
	for _, u := range units {
		cpu += time.Duration(u.cpu.Load())
		for _, m := range u.inOrder() {
			switch {
			case m.dead != "":
				dead++
				continue
			case o.accepted[m.String()]:
				equal++
				continue
			case len(m.reached) == 0:
				unmet++
			default:
				alive++
			}
			_, _ = fmt.Fprintln(o.out, m.fate())
		}
		o.notUsed(u, "longer than "+o.longest.String(), u.slow)
		o.notUsed(u, "fails without a fault", u.broken)
	}
	all := dead + alive + unmet
	_, _ = fmt.Fprintf(o.out, "%s: %d mutants: %d dead, %d alive, %d unmet, %d equal; %d %% died; %d s, %d s of them computed\n",
		pattern, all+equal, dead, alive, unmet, equal, 100*dead/max(all, 1), int(took.Seconds()), int(cpu.Seconds()))
	return float64(dead) >= enough*float64(all)
}

func (o options) notUsed(u *unit, why string, tests []string) {
	slices.Sort(tests)
	for _, name := range tests {
		_, _ = fmt.Fprintf(o.out, "not used %s: %s: %s\n", u.path, name, why)
	}
}
