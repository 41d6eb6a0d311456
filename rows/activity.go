package rows

// Activity is one line of a node's activity log.
type Activity struct {
	Seq         int64   `row:"seq,key"` // grows by one from line to line
	At          int64   `row:"at"`      // when it happened, for people: microseconds since 1970
	Noted       Instant `row:"noted"`   // when the line was written
	Kind        int64   `row:"kind"`
	Message     []byte  `row:"message"` // its id, as package activity writes it
	Destination string  `row:"destination"`
	Cycle       int64   `row:"cycle"`
	Attempt     int64   `row:"attempt"`
	Actor       string  `row:"actor,null"`
	Reason      string  `row:"reason,null"`
	Code        string  `row:"code,null"`
	Error       string  `row:"error,null"`
}

// Table implements Row.
func (*Activity) Table() string { return "hf_activity" }
