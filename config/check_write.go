package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

const maxEndpoint = 128 // bytes, as a message's

func (r *report) checkWrite(path string, d Destination) {
	w := *d.Write
	r.notOfPeer(path, d, "write", "a database", "a database has dsn, and TLS in it")
	path += ".write"
	drivers := []Driver{SQLite, Postgres, MySQL, SQLServer}
	r.wantsSecret(path+".dsn", w.DSN)
	if len(w.Statements) == 0 && !w.Raw {
		r.fault(path+".statements", "", problem{"are missing, and payloads may bring none", "name a statement for each endpoint, or write raw: true"})
	}
	if !slices.Contains(drivers, w.Driver) {
		return // nobody knows how to read the rest
	}
	types := r.checkTypes(path+".types", w)
	taken := map[string]bool{} // parameters that some statement has
	for _, name := range slices.Sorted(maps.Keys(w.Statements)) {
		at := join(path+".statements", name)
		if name == "" || len(name) > maxEndpoint || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			r.fault(at, "", problem{"is no endpoint that a message can have", "use 1 to 128 printable ASCII characters without space"})
		}
		s, err := sqltext.Parse(sqltext.Dialect(w.Driver), w.Statements[name], types)
		if err != nil {
			r.fault(at, "", problem{err.Error(), "write one statement with parameters such as :amount"})
		}
		for _, parameter := range s.Untyped() {
			if _, given := w.Types[parameter]; w.Driver != Postgres && !given && !taken[parameter] {
				r.fault(join(path+".types", parameter), "", problem{
					"is missing, and statement " + name + " takes :" + parameter,
					"write what its column is, such as " + parameter + ": integer, with one of " + strings.Join(sqltext.Dialect(w.Driver).Types(), ", "),
				})
			}
		}
		for _, parameter := range s.Names {
			taken[parameter] = true
		}
	}
	for _, parameter := range slices.Sorted(maps.Keys(w.Types)) {
		if !taken[parameter] {
			r.fault(join(path+".types", parameter), "", problem{"is the type of no parameter", "remove it, or write the name that a statement has"})
		}
	}
}

// checkTypes reads the types of parameters.
func (r *report) checkTypes(path string, w Write) map[string]sqltext.Type {
	types := map[string]sqltext.Type{}
	for _, name := range slices.Sorted(maps.Keys(w.Types)) {
		at := join(path, name)
		t, err := sqltext.ParseType(sqltext.Dialect(w.Driver), w.Types[name])
		switch {
		case strings.HasPrefix(name, "_"):
			r.fault(at, "", problem{"is the message's own, and text", "remove it"})
		case err != nil:
			r.fault(at, w.Types[name], problem{err.Error(), "write what its column is"})
		}
		types[name] = t
	}
	return types
}

// notOfPeer reports keys beside call or write that belong to a peer.
func (r *report) notOfPeer(path string, d Destination, key, what, instead string) {
	for _, f := range []struct {
		key  string
		used bool
	}{{"url", d.URL != ""}, {"secret", !d.Secret.IsZero()}, {"hmac", d.HMAC == HMACv1}, {"to", d.To != ""}, {"ca", d.CA != ""}} {
		if at := path + "." + f.key; f.used || r.given(at) {
			r.fault(at, "", problem{"belongs to a peer, and this destination is " + what, "remove it, or remove " + key + "; " + instead})
		}
	}
}
