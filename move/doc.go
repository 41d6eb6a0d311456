// Package move copies everything that one store holds into another, of the
// same kind or not, while no node uses either of them.
//
//	report, err := move.Copy(ctx, from, to, move.Options{})
//
// A store is an Exporter, an Importer or both; packages sqlite and postgres
// make them. Between the two everything is neutral: names instead of numbers,
// and instants as distances from an instant of each side (Base) that were the
// same moment, so that the two clocks need not agree.
//
// The copy goes page by page. How far it is stands in the target, written by
// the transaction of the page itself: what is killed goes on from there. Until
// it has ended no node opens the target (ErrUnfinished), and from the moment
// before that none opens the source (ErrMoved): so nothing is delivered twice.
package move
