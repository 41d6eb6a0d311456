package keyring

import "context"

// Value is one sealed value of a Holder.
type Value struct {
	Place  string // key of its row within the holder; values are sorted by it
	At     Context
	Sealed string
}

// Change replaces a sealed value by another one.
type Change struct {
	Value

	New string
}

// Holder is a feature that stores sealed values. Its methods may be called concurrently.
type Holder interface {
	// Values returns the sealed values of the next rows behind a place ("" is the beginning), sorted by
	// place, those of about limit rows. All values of a row are on one page. None: there are no more.
	Values(ctx context.Context, after string, limit int) ([]Value, error)
	// Replace makes changes, those of a row in one transaction. A value that is not Sealed any more, or
	// is gone, is left alone: somebody has given another secret meanwhile.
	Replace(ctx context.Context, changes []Change) error
}
