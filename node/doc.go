// Package node puts the parts together: a store, a site, which delivers and sweeps, the
// receiver, the HTTP listener, and what the node's role has beside that, started in
// order and stopped in reverse. It promises that a node that does not start
// says why in one error and leaves everything as it was, and that a stop
// takes in nothing more, lets work in hand end, and then closes the file.
package node
