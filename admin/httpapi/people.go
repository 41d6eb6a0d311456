package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// PersonPath is embedded in the input of routes about a person.
type PersonPath struct {
	Name string `path:"name" doc:"The person's name."`
}

// ForcedPerson is the same of routes that leave the last administrator alone.
type ForcedPerson struct {
	PersonPath

	Force bool `query:"force" doc:"Also if nobody with the role admin is left."`
}

type grantInput struct {
	ForcedPerson
	WithBody
}

type personBodyInput struct {
	PersonPath
	WithBody
}

type sessionInput struct {
	ID string `path:"id" doc:"The session's id."`
}

const noPeople = "This node keeps no people."

// aboutPerson are the refusals of what changes a person.
func aboutPerson(more map[api.Sort]string) map[api.Sort]string {
	all := map[api.Sort]string{api.NotFound: "There is no such person.", api.Unsupported: noPeople, api.DiskFull: "The disk is full; nothing was changed."}
	maps.Copy(all, more)
	return all
}

func persons(b *builder) {
	s := admin.People{Service: b.Service}
	last := map[api.Sort]string{api.Conflict: "It is the last one with the role admin."}
	handle(b, route{
		method: http.MethodGet, path: "/v1/people", id: "list-people", tag: "people", right: api.Admin,
		summary: "List people", description: "Who may sign in.", problems: map[api.Sort]string{api.Unsupported: noPeople},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.PersonList], error) {
		return answerOf(s.List(ctx))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/people", id: "add-person", tag: "people", right: api.Admin, status: http.StatusCreated,
		summary: "Add a person", description: "Once there is a person, every request needs a token or a session, also on the loopback.",
		problems: map[api.Sort]string{
			api.Conflict: "The name is taken, or the first person is no administrator.", api.Unsupported: noPeople, api.DiskFull: "The disk is full; nobody was added.",
		},
		bodyRequired: true, requestSample: json.RawMessage(`{"name":"anna","password":"correct horse battery","role":"operate"}`),
	}, func(ctx context.Context, _ *WithBody, req *api.NewPerson, wrong []api.Fault) (*answer[api.Person], error) {
		return answerOf(s.Add(ctx, req, wrong...))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/people/{name}", id: "get-person", tag: "people", right: api.AnyToken, scoped: true,
		summary: "Show a person", description: "For administrators, and for the person.", problems: map[api.Sort]string{api.NotFound: "There is no such person.", api.Unsupported: noPeople},
	}, func(ctx context.Context, in *PersonPath) (*answer[api.Person], error) {
		return answerOf(s.Get(ctx, in.Name))
	})
	asked(b, route{
		method: http.MethodPut, path: "/v1/people/{name}/rights", id: "set-person-rights", tag: "people", right: api.Admin,
		summary: "Give a person other rights", description: "At once, also in their sessions.",
		problems:     aboutPerson(map[api.Sort]string{api.Conflict: last[api.Conflict], api.WrongState: "The groups of the identity provider give this person their rights."}),
		bodyRequired: true, requestSample: json.RawMessage(`{"role":"read"}`),
	}, func(ctx context.Context, in *grantInput, req *api.PersonGrant, wrong []api.Fault) (*struct{}, error) {
		return nil, s.SetGrant(ctx, in.Name, req, in.Force, wrong...)
	})
	handle(b, route{
		method: http.MethodPost, path: "/v1/people/{name}/disable", id: "disable-person", tag: "people", right: api.Admin,
		summary: "Disable a person", description: "Their sessions end, and they sign in no more.", problems: aboutPerson(last),
	}, func(ctx context.Context, in *ForcedPerson) (*struct{}, error) {
		return nil, s.Disable(ctx, in.Name, in.Force)
	})
	handle(b, route{
		method: http.MethodPost, path: "/v1/people/{name}/enable", id: "enable-person", tag: "people", right: api.Admin,
		summary: "Enable a person", description: "They may sign in again.", problems: aboutPerson(nil),
	}, func(ctx context.Context, in *PersonPath) (*struct{}, error) {
		return nil, s.Enable(ctx, in.Name)
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/people/{name}", id: "remove-person", tag: "people", right: api.Admin,
		summary: "Remove a person", description: "With their sessions.", problems: aboutPerson(last),
	}, func(ctx context.Context, in *ForcedPerson) (*struct{}, error) {
		return nil, s.Remove(ctx, in.Name, in.Force)
	})
	proofs(b, s)
	sessions(b, s)
}

// proofs are the routes about what a person proves who they are with.
func proofs(b *builder, s admin.People) {
	provided := map[api.Sort]string{api.WrongState: "An identity provider signs this person in."}
	limited := func(r route) route {
		r.tag, r.right, r.scoped, r.problems = "people", api.AnyToken, true, aboutPerson(provided)
		return r
	}
	asked(b, limited(route{
		method: http.MethodPut, path: "/v1/people/{name}/password", id: "set-person-password",
		summary: "Set a password", description: "For administrators, and for the person, who gives the present one. The other sessions of the person end.",
		bodyRequired: true, requestSample: json.RawMessage(`{"password":"correct horse battery"}`),
	}), func(ctx context.Context, in *personBodyInput, req *api.NewPassword, wrong []api.Fault) (*struct{}, error) {
		return nil, s.SetPassword(ctx, in.Name, req, wrong...)
	})
	handle(b, limited(route{
		method: http.MethodPost, path: "/v1/people/{name}/totp", id: "new-person-totp",
		summary: "Make the secret of a second factor", description: "Nothing is changed: PUT it with a code to set it.",
	}), func(ctx context.Context, in *PersonPath) (*answer[api.NewTOTP], error) {
		return answerOf(s.NewTOTP(ctx, in.Name))
	})
	asked(b, limited(route{
		method: http.MethodPut, path: "/v1/people/{name}/totp", id: "set-person-totp",
		summary: "Set a second factor", description: "From now on a sign-in by password needs a code. The answer has new recovery codes, which are shown only once.",
		bodyRequired: true, requestSample: json.RawMessage(`{"secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP","code":"123456"}`),
	}), func(ctx context.Context, in *personBodyInput, req *api.EnrollTOTP, wrong []api.Fault) (*answer[api.RecoveryCodes], error) {
		return answerOf(s.EnrollTOTP(ctx, in.Name, req, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/people/{name}/totp", id: "remove-person-totp", tag: "people", right: api.Admin,
		summary: "Remove a second factor", description: "The password is enough again. The sessions of the person end.", problems: aboutPerson(nil),
	}, func(ctx context.Context, in *PersonPath) (*struct{}, error) {
		return nil, s.RemoveTOTP(ctx, in.Name)
	})
}

func sessions(b *builder, s admin.People) {
	unsupported := map[api.Sort]string{api.Unsupported: noPeople}
	handle(b, route{
		method: http.MethodGet, path: "/v1/sessions", id: "list-sessions", tag: "people", right: api.Admin,
		summary: "List sessions", description: "Of all people.", problems: unsupported,
	}, func(ctx context.Context, _ *struct{}) (*answer[api.SessionList], error) {
		return answerOf(s.Sessions(ctx, ""))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/sessions/{id}", id: "end-session", tag: "people", right: api.AnyToken, scoped: true,
		summary: "End a session", description: "Any for administrators, and one of their own for a person.",
		problems: map[api.Sort]string{api.NotFound: "There is no such session.", api.Unsupported: noPeople},
	}, func(ctx context.Context, in *sessionInput) (*struct{}, error) {
		return nil, s.EndSession(ctx, in.ID)
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/people/{name}/sessions", id: "list-person-sessions", tag: "people", right: api.AnyToken, scoped: true,
		summary: "List the sessions of a person", description: "For administrators, and for the person.", problems: unsupported,
	}, func(ctx context.Context, in *PersonPath) (*answer[api.SessionList], error) {
		return answerOf(s.Sessions(ctx, in.Name))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/people/{name}/sessions", id: "end-person-sessions", tag: "people", right: api.AnyToken, scoped: true,
		summary: "End the sessions of a person", description: "For administrators, and for the person.", problems: unsupported,
	}, func(ctx context.Context, in *PersonPath) (*answer[api.Ended], error) {
		return answerOf(s.EndSessions(ctx, in.Name))
	})
}
