package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// cloudEventJSON is the content type of a payload that is a CloudEvent already.
const cloudEventJSON = "application/cloudevents+json"

// notificatie is a notification of the Notificaties API, as it stands in a payload.
type notificatie struct {
	Kanaal       string          `json:"kanaal"`
	Source       string          `json:"source"`
	HoofdObject  string          `json:"hoofdObject"`
	Resource     string          `json:"resource"`
	ResourceURL  string          `json:"resourceUrl"`
	Actie        string          `json:"actie"`
	Aanmaakdatum time.Time       `json:"aanmaakdatum"`
	Kenmerken    json.RawMessage `json:"kenmerken"`
}

// notificatieOf reads a payload, and reports whether it is a notification.
func notificatieOf(m *holdfast.Message) (n notificatie, ok bool) {
	if err := json.Unmarshal(m.Payload, &n); err != nil || !bytes.HasPrefix(n.Kenmerken, []byte("{")) {
		return n, false
	}
	return n, n.Kanaal != "" && n.Resource != "" && n.Actie != "" && n.HoofdObject != "" && n.ResourceURL != "" && !n.Aanmaakdatum.IsZero()
}

// cloudEvent returns the CloudEvent that Open Notificaties makes of a notification. Its id is that of the
// delivery, so it is the same in each attempt, and differs between subscribers.
func (n *notificatie) cloudEvent(m *holdfast.Message, id string) []byte {
	source := n.Source
	if source == "" {
		source = m.Source
	}
	var b []byte
	member := func(name, value string) {
		b = append(append(append(b, ',', '"'), name...), '"', ':')
		b = append(b, quoted(value)...)
	}
	member("id", id)
	member("source", source)
	member("specversion", "1.0")
	member("type", strings.Join([]string{"nl.overheid", n.Kanaal, n.Resource, n.Actie}, "."))
	member("datacontenttype", "application/json")
	if subject := n.ResourceURL[strings.LastIndexByte(n.ResourceURL, '/')+1:]; subject != "" {
		member("subject", subject)
	}
	member("time", n.Aanmaakdatum.UTC().Format(time.RFC3339))
	b = append(append(b, `,"data":`...), n.data()...)
	b[0] = '{'
	return append(b, '}')
}

// data returns the kenmerken with the hoofdObject, which wins over one of them that has its name.
func (n *notificatie) data() []byte {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(n.Kenmerken, &all); err != nil {
		all = nil // cannot be: it was read as an object
	}
	own := append([]byte(`"hoofdObject":`), quoted(n.HoofdObject)...)
	if _, twice := all["hoofdObject"]; twice {
		all["hoofdObject"] = quoted(n.HoofdObject)
		text, _ := json.Marshal(all) // cannot fail
		return text
	}
	open := bytes.TrimRight(bytes.TrimSuffix(bytes.TrimSpace(n.Kenmerken), []byte("}")), " \t\r\n")
	if len(all) > 0 {
		open = append(bytes.Clone(open), ',')
	}
	return append(append(bytes.Clone(open), own...), '}')
}

// quoted returns a text as JSON.
func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail: it is a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
