package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// place is where a value was given.
type place struct {
	file   string
	line   int
	origin string
}

// report collects faults and warnings, and knows where each value was given.
type report struct {
	all      *Config          // that is checked
	places   map[string]place // by path
	bad      map[string]bool  // paths whose value could not be read
	faults   []Fault
	warnings []Warning
}

func newReport() *report {
	return &report{places: map[string]place{}, bad: map[string]bool{}}
}

// given says that a key was written, whatever its value.
func (r *report) given(path string) bool {
	_, ok := r.places[path]
	return ok
}

// find returns the place of path, or of the nearest thing around it: a key
// that is missing is reported where its mapping begins.
func (r *report) find(path string) place {
	for ; path != ""; path = parent(path) {
		if p, ok := r.places[path]; ok {
			return p
		}
	}
	return place{}
}

func (r *report) at(path string) Fault {
	p := r.find(path)
	return Fault{File: p.file, Line: p.line, Origin: p.origin, Path: path}
}

// fault reports what a check found, unless the value could not even be read,
// which is reported already.
func (r *report) fault(path, value string, p problem) {
	for around := path; around != ""; around = parent(around) {
		if r.bad[around] {
			return
		}
	}
	f := r.at(path)
	f.Value, f.Problem, f.Fix = value, p.what, p.fix
	r.faults = append(r.faults, f)
}

func (r *report) warn(path, value string, p problem) {
	f := r.at(path)
	f.Value, f.Problem, f.Fix = value, p.what, p.fix
	r.warnings = append(r.warnings, Warning(f))
}

// err returns the faults in the order in which a person goes through them.
func (r *report) err() error {
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

// join adds a key to a path; a key that a reader could mistake for more than
// one, or that would break the line, is quoted.
func join(path, key string) string {
	quoted := strconv.Quote(key)
	if key == "" || strings.ContainsAny(key, `.[" `) || quoted != `"`+key+`"` {
		key = quoted
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// nearest returns the known word that s was probably meant to be.
func nearest(s string, known []string) (string, bool) {
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
