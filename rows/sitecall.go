package rows

// SiteCall is what a site said last of one of its operations. Central shows it, and never delivers it.
// Times of the site are microseconds since 1970 by its clock.
type SiteCall struct {
	Site        string  `row:"site,key"`
	ID          string  `row:"id,key"`
	Epoch       int64   `row:"epoch,newer"`    // number of the log with which it came: a later history of the site's store has a higher one
	Revision    int64   `row:"revision,newer"` // within the epoch
	Node        string  `row:"node"`
	Category    string  `row:"category"`
	Destination string  `row:"destination"`
	Endpoint    string  `row:"endpoint"`
	Status      string  `row:"status"`
	Retries     int64   `row:"retries"`
	LastError   string  `row:"last_error,null"`
	HTTP        int64   `row:"http,null"`
	Instance    string  `row:"instance,null"`
	Script      string  `row:"script,null"`
	Execution   string  `row:"execution,null"`
	Created     int64   `row:"created"`
	Attempted   int64   `row:"attempted,null"`
	Ended       int64   `row:"ended,null"`
	Seen        Instant `row:"seen"` // when central took it
}

// Table implements Row.
func (*SiteCall) Table() string { return "hf_sitecall" }
