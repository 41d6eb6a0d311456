// Package storecopy copies everything in one store into another, of the same kind or not, while no node
// uses either of them.
//
//	report, err := storecopy.Copy(ctx, from, to, storecopy.Options{})
//
// A store is an Exporter, an Importer or both; packages sqlite and postgres implement them. The
// exchanged rows are neutral: they have names instead of numbers. Their instants are distances from
// an instant of each side (Base); the two were the same moment, so the two clocks need not agree.
//
// The copy goes page by page. The transaction of each page also records the progress in the target,
// so a copy that is killed continues there. Until it has ended, no node opens the target
// (ErrUnfinished). Before it ends, the source is marked, and no node opens it any more (ErrMoved).
// So nothing is delivered twice.
package storecopy
