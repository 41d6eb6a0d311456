package rows

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// Operation is what became of a call whose message is purged.
type Operation struct {
	Seq         int64   `row:"seq,key"` // of the message
	ID          string  `row:"id"`
	Category    string  `row:"category"`
	Destination string  `row:"destination"`
	Endpoint    string  `row:"endpoint"`
	Source      string  `row:"source"`
	Origin      string  `row:"origin"` // JSON: headers that say where the message came from
	Retry       string  `row:"retry"`  // JSON, as stored with the message; empty: none
	State       int64   `row:"state"`
	Reason      string  `row:"reason"`
	Failures    int64   `row:"failures"`
	Tries       int64   `row:"tries"`
	Cycle       int64   `row:"cycle"`
	Code        string  `row:"code"` // of the last failure
	Error       string  `row:"error"`
	Created     Instant `row:"created"`
	Tried       Instant `row:"tried,null"`
	Settled     Instant `row:"settled"`
}

// SetOrigin keeps those headers of a message, JSON as stored, that say where it came from. It leaves out the
// sender's own, which may hold a secret, and what cannot be read.
func (o *Operation) SetOrigin(headers string) {
	var all, kept map[string]string
	if headers == "" || json.Unmarshal([]byte(headers), &all) != nil {
		return
	}
	for name, value := range all {
		if strings.HasPrefix(name, "hf-") || name == holdfast.HeaderTraceParent || name == holdfast.HeaderTraceState {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	switch {
	case kept == nil:
	case len(kept) == len(all):
		o.Origin = headers
	default:
		if text, err := json.Marshal(kept); err == nil {
			o.Origin = string(text)
		}
	}
}

// Table implements Row.
func (*Operation) Table() string { return "hf_operation" }
