package sites

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// SiteCall is a Call as central has it.
type SiteCall struct {
	Call

	Site string
	Seen time.Time // when central took it
}

// CallPlace is a place in the list of calls, which is ordered by Created, Site and ID.
type CallPlace struct {
	Created int64       `json:"created"`
	Site    string      `json:"site"`
	ID      holdfast.ID `json:"id"`
}

// CallFilter narrows a list of calls. Zero fields do not narrow.
type CallFilter struct {
	Site, Node  string
	Statuses    []string
	Destination string
	Category    holdfast.Category
	From, To    time.Time  // of Created; To is excluded
	Error       string     // a part of the last error, in any case
	Limit       int        // at least 1
	After       *CallPlace // the Next of the page before
}

// CallPage is one page of calls, the newest first. A page that has looked at many calls ends there,
// and may have fewer calls than Limit.
type CallPage struct {
	Calls []SiteCall
	Next  *CallPlace // nil: the last page
}

// CallCount is how many calls of a node that have not ended have one status.
type CallCount struct {
	Site, Node, Status string
	Count              int64
	Old                int64 // of them, created before the given time
}

// Calls is central's copy of what sites say of their operations. A store implements it. Its methods
// may be called concurrently.
type Calls interface {
	// SiteCall returns one call, or holdfast.ErrNotFound.
	SiteCall(ctx context.Context, site string, id holdfast.ID) (SiteCall, error)
	SiteCalls(ctx context.Context, f *CallFilter) (CallPage, error)
	// CallCounts counts the calls that have not ended.
	CallCounts(ctx context.Context, stuckBefore time.Time) ([]CallCount, error)
	// PurgeCalls deletes calls that have ended and of which nothing was heard for so long.
	PurgeCalls(ctx context.Context, kept time.Duration) (purged int64, err error)
}
