package client

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// People offers those who may sign in, and their sessions.
type People struct{ c *Client }

// People returns the people of the node.
func (c *Client) People() People { return People{c} }

func person(name string) string { return "/v1/people/" + api.Segment(name) }

// List returns all people by name.
func (p People) List(ctx context.Context) ([]api.Person, error) {
	list, err := get[api.PersonList](ctx, p.c, "/v1/people", nil)
	return list.People, err
}

// Add adds a person.
func (p People) Add(ctx context.Context, n api.NewPerson) (api.Person, error) {
	return send[api.Person](ctx, p.c, http.MethodPost, "/v1/people", nil, n)
}

// Get returns a person.
func (p People) Get(ctx context.Context, name string) (api.Person, error) {
	return get[api.Person](ctx, p.c, person(name), nil)
}

// SetRights gives a person other rights. It leaves the last administrator alone, unless force is set.
func (p People) SetRights(ctx context.Context, name string, g api.PersonGrant, force bool) error {
	_, err := send[struct{}](ctx, p.c, http.MethodPut, person(name)+"/rights", flag("force", force), g)
	return err
}

// SetPassword sets a password; the sessions of the person end.
func (p People) SetPassword(ctx context.Context, name string, n api.NewPassword) error {
	_, err := send[struct{}](ctx, p.c, http.MethodPut, person(name)+"/password", nil, n)
	return err
}

// Disable ends the sessions of a person, who signs in no more. It leaves the last administrator alone, unless force is set.
func (p People) Disable(ctx context.Context, name string, force bool) error {
	return p.c.do(ctx, http.MethodPost, person(name)+"/disable", flag("force", force), nil, nil)
}

// Enable lets a person sign in again.
func (p People) Enable(ctx context.Context, name string) error {
	return p.c.do(ctx, http.MethodPost, person(name)+"/enable", nil, nil, nil)
}

// Remove removes a person. It leaves the last administrator alone, unless force is set.
func (p People) Remove(ctx context.Context, name string, force bool) error {
	return p.c.do(ctx, http.MethodDelete, person(name), flag("force", force), nil, nil)
}

// NewTOTP makes the secret of a second factor, which is not in use before SetTOTP.
func (p People) NewTOTP(ctx context.Context, name string) (out api.NewTOTP, err error) {
	err = p.c.do(ctx, http.MethodPost, person(name)+"/totp", nil, nil, &out)
	return out, err
}

// SetTOTP sets a second factor, and returns recovery codes, only this once.
func (p People) SetTOTP(ctx context.Context, name string, e api.EnrollTOTP) (api.RecoveryCodes, error) {
	return send[api.RecoveryCodes](ctx, p.c, http.MethodPut, person(name)+"/totp", nil, e)
}

// RemoveTOTP removes a second factor.
func (p People) RemoveTOTP(ctx context.Context, name string) error {
	return p.c.do(ctx, http.MethodDelete, person(name)+"/totp", nil, nil, nil)
}

// Sessions returns the sessions of a person; with an empty name those of all.
func (p People) Sessions(ctx context.Context, name string) ([]api.Session, error) {
	path := "/v1/sessions"
	if name != "" {
		path = person(name) + "/sessions"
	}
	list, err := get[api.SessionList](ctx, p.c, path, nil)
	return list.Sessions, err
}

// EndSession ends a session.
func (p People) EndSession(ctx context.Context, id string) error {
	return p.c.do(ctx, http.MethodDelete, "/v1/sessions/"+api.Segment(id), nil, nil, nil)
}

// EndSessions ends the sessions of a person, and returns how many there were.
func (p People) EndSessions(ctx context.Context, name string) (int64, error) {
	var out api.Ended
	err := p.c.do(ctx, http.MethodDelete, person(name)+"/sessions", nil, nil, &out)
	return out.Ended, err
}
