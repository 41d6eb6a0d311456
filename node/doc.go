// Package node puts the parts together: a store, a dispatcher with a client
// per destination, the receiver, the sweeper and the HTTP listener, started in
// order and stopped in reverse. It promises that a node that does not start
// says why in one error and leaves everything as it was, and that a stop
// takes in nothing more, lets work in hand end, and then closes the file.
package node
