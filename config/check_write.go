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
	oneOf(r, path+".driver", w.Driver, drivers...)
	r.wantsSecret(path+".dsn", w.DSN)
	oneOf(r, path+".duplicate", w.Duplicate, DuplicatePermanent, DuplicateDelivered)
	if len(w.Statements) == 0 && !w.Raw {
		r.fault(path+".statements", "", problem{"are missing, and payloads may bring none", "name a statement for each endpoint, or write raw: true"})
	}
	for _, name := range slices.Sorted(maps.Keys(w.Statements)) {
		at := join(path+".statements", name)
		if name == "" || len(name) > maxEndpoint || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			r.fault(at, "", problem{"is no endpoint that a message can have", "use 1 to 128 printable ASCII characters without space"})
		}
		if !slices.Contains(drivers, w.Driver) {
			continue // nobody knows how to read it
		}
		if _, err := sqltext.Parse(sqltext.Dialect(w.Driver), w.Statements[name]); err != nil {
			r.fault(at, "", problem{err.Error(), "write one statement with parameters such as :amount"})
		}
	}
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
