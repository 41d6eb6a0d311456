package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/track"
)

// Operations offers what became of calls and writes.
type Operations struct{ *Service }

// OperationQuery narrows a list of operations. Zero fields do not narrow. Times are RFC 3339, or a day in UTC.
type OperationQuery struct {
	Status      []string // each entry holds one or several, separated by commas
	Destination string
	Category    string
	Instance    string
	Script      string
	Execution   string
	Trace       string
	From, To    string
	Error       string // a part of the last error
	After       string // OperationPage.Next of the previous page
	Limit       int    // zero: 50
}

// Get returns one operation.
func (o Operations) Get(ctx context.Context, text string) (out api.Operation, err error) {
	if o.Track == nil {
		return out, noOperations()
	}
	id, p := parseID(text)
	if p != nil {
		return out, p
	}
	is, err := o.Track.Status(ctx, id)
	if err == nil && !within(ctx, o.here(is.Destination)) {
		err = holdfast.ErrNotFound // an answer must not tell which ids there are
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return out, api.NotFound.Problem(fmt.Sprintf("no operation %s is known here; it never was, or its retention is over", id),
			api.Fault{Field: "id", Value: api.Clip(string(id)), Problem: "is not the id of an operation that is kept"})
	}
	if err != nil {
		return out, o.refuse(ctx, "look for the operation", err)
	}
	return operationOf(&is), nil
}

// List returns a page of those in the caller's scope, newest first.
func (o Operations) List(ctx context.Context, in *OperationQuery) (out api.OperationPage, err error) {
	if o.Track == nil {
		return out, noOperations()
	}
	among, p := o.among(ctx, in.Destination)
	if p != nil {
		return out, p
	}
	f := track.Filter{
		Among: among, Destination: in.Destination, Category: holdfast.Category(in.Category), Instance: in.Instance, Script: in.Script, Execution: in.Execution,
		Trace: in.Trace, Error: in.Error, Limit: in.Limit, After: in.After,
	}
	var faults, wrong []api.Fault
	f.Statuses, faults = operationStatuses(in.Status)
	f.From, wrong = instantOf("from", in.From)
	faults = append(faults, wrong...)
	f.To, wrong = instantOf("to", in.To)
	if faults = append(faults, wrong...); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	page, err := o.Track.Operations(ctx, f)
	if err != nil {
		return out, o.refuse(ctx, "list operations", err)
	}
	out = api.OperationPage{Operations: make([]api.Operation, len(page.Operations)), Next: page.Next}
	for i := range page.Operations {
		out.Operations[i] = operationOf(&page.Operations[i])
	}
	return out, nil
}

func operationOf(o *track.Operation) api.Operation {
	return api.Operation{
		ID: string(o.ID), Category: string(o.Category), Destination: o.Destination, Endpoint: o.Endpoint, Status: string(o.Status),
		Retries: o.Retries, Failures: o.Failures, OwnRetry: ownRetryOf(o.Retry), LastError: o.LastError, Code: o.Code, HTTPStatus: o.HTTPStatus(),
		Site: o.Origin.Site, Node: o.Node, Created: o.Created.UTC(), Updated: o.Updated().UTC(), LastAttempt: instant(o.LastAttempt), Ended: instant(o.Ended),
		Purged: o.Purged, Provenance: provenanceFrom(&o.Origin),
	}
}

// operationStatuses reads status=parked,retrying and status=parked&status=retrying.
func operationStatuses(params []string) (list []track.Status, faults []api.Fault) {
	known := track.Statuses()
	for _, param := range params {
		for name := range strings.SplitSeq(param, ",") {
			status := track.Status(strings.TrimSpace(name))
			if !slices.Contains(known, status) {
				faults = append(faults, api.Fault{Field: "status", Value: api.Clip(string(status)), Problem: "must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(known), " ", ", "), "[]")})
				continue
			}
			list = append(list, status)
		}
	}
	return list, faults
}

func noOperations() *api.Problem {
	return api.Unsupported.Problem("this node does not say what became of calls")
}
