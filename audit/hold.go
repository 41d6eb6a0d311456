package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// Hold keeps the records that a filter selects, and all that follow them in their logs, from being purged.
type Hold struct {
	Name   string
	Filter Filter
	Reason string
	Actor  string
	Since  time.Time    // when it was made
	At     rows.Instant // the same, as the store has it
}

// Holds keeps holds. Making and ending one is an entry of the journal, of which the log makes a record.
type Holds interface {
	// Holds lists the holds by name.
	Holds(ctx context.Context) ([]Hold, error)
	// Hold makes a hold. ErrConflict: there is another one of this name.
	Hold(ctx context.Context, h *Hold) error
	// Release ends a hold. ErrNotFound: there is none of this name.
	Release(ctx context.Context, name, reason, actor string) error
}

// selectsAny reports whether a hold selects a record.
func selectsAny(holds []Hold, r *Record) bool {
	for i := range holds {
		if holds[i].Filter.Match(r) {
			return true
		}
	}
	return false
}

// newest returns when the newest hold was made.
func newestOf(holds []Hold) (at rows.Instant) {
	for i := range holds {
		at = max(at, holds[i].At)
	}
	return at
}

// Decision is the detail of the entry of a hold, a release or an erasure.
type Decision struct {
	Filter *Filter `json:"filter,omitempty"`
	Reason string  `json:"reason"`
	// Of an erasure: how many values went, and which records they belonged to.
	Log     string  `json:"log,omitempty"`
	Values  int64   `json:"values,omitempty"`
	Records []int64 `json:"records,omitempty"`
}

// sealFilter moves the filter of a detail to the record's request, where it is sealed: a filter may name a person.
// It returns what is left of the detail.
func sealFilter(r *Record, detail []byte) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(detail, &all) != nil || len(all["filter"]) <= len("{}") {
		return detail
	}
	r.Request, r.Personal = string(all["filter"]), append(r.Personal, "request")
	delete(all, "filter")
	rest, err := json.Marshal(all)
	if err != nil || len(all) == 0 {
		return nil
	}
	return rest
}
