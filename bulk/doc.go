// Package bulk does one thing to many rows of a list: it retries, discards or reschedules all that a
// filter finds.
//
// Adding an action takes a snapshot: the ids that the filter finds at that moment, each a row of the
// action. A [Runner] does the rows in their order, a few at a time and no faster than the action
// allows, and records what became of each. People may pause, resume and cancel the action meanwhile.
//
// Each row is done at most once as far as its own state allows: what is done to it compares and
// sets. If a process dies between a row and its record, the row is done again, is refused since it
// has changed already, and is recorded as refused. Of several nodes over one store, one at a time
// runs an action. It goes on at once after a restart; another goes on when it has been away for half a minute.
package bulk
