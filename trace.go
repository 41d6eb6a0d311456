package holdfast

import "strings"

// Names of the headers of a message that carry a trace context (W3C Trace Context).
const (
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// MaxTraceState is the longest tracestate that is kept, in bytes.
const MaxTraceState = 512

// Trace is the trace context that a message was sent in. It is passed on as it came: the product adds no
// spans. The zero value is no trace.
type Trace struct {
	Parent string // traceparent; empty: no trace
	State  string // tracestate; may be empty
}

// ParseTrace reads the headers of a request. Without a valid traceparent there is no trace; a tracestate that
// is not valid is left out.
func ParseTrace(parent, state string) Trace {
	if !validTraceParent(parent) {
		return Trace{}
	}
	if !validTraceState(state) {
		state = ""
	}
	return Trace{parent, state}
}

// TraceOf reads the trace from the headers of a message.
func TraceOf(headers map[string]string) Trace {
	return ParseTrace(headers[HeaderTraceParent], headers[HeaderTraceState])
}

// Each calls yield with the name and the value of each header that carries the trace.
func (t Trace) Each(yield func(name, value string)) {
	if t.Parent != "" {
		yield(HeaderTraceParent, t.Parent)
	}
	if t.State != "" {
		yield(HeaderTraceState, t.State)
	}
}

// ID returns the trace id, 32 hexadecimal digits, or an empty text if there is no trace.
func (t Trace) ID() string {
	if !validTraceParent(t.Parent) {
		return ""
	}
	return t.Parent[3:35]
}

// validTraceParent accepts every version but ff. A later version may add fields at the end.
func validTraceParent(s string) bool {
	const length = 55
	if len(s) < length || len(s) > 2*length || s[:2] == "ff" || len(s) > length && (s[:2] == "00" || s[length] != '-') {
		return false
	}
	hex := func(from, to int) bool { return strings.Trim(s[from:to], "0123456789abcdef") == "" }
	zero := func(from, to int) bool { return strings.Trim(s[from:to], "0") == "" }
	return s[2] == '-' && s[35] == '-' && s[52] == '-' && hex(0, 2) && hex(3, 35) && hex(36, 52) && hex(53, length) &&
		!zero(3, 35) && !zero(36, 52) && (len(s) == length || checkText("", s[length:], length) == nil)
}

// validTraceState accepts at most 32 members of the form key=value in printable ASCII.
func validTraceState(s string) bool {
	if s == "" || len(s) > MaxTraceState {
		return false
	}
	members := 0
	for member := range strings.SplitSeq(s, ",") {
		if member = strings.Trim(member, " \t"); member == "" {
			continue // the standard allows empty members
		}
		key, value, found := strings.Cut(member, "=")
		if members++; members > 32 || !found || key == "" || value == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_-*/@") != "" || strings.ContainsAny(value, "=,") {
			return false
		}
	}
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return members > 0
}
