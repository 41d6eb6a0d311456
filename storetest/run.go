package storetest

import "testing"

// Run tests everything that a store promises. It is the only entry, so that no store leaves out a
// part. with describes the store's transactions.
func Run[T any](t *testing.T, m Maker, with Transaction[T]) {
	t.Helper()
	for name, part := range map[string]func(t *testing.T, m Maker){
		"enqueuer": enqueuer, "claims": claims, "expiry": expiry, "keys": keys, "outbox": outbox, "verbs": verbs,
		"lanes": lanes, "overdue": overdue, "purging": purging, "operations": operations, "notices": notices, "clock": clock, "logs": logs,
		"inbox log":   inboxLog,
		"inbox store": func(t *testing.T, m Maker) { t.Helper(); inboxStore(t, m, with) },
		"inbox batch": func(t *testing.T, m Maker) { t.Helper(); inboxBatch(t, m, with) },
		"closed":      func(t *testing.T, m Maker) { t.Helper(); closed(t, m, with) },
		"bundles":     bundles, "notifications": notifications, "sites": siteNames, "clock of sites": sitesClock, "tokens": tokens, "people": persons, "journal": journal, "activity": activities, "audit": audits, "telemetry": telemetry, "audit queries": auditQueries, "fan-out": fanouts, "bulk actions": bulks, "minutes": minutesKept, "searches": func(t *testing.T, m Maker) { t.Helper(); m.run(t, searches()) }, "shared": shared,
	} {
		t.Run(name, func(t *testing.T) { part(t, m) })
	}
}
