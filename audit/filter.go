package audit

import "time"

// Filter selects records: those that all its fields agree with. A field with the zero value agrees
// with every record, and so does the zero Filter.
type Filter struct {
	From  time.Time `json:"from,omitzero"`  // the event happened then, or later
	Until time.Time `json:"until,omitzero"` // the event happened before then

	Site        string  `json:"site,omitempty"`
	Node        string  `json:"node,omitempty"`
	Instance    string  `json:"instance,omitempty"`
	Actor       string  `json:"actor,omitempty"`
	Target      string  `json:"target,omitempty"`
	Channel     Channel `json:"channel,omitempty"`
	Kind        Kind    `json:"kind,omitempty"`
	Status      Status  `json:"status,omitempty"`
	Correlation string  `json:"correlation,omitempty"`
	ErrorsOnly  bool    `json:"errorsOnly,omitempty"` // the status counts as an error
}

// Match reports whether the filter selects a record. A filter that names a target does not select a
// record whose target was erased.
func (f *Filter) Match(r *Record) bool {
	switch {
	case !f.From.IsZero() && r.Occurred.Before(f.From), !f.Until.IsZero() && !r.Occurred.Before(f.Until):
		return false
	case f.ErrorsOnly && !r.Status.IsError():
		return false
	}
	for _, field := range [...]struct{ want, got string }{
		{f.Site, r.Site},
		{f.Node, r.Node},
		{f.Instance, r.Instance},
		{f.Actor, r.Actor},
		{f.Target, r.Target},
		{f.Correlation, r.Correlation},
		{string(f.Channel), string(r.Channel)},
		{string(f.Kind), string(r.Kind)},
		{string(f.Status), string(r.Status)},
	} {
		if field.want != "" && field.want != field.got {
			return false
		}
	}
	return true
}
