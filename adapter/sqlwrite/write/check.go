package write

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

const maxEndpoint = 128 // in bytes, the limit of a message

// Check finds faults that involve several keys.
func (w *Settings) Check(r *setting.Report, path string) {
	drivers := []Driver{SQLite, Postgres, MySQL, SQLServer}
	r.WantsSecret(path+".dsn", w.DSN)
	if len(w.Statements) == 0 && !w.Raw {
		r.Fault(path+".statements", "", setting.Problem{What: "are missing, and payloads may not bring statements", Fix: "name a statement for each endpoint, or write raw: true"})
	}
	if !slices.Contains(drivers, w.Driver) {
		return // without the driver the rest has no meaning
	}
	types := checkTypes(r, path+".types", w)
	taken := map[string]bool{} // parameters of any statement
	for _, name := range slices.Sorted(maps.Keys(w.Statements)) {
		at := setting.Join(path+".statements", name)
		if name == "" || len(name) > maxEndpoint || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			r.Fault(at, "", setting.Problem{What: "is no endpoint that a message can have", Fix: "use 1 to 128 printable ASCII characters without space"})
		}
		s, err := sqltext.Parse(sqltext.Dialect(w.Driver), w.Statements[name], types)
		if err != nil {
			r.Fault(at, "", setting.Problem{What: err.Error(), Fix: "write one statement with parameters such as :amount"})
		}
		for _, parameter := range s.Untyped() {
			if _, given := w.Types[parameter]; w.Driver != Postgres && !given && !taken[parameter] {
				r.Fault(setting.Join(path+".types", parameter), "", setting.Problem{
					What: "is missing, and statement " + name + " takes :" + parameter,
					Fix:  "write what its column is, such as " + parameter + ": integer, with one of " + strings.Join(sqltext.Dialect(w.Driver).Types(), ", "),
				})
			}
		}
		for _, parameter := range s.Names {
			taken[parameter] = true
		}
	}
	for _, parameter := range slices.Sorted(maps.Keys(w.Types)) {
		if !taken[parameter] {
			r.Fault(setting.Join(path+".types", parameter), "", setting.Problem{What: "is not a parameter of any statement", Fix: "remove it, or write the name that a statement has"})
		}
	}
}

// checkTypes reads the types of parameters.
func checkTypes(r *setting.Report, path string, w *Settings) map[string]sqltext.Type {
	types := map[string]sqltext.Type{}
	for _, name := range slices.Sorted(maps.Keys(w.Types)) {
		at := setting.Join(path, name)
		t, err := sqltext.ParseType(sqltext.Dialect(w.Driver), w.Types[name])
		switch {
		case strings.HasPrefix(name, "_"):
			r.Fault(at, "", setting.Problem{What: "is the message's own, and text", Fix: "remove it"})
		case err != nil:
			r.Fault(at, w.Types[name], setting.Problem{What: err.Error(), Fix: "write what its column is"})
		}
		types[name] = t
	}
	return types
}
