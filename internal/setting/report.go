package setting

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Place is where a value was given.
type Place struct {
	File   string
	Line   int
	Origin string
}

// Report collects faults and warnings, and knows where each value was given.
type Report struct {
	Root     any              // that is checked
	Places   map[string]Place // by path
	Bad      map[string]bool  // paths whose value could not be read
	faults   []Fault
	Warnings []Warning
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Places: map[string]Place{}, Bad: map[string]bool{}}
}

// Given says that a key was written, whatever its value.
func (r *Report) Given(path string) bool {
	_, ok := r.Places[path]
	return ok
}

// find returns the place of path, or of the nearest thing around it: a key
// that is missing is reported where its mapping begins.
func (r *Report) find(path string) Place {
	for ; path != ""; path = parent(path) {
		if p, ok := r.Places[path]; ok {
			return p
		}
	}
	return Place{}
}

// At is a fault that stands at a path.
func (r *Report) At(path string) Fault {
	p := r.find(path)
	return Fault{File: p.File, Line: p.Line, Origin: p.Origin, Path: path}
}

// Fault reports what a check found, unless the value could not even be read,
// which is reported already.
func (r *Report) Fault(path, value string, p Problem) {
	for around := path; around != ""; around = parent(around) {
		if r.Bad[around] {
			return
		}
	}
	f := r.At(path)
	f.Value, f.Problem, f.Fix = value, p.What, p.Fix
	r.faults = append(r.faults, f)
}

// Warn reports what a node can run with.
func (r *Report) Warn(path, value string, p Problem) {
	f := r.At(path)
	f.Value, f.Problem, f.Fix = value, p.What, p.Fix
	r.Warnings = append(r.Warnings, Warning(f))
}

// Err returns the faults in the order in which a person goes through them.
func (r *Report) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int {
		if (a.File == "") != (b.File == "") {
			if a.File == "" {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Line-b.Line, cmp.Compare(a.Path, b.Path))
	})
	return &Error{Faults: r.faults}
}

// Join adds a key to a path; a key that a reader could mistake for more than
// one, or that would break the line, is quoted.
func Join(path, key string) string {
	quoted := strconv.Quote(key)
	if key == "" || strings.ContainsAny(key, `.[" `) || quoted != `"`+key+`"` {
		key = quoted
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Element is the path of an element of a list.
func Element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// Nearest returns the known word that s was probably meant to be.
func Nearest(s string, known []string) (string, bool) {
	best, found := "", 3
	for _, k := range known {
		// A third of the letters may be wrong, in a word of any length one.
		if d := distance(s, k); d < found && d <= max(1, len(k)/3) {
			best, found = k, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour. Long words are far from everything: they are not worth the time.
func distance(a, b string) int {
	const most = 64
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) > most || len(b) > most {
		return most
	}
	var before []int // two rows up
	above := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := above[j]
			if a[i] != b[j] {
				cost++
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cost = min(cost, before[j-1]+1)
			}
			row[j+1] = min(cost, above[j+1]+1, row[j]+1)
		}
		before, above = above, row
	}
	return above[len(b)]
}
