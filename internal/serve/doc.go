// Package serve bounds what strangers cost a node: whoever connects and is not
// known yet, over all listeners together.
//
// Promised: what the bodies of unknown senders hold in memory is bounded in
// bytes, in all and for each address, as is how many of their requests and
// connections there are. Where room is short, those who came lately and
// hurry are let in, and what has been there longest, of the address that holds
// the most, gives way; who is known gives way to nobody. Connections from this
// machine have some that no other address can take. Every refusal is counted;
// log lines about them are bounded in number and length.
//
// Not promised: fairness between strangers of one address, which nobody can
// tell apart.
//
// A Guard stands around the handler of a node's listeners. Whoever finds out
// who sends a request says so with Known. A Watch bounds how often one address
// may guess at a secret.
package serve
