package admin

import (
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/people"
)

type sessionKey struct{}

// InSession returns a context of a request of this session.
func InSession(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, sessionKey{}, id)
}

// SessionID returns the id of the session that asks; empty: none does.
func SessionID(ctx context.Context) string {
	id, _ := ctx.Value(sessionKey{}).(string)
	return id
}

// FindSession returns who asks by a session, and their rights as ParseGrant reads them, or holdfast.ErrNotFound. A
// request that does not count does not make the session live longer.
func (s *Service) FindSession(ctx context.Context, hash [32]byte, counts bool) (id, actor, rights string, err error) {
	if s.People == nil {
		return "", "", "", holdfast.ErrNotFound
	}
	k, rights, err := s.People.FindSession(ctx, hash, counts)
	if err == nil && k.Pending {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", "", "", err
	}
	return k.ID, api.User(k.Person), rights, nil
}

// Sessions returns the living sessions of a person; with an empty name those of all, for administrators.
func (s People) Sessions(ctx context.Context, name string) (list api.SessionList, err error) {
	if p := s.own(ctx, name); p != nil {
		return list, p
	}
	list.Sessions = []api.Session{}
	if err := s.People.EachSession(ctx, name, func(k *people.Session) {
		if !k.Ended && !k.Pending {
			list.Sessions = append(list.Sessions, api.Session{
				ID: k.ID, Person: k.Person, Via: k.Via, From: k.From, Created: instant(k.Created), Seen: instant(k.Seen), Until: instant(k.Until), Current: k.ID == SessionID(ctx),
			})
		}
	}); err != nil {
		return list, s.refuse(ctx, "list sessions", err)
	}
	return list, nil
}

// EndSession ends a session: any for administrators, and for a person one of their own. That of another is
// answered as one that is not kept.
func (s People) EndSession(ctx context.Context, id string) error {
	person, is := api.PersonOf(Actor(ctx))
	may := Granted(ctx)
	switch {
	case may.Can(api.Admin):
		person = ""
	case !is:
		return api.RoleLacking.Problem("this needs the right admin, or a session of one's own")
	}
	if s.People == nil {
		return noPeople()
	}
	err := s.People.EndSession(ctx, id, person)
	if errors.Is(err, holdfast.ErrNotFound) {
		return api.NotFound.Problem("there is no such session; it may have ended", api.Fault{Field: "id", Value: api.Clip(id), Problem: "is not the id of a session"})
	}
	if err != nil {
		return s.refuse(ctx, "end the session", err)
	}
	return nil
}

// EndSessions ends all sessions of a person.
func (s People) EndSessions(ctx context.Context, name string) (api.Ended, error) {
	if p := s.own(ctx, name); p != nil {
		return api.Ended{}, p
	}
	n, err := s.People.EndSessions(ctx, name)
	if err != nil {
		return api.Ended{}, s.refuse(ctx, "end the sessions", err)
	}
	return api.Ended{Ended: n}, nil
}
