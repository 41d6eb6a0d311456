package notificaties

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// publishRoutes are those of publishers.
func (s *Server) publishRoutes() []route {
	return []route{
		{path: "notificaties", suffix: true, methods: map[string]handler{http.MethodPost: s.postNotificatie}},
		{path: "cloudevents", suffix: true, media: fanout.CloudEventJSON, methods: map[string]handler{http.MethodPost: s.postCloudEvent}},
	}
}

// deliveryMode is the form of requests to a subscriber, as the adapter names it.
func deliveryMode(cloudEvents bool) string {
	if cloudEvents {
		return "notificaties"
	}
	return "plain"
}

// notificatie is a notification with its members in the order in which they are written.
type notificatie struct {
	Kanaal       string            `json:"kanaal"`
	Source       string            `json:"source,omitempty"`
	HoofdObject  string            `json:"hoofdObject"`
	Resource     string            `json:"resource"`
	ResourceURL  string            `json:"resourceUrl"`
	Actie        string            `json:"actie"`
	Aanmaakdatum string            `json:"aanmaakdatum"` // see echoed and delivered
	Kenmerken    map[string]string `json:"kenmerken"`

	at time.Time
}

// postNotificatie stores a notification with a message for each abonnement that it is for.
func (s *Server) postNotificatie(w http.ResponseWriter, r *http.Request) error {
	c, err := s.allowed(r, Publish)
	if err != nil {
		return err
	}
	f, leave, err := s.fields(r)
	if err != nil {
		return err
	}
	defer leave()
	n, err := s.publishNotificatie(r, f, &c)
	if p, ok := errors.AsType[*Problem](err); ok && s.PlainFaults && len(p.InvalidParams) > 0 {
		return write(w, p.Status, p.plain())
	}
	if err != nil {
		return err
	}
	n.Aanmaakdatum = echoed(n.at)
	return write(w, http.StatusCreated, n)
}

func (s *Server) publishNotificatie(r *http.Request, f *fields, c *Client) (*notificatie, error) {
	n, err := s.readNotificatie(f)
	if err != nil {
		return nil, err
	}
	e, err := n.event(c)
	if err == nil {
		e.ID, err = keyOf(r)
	}
	if err == nil {
		_, err = s.Publisher.Publish(r.Context(), e)
	}
	return n, notPublished(err)
}

// keyOf returns the idempotency key of a request; empty: it has none. It may stand in quotes.
func keyOf(r *http.Request) (holdfast.ID, error) {
	const header = "Idempotency-Key"
	key := r.Header.Get(header)
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		key = strings.TrimSuffix(quoted, `"`)
	}
	if key == "" {
		return "", nil
	}
	id, err := holdfast.ParseID(key)
	if err != nil {
		return "", invalid(InvalidParam{header, "invalid", "De sleutel heeft 1 tot 128 zichtbare ASCII-tekens, zonder spaties."})
	}
	return id, nil
}

// notPublished returns why an event was not stored.
func notPublished(err error) error {
	switch {
	case errors.Is(err, holdfast.ErrConflict):
		return problem(http.StatusConflict, "Conflict", "conflict", "Er is een conflict.", "Dit bericht is al bekend met een andere inhoud.")
	case errors.Is(err, holdfast.ErrNotFound):
		return noKanaal()
	}
	return notStored(err)
}

// Limits of a notification, in characters.
const (
	maxWord      = 100
	maxMemberURL = 2048
)

func noKanaal() error {
	return invalid(InvalidParam{"kanaal", "message_kanaal", "Er bestaat geen kanaal met deze naam."})
}

// readNotificatie reads a notification.
func (s *Server) readNotificatie(f *fields) (*notificatie, error) {
	n := &notificatie{Kenmerken: map[string]string{}}
	word := textRules{required: true, most: maxWord}
	n.Kanaal, _ = f.text("kanaal", textRules{required: true, most: maxNaam})
	n.Source, _ = f.text("source", textRules{most: maxWord})
	n.HoofdObject = f.memberURL("hoofdObject", s.StrictHosts)
	n.Resource, _ = f.text("resource", word)
	n.ResourceURL = f.memberURL("resourceUrl", s.StrictHosts)
	n.Actie, _ = f.text("actie", word)
	if text, ok := f.text("aanmaakdatum", textRules{required: true}); ok {
		if n.at, ok = instant(text); !ok {
			f.fault("aanmaakdatum", "invalid", "Geen geldige datum en tijd: schrijf bijvoorbeeld 2025-01-31T12:00:00Z.")
		} else if n.at.After(time.Now().Add(s.Leeway)) {
			f.fault("aanmaakdatum", "future_not_allowed", "De datum mag niet in de toekomst liggen.")
		}
	}
	if all := f.texts("kenmerken", textRules{blank: true, most: maxValue}); all != nil {
		n.Kenmerken = all
	}
	return n, f.err()
}

// suits holds a notification to its kanaal.
func (n *notificatie) suits(t *fanout.Topic) error {
	switch {
	case n.Kanaal == fanout.CloudEvents:
		return noKanaal()
	case !consistent(t.Attributes, n.Kenmerken):
		return invalid(InvalidParam{"kenmerken", "kenmerken_inconsistent", "De kenmerken komen niet overeen met de filters van het kanaal."})
	}
	return nil
}

// event returns what is stored of a notification. Its data are the body that abonnementen get.
func (n *notificatie) event(c *Client) (fanout.Event, error) {
	n.Aanmaakdatum = delivered(n.at)
	data, err := marshal(n)
	if err != nil {
		return fanout.Event{}, err
	}
	e := fanout.Event{
		Source: sourceOf(n.Source, c), Topic: n.Kanaal, Type: n.eventType(), Subject: lastPart(n.ResourceURL), Time: n.at,
		Attributes: map[string]string{}, Data: data, Actor: c.Actor(), Suits: n.suits,
	}
	maps.Copy(e.Attributes, n.Kenmerken)
	e.Attributes[filter.Action], e.Attributes[filter.Resource] = n.Actie, n.Resource
	if n.Source == "" {
		e.Fits = func(sub *fanout.Subscription) error {
			if sub.Abonnement != nil && sub.Abonnement.SendCloudEvents {
				return invalid(InvalidParam{"source", "required", "Een abonnement wil dit bericht als CloudEvent: dan is source vereist."})
			}
			return nil
		}
	}
	return e, nil
}

// eventType is the type of the CloudEvent that a notification may become, or its kanaal where that is none.
func (n *notificatie) eventType() string {
	t := strings.Join([]string{"nl.overheid", n.Kanaal, n.Resource, n.Actie}, ".")
	if len(t) > maxType || strings.ContainsFunc(t, unicode.IsControl) {
		return n.Kanaal
	}
	return t
}

const maxType = 1000 // bytes of the type of an event

func lastPart(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }
