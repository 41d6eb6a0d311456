package admin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-mq/holdfast/admin/api"
)

type callerKey struct{}

type caller struct {
	name string
	may  api.Grant
}

// As returns a context in which name asks, who may do this. What name does is recorded under that name, and
// keeps to the scope. Whoever calls decides whether the rights suffice: the methods of this package ask only
// for the scope.
func As(ctx context.Context, name string, may api.Grant) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{name, may})
}

// Actor returns who asks; api.Local if the context does not say.
func Actor(ctx context.Context) string {
	c, _ := ctx.Value(callerKey{}).(caller)
	return cmp.Or(c.name, api.Local)
}

// Granted returns what the caller may do; everything if the context does not say who asks.
func Granted(ctx context.Context) api.Grant {
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		return c.may
	}
	return api.Everything()
}

// within reports whether an object is in the caller's scope.
func within(ctx context.Context, o api.Object) bool { return Granted(ctx).Has(o) }

// here is the object of what this node itself keeps or sends.
func (s *Service) here(destination string) api.Object {
	return api.Object{Site: s.From(), Destination: destination}
}

// among returns the destinations to which a question about this node's messages is narrowed by the caller's
// scope; none: it is not. destination is what the caller asks for, or empty.
func (s *Service) among(ctx context.Context, destination string) ([]string, *api.Problem) {
	scope := Granted(ctx).Scope
	switch {
	case !scope.AtSite(s.From()):
		return nil, outside("site", s.From())
	case destination == "":
		return scope.Destinations, nil
	case !scope.Has(s.here(destination)):
		return nil, outside("destination", destination)
	}
	return nil, nil
}

// outside refuses what the caller's scope does not have. Only names that the caller has given may be in field
// and value: an id that is out of scope is refused like one that is not kept.
func outside(field, value string) *api.Problem {
	if value == "" {
		return api.RoleLacking.Problem(fmt.Sprintf("the token is not for all sites, destinations and topics; name the %s that the question is about", field),
			api.Fault{Field: field, Problem: "is missing, and the token is not for all"})
	}
	return api.RoleLacking.Problem(fmt.Sprintf("the token is not for %s %q", field, api.Clip(value)),
		api.Fault{Field: field, Value: api.Clip(value), Problem: "is outside of the token's sites, destinations or topics"})
}
