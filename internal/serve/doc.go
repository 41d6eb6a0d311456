// Package serve bounds what strangers cost a node. A stranger is any caller who is not
// known yet. The bounds hold over all listeners together.
//
// Promised: the bytes that the bodies of unknown senders hold in memory are bounded, in
// all and for each address. So are the numbers of their requests and connections. If
// room is short, new and quick requests are let in. The request that has been there
// longest gives way, of the address that holds the most. A known sender gives way to
// nobody. Some connections are reserved for this machine. Every refusal is counted. Log
// lines about refusals are bounded in number and length.
//
// Not promised: fairness between strangers of one address, because nobody can tell
// them apart.
//
// A Guard stands around the handler of a node's listeners. The code that finds out who
// sends a request says so with Known. A Watch bounds how often one address may guess at
// a secret.
package serve
