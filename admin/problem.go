package admin

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

// Problem is a refusal, as RFC 9457 writes it. It is what the server answers
// and the error that Client returns.
type Problem struct { //nolint:errname // the name of RFC 9457, and of the schema
	Type   string  `json:"type" format:"uri" doc:"What sort of problem it is; stable, for programs." example:"urn:holdfast:problem:invalid"`
	Title  string  `json:"title" doc:"The sort of problem in words; the same for each of its sort." example:"a field is wrong"`
	Status int     `json:"status" doc:"The HTTP status." example:"422"`
	Detail string  `json:"detail" doc:"What went wrong this time." example:"destination \"inventroy\" is not known here; known: inventory, billing"`
	Errors []Fault `json:"errors,omitempty" nullable:"false" doc:"Each field that is wrong."`

	Message      string `json:"message,omitempty" doc:"Where the destination refused it, or the outcome is unknown: the id of the message."`
	Code         string `json:"code,omitempty" doc:"Where the destination refused it: what it answered, in a short, stable name." example:"http_422"`
	Cause        string `json:"cause,omitempty" enum:"refused_by_target,unknown_destination" doc:"Of a message that was sent: whether its destination has refused it, or there is no such destination."`
	TargetStatus int    `json:"targetStatus,omitempty" doc:"Where the destination refused it: the HTTP status that it answered; detail has the beginning of what it said. Absent: it does not speak HTTP, or was not asked." example:"422"`

	header http.Header // sent along
}

// Fault names a field of the request, the value found and what to do about it.
type Fault struct {
	Field   string `json:"field" doc:"The field of the body, the parameter or the header." example:"ttl"`
	Value   string `json:"value" doc:"What it held, shortened. Empty where it may be a secret." example:"1 day"`
	Problem string `json:"problem" doc:"What is wrong with it, and what to do." example:"has no unit; write a number with a unit, such as 30s, 5m, 24h or 7d, or none"`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status; huma asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that belong to the answer.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns the media type of problem documents.
func (*Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// with adds a header to the answer.
func (p *Problem) with(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Add(name, value)
	return p
}

// inDoubt tells the id with which the same request finds out what became of it,
// also where the node has made it.
func (p *Problem) inDoubt(err error, id holdfast.ID) *Problem {
	if errors.Is(err, holdfast.ErrUnknown) {
		p.Message = string(id)
		p.Detail = fmt.Sprintf("outcome unknown, send the same id again: the store was asked to keep %s, and nobody can tell now whether it has; with that id it is kept once", id)
	}
	return p
}

// write answers a request with p.
func (p *Problem) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // the client is gone: nobody to tell
}

// kind is a sort of problem.
type kind uint8

const (
	kindUnreadable kind = iota
	kindUnauthorized
	kindRole
	kindOrigin
	kindHost
	kindRoute
	kindNotFound
	kindMethod
	kindTimeout
	kindConflict
	kindState
	kindChanged
	kindTooLarge
	kindMediaType
	kindInvalid
	kindRefused
	kindInternal
	kindUnsupported
	kindTooMany
	kindUnavailable
	kindUnknown
	kindBusy
	kindAway
	kindSilent
	kindSiteBusy
	kindSiteUnavailable
	kindSiteFailed
	kindDiskFull
)

var kinds = [...]struct {
	status      int
	slug, title string
}{
	kindUnreadable:      {http.StatusBadRequest, "unreadable", "the request body is not readable JSON"},
	kindUnauthorized:    {http.StatusUnauthorized, "unauthorized", "a valid token is needed"},
	kindRole:            {http.StatusForbidden, "role", "the token's role does not allow this"},
	kindOrigin:          {http.StatusForbidden, "origin", "the request comes from a foreign web page"},
	kindHost:            {http.StatusForbidden, "host", "the request is addressed to a name that this node does not answer to"},
	kindRoute:           {http.StatusNotFound, "route", "there is no such route"},
	kindNotFound:        {http.StatusNotFound, "not-found", "nothing is kept under this name"},
	kindMethod:          {http.StatusMethodNotAllowed, "method", "the route does not take this method"},
	kindTimeout:         {http.StatusRequestTimeout, "timeout", "the request body did not arrive in time"},
	kindConflict:        {http.StatusConflict, "conflict", "the name is taken by something else"},
	kindState:           {http.StatusConflict, "state", "the present state does not allow this"},
	kindChanged:         {http.StatusPreconditionFailed, "changed", "it is not what you have seen any more"},
	kindTooLarge:        {http.StatusRequestEntityTooLarge, "too-large", "the request is larger than this node takes"},
	kindMediaType:       {http.StatusUnsupportedMediaType, "media-type", "the body must be JSON"},
	kindInvalid:         {http.StatusUnprocessableEntity, "invalid", "a field is wrong"},
	kindRefused:         {http.StatusUnprocessableEntity, "refused", "the destination refused the message"},
	kindInternal:        {http.StatusInternalServerError, "internal", "the node failed"},
	kindUnsupported:     {http.StatusNotImplemented, "unsupported", "this node does not have this part"},
	kindTooMany:         {http.StatusTooManyRequests, "too-many", "too many tokens were refused"},
	kindUnavailable:     {http.StatusServiceUnavailable, "unavailable", "the node cannot do this now"},
	kindUnknown:         {http.StatusServiceUnavailable, "outcome-unknown", "the outcome is unknown"},
	kindBusy:            {http.StatusServiceUnavailable, "busy", "the node has too much to do"},
	kindAway:            {http.StatusServiceUnavailable, "site-not-reachable", "the site is not reachable"},
	kindSilent:          {http.StatusGatewayTimeout, "site-silent", "the site did not answer in time"},
	kindSiteBusy:        {http.StatusServiceUnavailable, "site-busy", "the site has too much to do"},
	kindSiteUnavailable: {http.StatusServiceUnavailable, "site-unavailable", "the site cannot do this now"},
	kindSiteFailed:      {http.StatusBadGateway, "site-failed", "the site failed"},
	kindDiskFull:        {http.StatusInsufficientStorage, "disk-full", "the disk is full"},
}

func (k kind) problem(detail string, faults ...Fault) *Problem {
	return &Problem{
		Type: "urn:holdfast:problem:" + kinds[k].slug, Title: kinds[k].title,
		Status: kinds[k].status, Detail: detail, Errors: faults,
	}
}

// Unavailable answers each request that the node cannot do it now, and why.
func Unavailable(detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		kindUnavailable.problem(detail).with("Retry-After", "1").write(w)
	})
}

// mostFaults is how many faults a problem names: more help nobody, and a small
// request must not get a large answer.
const mostFaults = 20

// invalid sums faults up in one line. Those without a problem only count.
func invalid(faults ...Fault) *Problem {
	named := make([]Fault, 0, mostFaults)
	for _, f := range faults {
		if f.Problem != "" && len(named) < mostFaults {
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
	return kindInvalid.problem(strings.Join(lines, "; "), named...)
}

// crowded is said to somebody for whom there is no room now.
func crowded() *Problem {
	return kindBusy.problem("the node has more requests in hand than it has room for; nothing was done: send the same request again in a moment").
		with("Retry-After", "1")
}

// faultsOf collects the FieldErrors of an error and of all that it joins.
func faultsOf(err error) []Fault {
	switch e := err.(type) { //nolint:errorlint // the whole tree is walked, level by level
	case nil:
		return nil
	case *holdfast.FieldError:
		return []Fault{{Field: e.Field, Value: clip(e.Value), Problem: e.Problem}}
	case interface{ Unwrap() []error }:
		var all []Fault
		for _, child := range e.Unwrap() {
			all = append(all, faultsOf(child)...)
		}
		return all
	}
	return faultsOf(errors.Unwrap(err))
}

// clip shortens a value that is shown again.
func clip(s string) string { return shown.Clip(s, 80) }
