package rows

// Minute is what a node did in one minute.
type Minute struct {
	Minute  int64   `row:"minute,key"` // minutes since 1970
	Node    string  `row:"node,key"`
	Noted   Instant `row:"noted"`   // when the row was written
	Seconds int64   `row:"seconds"` // that it covers
	Numbers string  `row:"numbers"` // JSON
}

// Table implements Row.
func (*Minute) Table() string { return "hf_minute" }
