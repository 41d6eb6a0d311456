// Package gate decides who is let in to the routes of a node's listener. It knows
// patterns and rights, and nothing about what is behind them.
//
// Promised: a request reaches a route only with a token, or a session of a person, that has the route's right; one
// that is narrowed to some objects reaches only routes that keep to them. If no token is
// needed, the request must come from this machine and from no foreign web page. Every
// refusal is a problem document (RFC 9457), also for an unknown path or method and for a
// panic of a handler. A caller who guesses at tokens is slowed down, and fills no log.
// Bodies in hand are bounded. An answer is passed on as it is written, and no time limit
// of the server ends one that may be long. A route that does not say who may ask prevents
// the start.
//
// Not promised: bounds on what strangers cost before they are known. Package serve
// has those, around all listeners together.
package gate
