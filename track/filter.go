package track

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Filter narrows a list of operations. Zero fields do not narrow.
type Filter struct {
	Statuses    []Status
	Destination string
	Among       []string // only these destinations; empty: all
	Category    holdfast.Category
	Instance    string
	Script      string
	Execution   string    // of the operation, or of the run that started its run
	Trace       string    // id of a trace
	From, To    time.Time // of Created; To is excluded
	Error       string    // a part of the last error, in any case
	Limit       int       // 1 to 500; zero: 50
	After       string    // Page.Next of the previous page
}

// Page is one page of operations.
type Page struct {
	Operations []Operation // newest first
	Next       string      // empty: the last page
}

// shows reports whether an operation is one that the filter asks for.
func (f *Filter) shows(o *Operation) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, o.Status)) &&
		is(f.Destination, o.Destination) && (len(f.Among) == 0 || slices.Contains(f.Among, o.Destination)) && is(string(f.Category), string(o.Category)) &&
		is(f.Instance, o.Origin.Instance) && is(f.Script, o.Origin.Script) && is(f.Trace, o.Origin.Trace.ID()) &&
		(is(f.Execution, o.Origin.Execution) || f.Execution == o.Origin.ParentExecution) &&
		(f.To.IsZero() || o.Created.Before(f.To)) && !o.Created.Before(f.From) &&
		(f.Error == "" || strings.Contains(strings.ToLower(o.LastError), strings.ToLower(f.Error)))
}

// states returns the states of messages that can have the wanted statuses; nil: all.
func (f *Filter) states() (list []holdfast.State) {
	for _, s := range f.Statuses {
		switch s {
		case Submitted, Retrying:
			list = append(list, holdfast.Pending, holdfast.Claimed)
		case Delivered:
			list = append(list, holdfast.Delivered)
		case Failed:
			list = append(list, holdfast.Parked, holdfast.Discarded)
		case Parked:
			list = append(list, holdfast.Parked)
		case Expired:
			list = append(list, holdfast.Expired)
		case Discarded:
			list = append(list, holdfast.Discarded)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
