package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	switchFile = "mutant__.go"
	chosenEnv  = "MUTATE_CHOSEN"  // the number of the active mutant
	reachedEnv = "MUTATE_REACHED" // the file that has a byte for each mutant that was reached
)

// switches returns the file that is added to a package. When a mutant is reached, it is recorded in
// the file at once. So the record is complete even if the process is killed, and includes the
// processes that a test starts.
func (u *unit) switches() string {
	return "package " + u.files[0].tree.Name.Name + `

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutant__chosen, _ = strconv.Atoi(os.Getenv("` + chosenEnv + `"))
	mutant__notes, _  = os.OpenFile(os.Getenv("` + reachedEnv + `"), os.O_WRONLY, 0)
	mutant__noted     [` + strconv.Itoa(len(u.drawn)+1) + `]atomic.Bool
)

func mutant__is(n int) bool {
	if mutant__notes != nil && !mutant__noted[n].Swap(true) {
		_, _ = mutant__notes.WriteAt([]byte{1}, int64(n))
	}
	return n == mutant__chosen
}

func mutant__or[T any](n int, is, other T) T {
	if mutant__is(n) {
		return other
	}
	return is
}

type mutant__integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

func mutant__add[T mutant__integer](n int, a, b T) T {
	if mutant__is(n) {
		return a - b
	}
	return a + b
}

func mutant__sub[T mutant__integer](n int, a, b T) T {
	if mutant__is(n) {
		return a + b
	}
	return a - b
}
`
}

// A span is the place of a mutant in the changed file.
type span struct {
	start, end int
	mutant     *mutant
}

// A writer makes a changed file.
type writer struct {
	text    []byte
	mutants []*mutant // of the file, outer before inner
	out     strings.Builder
	spans   []span
}

// render returns a file with the drawn mutants in it.
func (u *unit) render(f *source) ([]byte, []span) {
	w := &writer{text: f.text}
	for _, m := range u.drawn {
		if m.file == f {
			w.mutants = append(w.mutants, m)
		}
	}
	slices.SortFunc(w.mutants, func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.order, b.order))
	})
	w.write(0, len(f.text), 0)
	return []byte(w.out.String()), w.spans
}

// write copies a part of the file with its mutants. The mutants before first surround the part.
func (w *writer) write(start, end, first int) {
	for i, m := range w.mutants[first:] {
		if m.start < start || m.end > end {
			continue
		}
		w.out.Write(w.text[start:m.start])
		began := w.out.Len()
		for _, p := range m.pieces {
			w.out.WriteString(strings.ReplaceAll(p.text, "#", strconv.Itoa(m.number)))
			if p.end > p.start {
				w.write(p.start, p.end, first+i+1)
			}
		}
		w.spans = append(w.spans, span{began, w.out.Len(), m})
		start = m.end
	}
	w.out.Write(w.text[start:end])
}

// compile makes the test binary with all mutants in it.
func (u *unit) compile(ctx context.Context, folder string, number int) error {
	folder = filepath.Join(folder, strconv.Itoa(number))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	var overlay struct {
		Replace map[string]string `json:"Replace"`
	}
	overlay.Replace = map[string]string{}
	put := func(name string, text []byte) error {
		overlay.Replace[filepath.Join(u.dir, name)] = filepath.Join(folder, name)
		return os.WriteFile(filepath.Join(folder, name), text, 0o600)
	}
	if err := put(switchFile, []byte(u.switches())); err != nil {
		return err
	}
	for _, f := range u.files {
		if text, spans := u.render(f); len(spans) > 0 {
			if err := put(f.name, text); err != nil {
				return err
			}
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), list, 0o600); err != nil {
		return err
	}
	u.binary = filepath.Join(folder, "mutants.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(folder, "overlay.json"), "-o", u.binary, u.path) //nolint:gosec // a package that go list named
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("compile the mutants of %s: %w\n%s", u.path, err, out)
	}
	return nil
}
