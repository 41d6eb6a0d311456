package notificaties

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// abonnement is a subscription, as clients see it. Its auth is never shown.
type abonnement struct {
	URL               string             `json:"url"`
	CallbackURL       string             `json:"callbackUrl"`
	Kanalen           []filterGroup      `json:"kanalen"`
	SendCloudEvents   bool               `json:"sendCloudevents"`
	CloudEventFilters []cloudEventFilter `json:"cloudeventFilters"`
}

type filterGroup struct {
	Filters map[string]string `json:"filters"`
	Naam    string            `json:"naam"`
}

type cloudEventFilter struct {
	TypeSubstring string            `json:"typeSubstring"`
	Filters       map[string]string `json:"filters"`
}

func (s *Server) abonnementRoutes() []route {
	return []route{
		{path: "abonnement", suffix: true, methods: map[string]handler{http.MethodGet: s.listAbonnementen, http.MethodPost: s.createAbonnement}},
		{path: "abonnement/{uuid}", suffix: true, methods: map[string]handler{
			http.MethodGet: s.showAbonnement, http.MethodPut: s.putAbonnement, http.MethodPatch: s.patchAbonnement, http.MethodDelete: s.deleteAbonnement,
		}},
	}
}

// abonnementOf shows a subscription that has an abonnement. All names are in camel case, also those that an import or
// an operator has given otherwise.
func (s *Server) abonnementOf(r *http.Request, one *fanout.Subscription) abonnement {
	a := one.Abonnement
	out := abonnement{
		URL: s.link(r, "abonnement/"+one.ID), CallbackURL: one.URL, SendCloudEvents: a.SendCloudEvents,
		Kanalen: make([]filterGroup, len(a.Kanalen)), CloudEventFilters: make([]cloudEventFilter, len(a.CloudEventFilters)),
	}
	given := func(filters map[string]string) map[string]string {
		keyed := make(map[string]string, len(filters))
		for _, name := range slices.Sorted(maps.Keys(filters)) {
			keyed[filter.Key(name)] = filters[name]
		}
		return keyed
	}
	for i, g := range a.Kanalen {
		out.Kanalen[i] = filterGroup{given(g.Filters), g.Naam}
	}
	for i, g := range a.CloudEventFilters {
		out.CloudEventFilters[i] = cloudEventFilter{g.TypeSubstring, given(g.Filters)}
	}
	return out
}

func (s *Server) listAbonnementen(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.allowed(r, Consume, Publish); err != nil {
		return err
	}
	if err := onlyQuery(r); err != nil {
		return err
	}
	if err := s.Book.Renew(r.Context()); err != nil {
		return err
	}
	all, err := s.Book.Subscriptions(r.Context())
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(one fanout.Subscription) bool { return one.Abonnement == nil })
	slices.SortFunc(all, func(a, b fanout.Subscription) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	list := make([]abonnement, len(all))
	for i := range all {
		list[i] = s.abonnementOf(r, &all[i])
	}
	return write(w, http.StatusOK, list)
}

// findAbonnement returns an abonnement as it is now, at whatever node it was changed.
func (s *Server) findAbonnement(ctx context.Context, id string) (fanout.Subscription, error) {
	if err := s.Book.Renew(ctx); err != nil {
		return fanout.Subscription{}, err
	}
	one, found, err := s.Book.Subscription(ctx, id)
	if err == nil && (!found || one.Abonnement == nil) {
		err = notFound()
	}
	return one, err
}

func (s *Server) showAbonnement(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.allowed(r, Consume, Publish); err != nil {
		return err
	}
	if err := onlyQuery(r); err != nil {
		return err
	}
	one, err := s.findAbonnement(r.Context(), r.PathValue("uuid"))
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, s.abonnementOf(r, &one))
}

func (s *Server) createAbonnement(w http.ResponseWriter, r *http.Request) error {
	c, err := s.allowed(r, Consume)
	if err != nil {
		return err
	}
	one := fanout.Subscription{ID: string(holdfast.NewID())}
	one.Abonnement = &fanout.Abonnement{Owner: c.ID}
	if err = s.room(r, &c); err == nil {
		err = s.changeAbonnement(r, &one, c, http.MethodPost)
	}
	if err = s.called(r, c, "create-abonnement", one.ID, err); err != nil {
		return err
	}
	out := s.abonnementOf(r, &one)
	w.Header().Set("Location", out.URL)
	return write(w, http.StatusCreated, out)
}

// room refuses a client that has as many abonnementen as it may have.
func (s *Server) room(r *http.Request, c *Client) error {
	if s.Most == 0 {
		return nil
	}
	if err := s.Book.Renew(r.Context()); err != nil {
		return err
	}
	if s.Book.Owned(c.ID) >= s.Most {
		return invalid(InvalidParam{whole, "max_abonnementen", fmt.Sprintf("Deze applicatie heeft al %d abonnementen: verwijder er eerst een.", s.Most)})
	}
	return nil
}

func (s *Server) putAbonnement(w http.ResponseWriter, r *http.Request) error {
	return s.replaceAbonnement(w, r, http.MethodPut)
}

func (s *Server) patchAbonnement(w http.ResponseWriter, r *http.Request) error {
	return s.replaceAbonnement(w, r, http.MethodPatch)
}

func (s *Server) replaceAbonnement(w http.ResponseWriter, r *http.Request, method string) error {
	c, err := s.allowed(r, Consume)
	if err != nil {
		return err
	}
	one, err := s.ownAbonnement(r, c)
	if err == nil {
		err = s.changeAbonnement(r, &one, c, method)
	}
	if err = s.called(r, c, "update-abonnement", r.PathValue("uuid"), err); err != nil {
		return err
	}
	return write(w, http.StatusOK, s.abonnementOf(r, &one))
}

// ownAbonnement returns an abonnement that the client may change.
func (s *Server) ownAbonnement(r *http.Request, c Client) (fanout.Subscription, error) {
	one, err := s.findAbonnement(r.Context(), r.PathValue("uuid"))
	if err == nil && one.Abonnement.Owner != c.ID {
		err = forbidden("permission_denied", "Dit abonnement is van een andere applicatie.")
	}
	return one, err
}

func (s *Server) deleteAbonnement(w http.ResponseWriter, r *http.Request) error {
	c, err := s.allowed(r, Consume)
	if err != nil {
		return err
	}
	one, err := s.ownAbonnement(r, c)
	if err == nil {
		err = onlyQuery(r)
	}
	if err == nil {
		err = s.Book.Store().DeleteSubscription(r.Context(), one.ID, one.Version, c.Actor())
		if errors.Is(err, holdfast.ErrNotFound) {
			err = notFound()
		}
	}
	if err = s.called(r, c, "delete-abonnement", r.PathValue("uuid"), notStored(err)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// changeAbonnement takes over what a client says about an abonnement, after its callback was probed, and
// stores it.
func (s *Server) changeAbonnement(r *http.Request, one *fanout.Subscription, c Client, method string) error {
	next := *one.Abonnement // never change what the book has
	asked, err := s.readAbonnement(r, &next, method)
	if err != nil {
		return err
	}
	probe, err := s.direct(one, asked, next.SendCloudEvents)
	if err == nil && asked.groups {
		err = one.Ask(&next)
	}
	if err == nil && probe {
		err = s.probe(r.Context(), one)
	}
	if err != nil {
		return notStored(err)
	}
	_, err = s.Book.Store().PutSubscription(r.Context(), *one, c.Actor())
	return notStored(err)
}
