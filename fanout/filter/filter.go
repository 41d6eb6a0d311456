package filter

// Filter is a condition on events: all its members must hold. The zero value meets every event.
type Filter struct {
	// Topics are names of topics. One of them must be the event's.
	Topics []string `json:"topics,omitzero" yaml:"topics,omitempty"`
	// Types are types of events, or beginnings of them such as order.*, or * alone. One must fit.
	Types []string `json:"types,omitzero" yaml:"types,omitempty"`
	// Attributes is the match rule of the Notificaties API. Each attribute that the event has must
	// have this value; the value * stands for any. An attribute that the event does not have counts
	// as a match. Names are compared by [Key].
	Attributes map[string]string `json:"attributes,omitzero" yaml:"attributes,omitempty"`
	// Data is the same rule for the members of the event's data, if they are an object: each that is
	// there must be this text.
	Data map[string]string `json:"data,omitzero" yaml:"data,omitempty"`
	// Where are tests of single fields.
	Where []Test `json:"where,omitzero" yaml:"where,omitempty"`
	// Any are filters of which at least one must hold, All filters that must all hold.
	Any []Filter `json:"any,omitzero" yaml:"any,omitempty"`
	All []Filter `json:"all,omitzero" yaml:"all,omitempty"`
	// Not must not hold.
	Not *Filter `json:"not,omitzero" yaml:"not,omitempty"`
}

// The names of two attributes by which a filter of the Notificaties API asks for actie and resource.
// Whoever reads a notification adds them to the attributes of the event.
const (
	Action   = "#actie"
	Resource = "#resource"
)

// Test compares one field of an event with a value.
type Test struct {
	// Field is topic, type, source, subject, time, attributes.NAME or data.PATH. NAME is taken as it
	// is, dots included. PATH is names of members and, in arrays, places from 0, with dots between;
	// a dot that belongs to a name is written \. and a backslash \\.
	Field string `json:"field" yaml:"field"`
	Op    Op     `json:"op" yaml:"op"`
	// Value is what Op compares with: a list for In and Nin, a text for Prefix, Suffix and Contains. Exists
	// takes true, false or nothing, which is true.
	Value Value `json:"value,omitzero" yaml:"value,omitempty"`
}

// Op is how a test compares.
type Op string

// The operators.
const (
	Eq     Op = "eq"
	Neq    Op = "neq" // also if the field is absent
	Gt     Op = "gt"  // Gt, Gte, Lt and Lte: a number, a text or, of the field time, an instant
	Gte    Op = "gte"
	Lt     Op = "lt"
	Lte    Op = "lte"
	In     Op = "in"
	Nin    Op = "nin" // also if the field is absent
	Prefix Op = "prefix"
	Suffix Op = "suffix"
	// Contains holds for a text in which the value stands anywhere.
	Contains Op = "contains"
	Exists   Op = "exists"
)

// Value is a JSON text: a scalar or a list of them. The zero value is none.
type Value string
