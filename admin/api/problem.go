package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Problem is a refusal as in RFC 9457. A node answers with it, and its client returns it as an error.
type Problem struct { //nolint:errname // the name of RFC 9457, and of the schema
	Type   string  `json:"type" format:"uri" doc:"What sort of problem it is; stable, for programs." example:"urn:holdfast:problem:invalid"`
	Title  string  `json:"title" doc:"The sort of problem in words; the same for each problem of the sort." example:"a field is wrong"`
	Status int     `json:"status" doc:"The HTTP status." example:"422"`
	Detail string  `json:"detail" doc:"What went wrong this time." example:"destination \"inventroy\" is not known here; known: inventory, billing"`
	Errors []Fault `json:"errors,omitempty" nullable:"false" doc:"Each field that is wrong."`

	Message      string `json:"message,omitempty" doc:"If the destination refused it, or the outcome is unknown: the id of the message."`
	Code         string `json:"code,omitempty" doc:"If the destination refused it: its answer as a short, stable name." example:"http_422"`
	Cause        string `json:"cause,omitempty" enum:"refused_by_target,unknown_destination" doc:"For a message that was sent: whether its destination refused it, or does not exist."`
	TargetStatus int    `json:"targetStatus,omitempty" doc:"If the destination refused it: its HTTP status; detail has the beginning of its answer. Absent: it does not speak HTTP, or was not asked." example:"422"`

	header http.Header // sent along
	err    error       // the library's error; not sent
}

// Fault names a field of the request, the value found and what to do about it.
type Fault struct {
	Field   string `json:"field" doc:"The field of the body, the parameter or the header." example:"ttl"`
	Value   string `json:"value" doc:"Its value, shortened. Empty if it may be a secret." example:"1 day"`
	Problem string `json:"problem" doc:"What is wrong with it, and what to do." example:"has no unit; write a number with a unit, such as 30s, 5m, 24h or 7d, or none"`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the error that was refused, or the library's error for this sort, such as
// holdfast.ErrNotFound. A problem that came over the wire has neither.
func (p *Problem) Unwrap() error { return p.err }

// Of keeps the error that p explains.
func (p *Problem) Of(err error) *Problem {
	p.err = err
	return p
}

// GetStatus returns the HTTP status; huma asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that belong to the answer.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns ProblemType; huma asks for it.
func (*Problem) ContentType(string) string { return ProblemType }

// ProblemType is the media type of problem documents.
const ProblemType = "application/problem+json"

// With adds a header to the answer.
func (p *Problem) With(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Add(name, value)
	return p
}

// Answer answers a request with p.
func (p *Problem) Answer(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", ProblemType)
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // if this fails, the client is gone
}

// MostFaults is how many faults a problem names. More would help nobody, and a small request must not get a
// large answer.
const MostFaults = 20

// Faulty refuses a request with faults, and sums them up in one line. Faults without a problem are only counted.
func Faulty(faults ...Fault) *Problem {
	named := make([]Fault, 0, MostFaults)
	for _, f := range faults {
		if f.Problem != "" && len(named) < MostFaults {
			named = append(named, f)
		}
	}
	lines := make([]string, len(named))
	for i, f := range named {
		lines[i] = f.Field + " " + f.Problem
		if f.Value != "" {
			lines[i] = fmt.Sprintf("%s %q %s", f.Field, f.Value, f.Problem)
		}
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if more := len(faults) - len(named); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return Invalid.Problem(strings.Join(lines, "; "), named...)
}

// FaultsOf collects the FieldErrors of an error and of all that it joins.
func FaultsOf(err error) []Fault {
	switch e := err.(type) { //nolint:errorlint // the whole tree is walked, level by level
	case nil:
		return nil
	case *holdfast.FieldError:
		return []Fault{{Field: e.Field, Value: Clip(e.Value), Problem: e.Problem}}
	case interface{ Unwrap() []error }:
		var all []Fault
		for _, child := range e.Unwrap() {
			all = append(all, FaultsOf(child)...)
		}
		return all
	}
	return FaultsOf(errors.Unwrap(err))
}

// Clip shortens a value before it is shown again.
func Clip(s string) string { return shown.Clip(s, 80) }

// TooLong refuses a request that has more bytes than the limit.
func TooLong(size string, limit int64) *Problem {
	return TooLarge.Problem(fmt.Sprintf("the request has %s bytes; this route takes at most %d", size, limit),
		Fault{Field: "body", Value: size + " bytes", Problem: fmt.Sprintf("at most %d bytes are taken", limit)})
}
