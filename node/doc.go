// Package node puts the parts together: a store, a site, which delivers and sweeps, the
// receiver, the HTTP listener, and the parts of the node's role. It starts them in order
// and stops them in reverse. It promises two things. A node that does not start says why
// in one error and leaves everything as it was. A stop takes nothing more in, lets work
// in hand end, and then closes the store.
package node
