package notificaties

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// kanaal is a topic, as clients see it.
type kanaal struct {
	URL              string   `json:"url"`
	Naam             string   `json:"naam"`
	DocumentatieLink string   `json:"documentatieLink"`
	Filters          []string `json:"filters"`
}

// kanaalID returns the uuid of a kanaal. It follows from the name, so that all topics have one.
func kanaalID(naam string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:holdfast:topic:"+naam)).String()
}

func (s *Server) kanaalRoutes() []route {
	return []route{
		{path: "kanaal", suffix: true, methods: map[string]handler{http.MethodGet: s.listKanalen, http.MethodPost: s.createKanaal}},
		{path: "kanaal/{uuid}", suffix: true, methods: map[string]handler{
			http.MethodGet: s.showKanaal, http.MethodPut: s.putKanaal, http.MethodPatch: s.patchKanaal,
		}},
	}
}

func (s *Server) kanaalOf(r *http.Request, t *fanout.Topic) kanaal {
	return kanaal{s.link(r, "kanaal/"+kanaalID(t.Name)), t.Name, t.Documentation, append([]string{}, t.Attributes...)}
}

// kanalen returns the topics that are kanalen as they are now, at whatever node they were changed.
func (s *Server) kanalen(ctx context.Context) ([]fanout.Topic, error) {
	if err := s.Book.Renew(ctx); err != nil {
		return nil, err
	}
	all, err := s.Book.Topics(ctx)
	return slices.DeleteFunc(all, func(t fanout.Topic) bool { return t.Name == fanout.CloudEvents }), err
}

func (s *Server) listKanalen(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.allowed(r, Publish, Consume); err != nil {
		return err
	}
	if err := onlyQuery(r, "naam"); err != nil {
		return err
	}
	list, naam := []kanaal{}, r.URL.Query().Get("naam")
	if naam != "" { // a publisher looks for the kanaal that it made a moment ago, perhaps at another node
		t, found, err := s.Book.Topic(r.Context(), naam)
		if err != nil {
			return err
		}
		if found && naam != fanout.CloudEvents {
			list = append(list, s.kanaalOf(r, &t))
		}
		return write(w, http.StatusOK, list)
	}
	all, err := s.kanalen(r.Context())
	if err != nil {
		return err
	}
	for i := range all {
		list = append(list, s.kanaalOf(r, &all[i]))
	}
	return write(w, http.StatusOK, list)
}

func (s *Server) findKanaal(ctx context.Context, id string) (fanout.Topic, error) {
	all, err := s.kanalen(ctx)
	if err != nil {
		return fanout.Topic{}, err
	}
	i := slices.IndexFunc(all, func(t fanout.Topic) bool { return kanaalID(t.Name) == id })
	if i < 0 {
		return fanout.Topic{}, notFound()
	}
	return all[i], nil
}

func (s *Server) showKanaal(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.allowed(r, Publish, Consume); err != nil {
		return err
	}
	if err := onlyQuery(r); err != nil {
		return err
	}
	t, err := s.findKanaal(r.Context(), r.PathValue("uuid"))
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, s.kanaalOf(r, &t))
}

func (s *Server) createKanaal(w http.ResponseWriter, r *http.Request) error {
	c, err := s.allowed(r, Publish)
	if err != nil {
		return err
	}
	var t fanout.Topic
	err = s.readKanaal(r, &t, func(f *fields) {
		if t.Name, _ = f.text("naam", textRules{required: true, most: maxNaam}); t.Name != "" {
			f.checkNaam(t.Name)
		}
	})
	if err == nil {
		if _, known, lookErr := s.Book.Topic(r.Context(), t.Name); lookErr != nil {
			err = lookErr
		} else if known {
			err = taken()
		}
	}
	if err == nil {
		_, err = s.Book.Store().PutTopic(r.Context(), t, c.Actor())
		if errors.Is(err, holdfast.ErrState) { // another node was faster
			err = taken()
		}
		err = notStored(err)
	}
	if err = s.called(r, c, "create-kanaal", t.Name, err); err != nil {
		return err
	}
	out := s.kanaalOf(r, &t)
	w.Header().Set("Location", out.URL)
	return write(w, http.StatusCreated, out)
}

func taken() error {
	return invalid(InvalidParam{"naam", "unique", "Er bestaat al een kanaal met eenzelfde naam."})
}

// maxNaam is the longest name of a kanaal, in characters.
const maxNaam = 50

// checkNaam refuses what cannot be the name of a topic.
func (f *fields) checkNaam(naam string) {
	t := fanout.Topic{Name: naam}
	switch {
	case naam == fanout.CloudEvents:
		f.fault("naam", "invalid", "De naam "+naam+" is gereserveerd.")
	case t.Validate() != nil:
		f.fault("naam", "invalid", fmt.Sprintf("De naam %q kan geen kanaal hebben: letters, cijfers en . _ - : zijn toegestaan, een punt niet vooraan.", clip(naam)))
	}
}

// readKanaal reads a request. Its body takes no room afterwards, while the link is looked at.
func (s *Server) readKanaal(r *http.Request, t *fanout.Topic, naam func(f *fields)) error {
	if err := onlyQuery(r); err != nil {
		return err
	}
	f, leave, err := s.fields(r)
	if err != nil {
		return err
	}
	link := func() string {
		defer leave()
		naam(f)
		return f.kanaal(t)
	}()
	if link != "" && s.Fetch != nil {
		s.checkLink(r.Context(), f, link)
	}
	return f.err()
}

// kanaal reads what may change of a kanaal, and returns the link that is given. What is not given stays.
func (f *fields) kanaal(t *fanout.Topic) (link string) {
	link, ok := f.link("documentatieLink", textRules{blank: true, most: maxLink})
	if ok {
		t.Documentation = link
	}
	list, ok := f.list("filters", maxFilters)
	if !ok {
		return link
	}
	t.Attributes = []string{}
	for i, v := range list {
		name, ok := f.scalar(fmt.Sprintf("filters.%d", i), v, textRules{most: 100})
		if ok {
			t.Attributes = append(t.Attributes, name)
		}
	}
	return link
}

// Limits of a kanaal.
const (
	maxLink    = 200
	maxFilters = 100
)

// checkLink demands that a documentation is there.
func (s *Server) checkLink(ctx context.Context, f *fields, link string) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	switch status, _, err := s.Fetch(ctx, link, ""); {
	case err != nil:
		f.fault("documentatieLink", "bad-url", "De URL kan niet opgehaald worden: "+clip(err.Error()))
	case status != http.StatusOK:
		f.fault("documentatieLink", "bad-url", fmt.Sprintf("De URL gaf status %d.", status))
	}
}

// probeTime is how long a foreign server may take to answer while a client waits.
const probeTime = 10 * time.Second

func (s *Server) putKanaal(w http.ResponseWriter, r *http.Request) error {
	return s.changeKanaal(w, r, true)
}

func (s *Server) patchKanaal(w http.ResponseWriter, r *http.Request) error {
	return s.changeKanaal(w, r, false)
}

func (s *Server) changeKanaal(w http.ResponseWriter, r *http.Request, whole bool) error {
	c, err := s.allowed(r, Publish)
	if err != nil {
		return err
	}
	t, err := s.findKanaal(r.Context(), r.PathValue("uuid"))
	if err == nil {
		err = s.storeKanaal(r, &t, c, whole)
	}
	if err = s.called(r, c, "update-kanaal", t.Name, err); err != nil {
		return err
	}
	return write(w, http.StatusOK, s.kanaalOf(r, &t))
}

func (s *Server) storeKanaal(r *http.Request, t *fanout.Topic, c Client, whole bool) error {
	err := s.readKanaal(r, t, func(f *fields) {
		if naam, ok := f.text("naam", textRules{required: whole, most: maxNaam}); ok && naam != t.Name {
			f.fault("naam", "wijzigen-niet-toegelaten", "Dit veld mag niet gewijzigd worden.")
		}
	})
	if err != nil {
		return err
	}
	_, err = s.Book.Store().PutTopic(r.Context(), *t, c.Actor())
	return notStored(err)
}
