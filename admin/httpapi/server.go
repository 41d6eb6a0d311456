package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// Server answers the operator API of one node. Its fields are set before
// Handler is called and not changed afterwards.
type Server struct {
	*admin.Service
	gate.Settings

	// Mounts are routes of other packages on the same listener, behind the
	// same gate, with the same answers to a wrong path or method.
	Mounts []gate.Route
}

// Handler returns the API. The error holds every fault of the Server.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b := newBuilder(s.Service)
	for _, resource := range []func(*builder){
		messages, decisions, inbox, destinations, notifying, notifications, copyDecisions, channels, lists, recipients, tokens, node, diagnostics,
	} {
		resource(b)
	}
	if s.Central != nil {
		sites(b)
	}
	others(b, slices.ContainsFunc(s.Mounts, func(m gate.Route) bool { return m.Pattern == receive }))
	document, err := b.document()
	if err != nil {
		return nil, err
	}
	keys := gate.Keys{Refuse: s.Refusal, As: admin.As}
	if s.Tokens != nil {
		keys.Find = s.Tokens.FindToken
	}
	routes := slices.Concat(b.routes, []gate.Route{{Pattern: "GET /openapi.json", Handler: document}}, s.Mounts)
	return gate.New(s.Settings, keys, routes, s.Logger), nil
}

func (s *Server) check() error {
	if s.Service == nil {
		return errors.New("admin server: Service is nil")
	}
	faults := []error{s.Check()}
	need := func(ok bool, name string) {
		if !ok {
			faults = append(faults, errors.New("admin server: "+name))
		}
	}
	need(s.MaxBodies >= 0, "MaxBodies is negative")
	need(!s.AuthRequired || s.Tokens != nil, "AuthRequired without Tokens would lock everybody out")
	return errors.Join(faults...)
}
