// Package gate decides who is let in to the routes of a node's listener. It knows
// patterns and roles, and nothing of what is behind them.
//
// Promised: a request gets to a route only with a token whose role includes the
// route's, or where none is asked for, from this machine and from no foreign web
// page; what is refused is a problem document (RFC 9457), as are a path or method
// that there is not and a panic of a handler; who guesses at tokens is
// slowed down, and fills no log; bodies in hand are bounded; an answer is passed on as it is
// written, and one that may be long is ended by no time of the server; a route that
// does not say for whom it is stops the start.
//
// Not promised: bounds on what strangers cost before they are known. Package serve
// has those, around all listeners together.
package gate
