package admin

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type idInput struct {
	ID string `path:"id" doc:"The message id; a UUID in any form."`
}

type listInput struct {
	State       []string `query:"state,explode" doc:"Only these states: repeat the parameter, or separate by commas."`
	Destination string   `query:"destination" doc:"Only this destination."`
	Held        bool     `query:"held" doc:"Only messages that are held, because their TTL is over by a clock that the node doubts: heldUntil. Pages are in no order of time."`
	Category    string   `query:"category" maxLength:"128" doc:"Only destinations of this category, one after the other; excludes destination."`
	After       string   `query:"after" maxLength:"512" doc:"The next of the page before."`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type pageOutput struct{ Body api.MessagePage }

type messageOutput struct{ Body api.Message }

type detailOutput struct{ Body api.MessageDetail }

func (b *builder) messages() {
	b.send()
	handle(b, route{
		method: http.MethodGet, path: "/v1/messages", id: "list-messages", tag: "messages", role: api.Read,
		summary: "List messages", description: "Newest first, without payloads and histories; with category, the newest of each destination first.",
	}, b.list)
	handle(b, route{
		method: http.MethodGet, path: "/v1/messages/{id}", id: "get-message", tag: "messages", role: api.Read,
		summary: "Show a message", description: "With its payload, its history, and in words why it has not been sent yet.",
		problems: map[api.Sort]string{api.NotFound: "No such message is kept."},
	}, b.show)
	b.decisions()
}

func (s *Server) list(ctx context.Context, in *listInput) (*pageOutput, error) {
	states, faults := statesOf(in.State)
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	q := holdfast.Query{States: states, Destination: in.Destination, Held: in.Held, Limit: in.Limit, After: in.After}
	if in.Category == "" {
		return s.page(ctx, q)
	}
	if in.Destination != "" {
		return nil, api.Faulty(api.Fault{Field: "category", Value: api.Clip(in.Category), Problem: "excludes destination, which has one category; leave one of them out"})
	}
	names, faults := s.inCategory(in.Category)
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	return s.pageOfCategory(ctx, q, names)
}

// page lists messages of this node.
func (s *Server) page(ctx context.Context, q holdfast.Query) (*pageOutput, error) {
	page, err := s.Outbox.List(ctx, q)
	if err != nil {
		return nil, s.refuse(ctx, "list messages", err)
	}
	return &pageOutput{s.pageOf(page)}, nil
}

// statesOf reads state=parked,expired and state=parked&state=expired.
func statesOf(params []string) (states []holdfast.State, faults []api.Fault) {
	for _, param := range params {
		for name := range strings.SplitSeq(param, ",") {
			state, err := holdfast.ParseState(strings.TrimSpace(name))
			if err != nil {
				faults = append(faults, api.FaultsOf(err)...)
				continue
			}
			states = append(states, state)
		}
	}
	return states, faults
}

func (s *Server) show(ctx context.Context, in *idInput) (*detailOutput, error) {
	id, p := parseID(in.ID)
	if p != nil {
		return nil, p
	}
	r, err := s.Outbox.Get(ctx, id)
	if err != nil {
		return nil, s.missing(ctx, "read the message", id, err)
	}
	return &detailOutput{s.detailOf(r)}, nil
}
