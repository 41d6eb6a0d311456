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

// Report collects faults and warnings, and knows the place of each value.
type Report struct {
	Root     any              // the struct that is checked
	Places   map[string]Place // by path
	Bad      map[string]bool  // paths whose value could not be read
	faults   []Fault
	Warnings []Warning
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Places: map[string]Place{}, Bad: map[string]bool{}}
}

// Given reports whether a key was written, with or without a value.
func (r *Report) Given(path string) bool {
	_, ok := r.Places[path]
	return ok
}

// find returns the place of path, or of the nearest mapping around it: a missing key is reported where its
// mapping begins.
func (r *Report) find(path string) Place {
	for ; path != ""; path = parent(path) {
		if p, ok := r.Places[path]; ok {
			return p
		}
	}
	return Place{}
}

// At returns an empty fault with the place of a path.
func (r *Report) At(path string) Fault {
	p := r.find(path)
	return Fault{File: p.File, Line: p.Line, Origin: p.Origin, Path: path}
}

// Fault reports the finding of a check, unless the value could not even be read: then that is already reported.
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

// Warn reports a problem that does not keep a node from running.
func (r *Report) Warn(path, value string, p Problem) {
	f := r.At(path)
	f.Value, f.Problem, f.Fix = value, p.What, p.Fix
	r.Warnings = append(r.Warnings, Warning(f))
}

// Err returns the faults, in the order in which a person goes through them.
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

// Join adds a key to a path. It quotes a key that could be mistaken for several keys or that would break the line.
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

// Element returns the path of an element of a list.
func Element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// Nearest returns the known word that s was probably meant to be.
func Nearest(s string, known []string) (string, bool) {
	best, found := "", 3
	for _, k := range known {
		// A third of the letters may be wrong, and one letter in every word.
		if d := distance(s, k); d < found && d <= max(1, len(k)/3) {
			best, found = k, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, remove, replace or swap with their neighbour. Long words are far
// from everything, because they are not worth the time.
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
