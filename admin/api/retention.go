package api

// Kept is how long a node keeps something.
type Kept struct {
	What string // in words
	For  string // a duration, or forever
	Key  string // of the configuration
}
