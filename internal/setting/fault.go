package setting

import (
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Fault is one fault with its place and what to do about it.
type Fault struct {
	File    string // as it was given to Load; empty if the value is not from the file
	Line    int    // from 1; 0: no line
	Origin  string // variable or flag that the value comes from, instead of File
	Path    string // destinations.inventory.retry.base
	Value   string // as it was written; empty for secrets
	Problem string // completes a sentence that begins with the value: "is longer than cap, 5m"
	Fix     string
	Err     error // the cause; nil: none
}

// String returns the fault in one line, with its place first:
//
//	holdfast.yaml:9: destinations.inventory.retry.base: "10m" is longer than cap, 5m; make base 5m or less
func (f Fault) String() string {
	var b strings.Builder
	switch {
	case f.Origin != "":
		b.WriteString(f.Origin + ": ")
	case f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		b.WriteString(f.File + ": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	if f.Value != "" {
		fmt.Fprintf(&b, "%q ", clip(f.Value))
	}
	b.WriteString(f.Problem)
	if f.Fix != "" {
		b.WriteString("; " + f.Fix)
	}
	return b.String()
}

// Warning is a Fault that does not keep a node from running.
type Warning Fault

// String returns the warning in one line, as Fault does.
func (w Warning) String() string { return Fault(w).String() }

// Error holds every fault of a configuration: the faults of the file in the order of its lines, then the others.
type Error struct {
	Faults []Fault
}

// Error returns one line for each fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the causes of the faults, so that errors.Is finds fs.ErrNotExist.
func (e *Error) Unwrap() []error {
	var causes []error
	for _, f := range e.Faults {
		if f.Err != nil {
			causes = append(causes, f.Err)
		}
	}
	return causes
}

// clip shortens a value that is too long for a line.
func clip(s string) string { return shown.Clip(s, 80) }
