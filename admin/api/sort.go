package api

import (
	"errors"
	"net/http"

	"github.com/holdfast-mq/holdfast"
)

// Sort is the sort of a problem.
type Sort uint8

// The sorts. The table sorts describes them.
const (
	Unreadable Sort = iota
	Unauthorized
	RoleLacking
	ForeignOrigin
	ForeignHost
	NoRoute
	NotFound
	NoMethod
	TimedOut
	Conflict
	WrongState
	Changed
	TooLarge
	MediaType
	Invalid
	Refused
	Internal
	Unsupported
	TooMany
	Unavailable
	Unknown
	Busy
	SiteAway
	SiteSilent
	SiteBusy
	SiteUnavailable
	SiteFailed
	DiskFull
)

var sorts = [...]struct {
	status      int
	slug, title string
}{
	Unreadable:      {http.StatusBadRequest, "unreadable", "the request body is not readable JSON"},
	Unauthorized:    {http.StatusUnauthorized, "unauthorized", "a valid token is needed"},
	RoleLacking:     {http.StatusForbidden, "role", "the token's rights do not allow this"},
	ForeignOrigin:   {http.StatusForbidden, "origin", "the request comes from a foreign web page"},
	ForeignHost:     {http.StatusForbidden, "host", "the request is addressed to a name that this node does not answer to"},
	NoRoute:         {http.StatusNotFound, "route", "there is no such route"},
	NotFound:        {http.StatusNotFound, "not-found", "nothing is kept under this name"},
	NoMethod:        {http.StatusMethodNotAllowed, "method", "the route does not take this method"},
	TimedOut:        {http.StatusRequestTimeout, "timeout", "the request body did not arrive in time"},
	Conflict:        {http.StatusConflict, "conflict", "the name is taken by something else"},
	WrongState:      {http.StatusConflict, "state", "the present state does not allow this"},
	Changed:         {http.StatusPreconditionFailed, "changed", "it is not what you have seen any more"},
	TooLarge:        {http.StatusRequestEntityTooLarge, "too-large", "the request is larger than this node takes"},
	MediaType:       {http.StatusUnsupportedMediaType, "media-type", "the body must be JSON"},
	Invalid:         {http.StatusUnprocessableEntity, "invalid", "a field is wrong"},
	Refused:         {http.StatusUnprocessableEntity, "refused", "the destination refused the message"},
	Internal:        {http.StatusInternalServerError, "internal", "the node failed"},
	Unsupported:     {http.StatusNotImplemented, "unsupported", "this node does not have this part"},
	TooMany:         {http.StatusTooManyRequests, "too-many", "too many tokens were refused"},
	Unavailable:     {http.StatusServiceUnavailable, "unavailable", "the node cannot do this now"},
	Unknown:         {http.StatusServiceUnavailable, "outcome-unknown", "the outcome is unknown"},
	Busy:            {http.StatusServiceUnavailable, "busy", "the node has too much to do"},
	SiteAway:        {http.StatusServiceUnavailable, "site-not-reachable", "the site is not reachable"},
	SiteSilent:      {http.StatusGatewayTimeout, "site-silent", "the site did not answer in time"},
	SiteBusy:        {http.StatusServiceUnavailable, "site-busy", "the site has too much to do"},
	SiteUnavailable: {http.StatusServiceUnavailable, "site-unavailable", "the site cannot do this now"},
	SiteFailed:      {http.StatusBadGateway, "site-failed", "the site failed"},
	DiskFull:        {http.StatusInsufficientStorage, "disk-full", "the disk is full"},
}

// Status returns the HTTP status of the sort.
func (s Sort) Status() int { return sorts[s].status }

// Problem makes a problem of the sort.
func (s Sort) Problem(detail string, faults ...Fault) *Problem {
	return &Problem{
		Type: "urn:holdfast:problem:" + sorts[s].slug, Title: sorts[s].title,
		Status: sorts[s].status, Detail: detail, Errors: faults, err: s.is(),
	}
}

// is returns the error that Go callers branch on. Nil: the sort is about an HTTP request, or about a site.
func (s Sort) is() error {
	switch s { //nolint:exhaustive // as the comment says
	case NotFound:
		return holdfast.ErrNotFound
	case Conflict:
		return holdfast.ErrConflict
	case WrongState:
		return holdfast.ErrState
	case Invalid:
		return holdfast.ErrInvalid
	case Unsupported:
		return errors.ErrUnsupported
	case Unavailable:
		return holdfast.ErrUnavailable
	case Unknown:
		return holdfast.ErrUnknown
	case DiskFull:
		return holdfast.ErrDiskFull
	}
	return nil
}
