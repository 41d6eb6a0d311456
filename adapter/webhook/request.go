package webhook

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// request is what an attempt sends, but for its authorization.
type request struct {
	url    *url.URL
	header http.Header
	body   []byte
}

func permanent(code, format string, args ...any) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: code, Err: fmt.Errorf(format, args...)}
}

// compose makes the request of an attempt. Failures are permanent: another attempt would be the same.
func compose(t *Target, m *holdfast.Message, now time.Time) (*request, *holdfast.Failure) {
	u, err := parseURL(t.URL)
	if err != nil {
		return nil, permanent("bad_url", "the URL of the subscriber %w", err)
	}
	r := &request{url: u, header: make(http.Header, 8+len(t.Headers)), body: m.Payload}
	id := string(m.ID)
	if resent := m.Headers[HeaderID]; resent != "" {
		id = resent
	}
	for name, value := range t.Headers {
		if reserved(name) || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, permanent("bad_header", "the header %q of the subscription cannot be sent", name)
		}
		r.header.Set(name, value)
	}
	if r.header.Get("User-Agent") == "" {
		r.header.Set("User-Agent", "holdfast")
	}
	r.header.Set("Content-Type", contentType(m))
	if kind, _, _ := mime.ParseMediaType(contentType(m)); kind != cloudEventJSON { // else it goes as it is
		r.shape(t.Mode, m, id)
	}
	holdfast.TraceOf(m.Headers).Each(r.header.Set)
	if f := r.sign(t, id, now); f != nil {
		return nil, f
	}
	return r, nil
}

// shape gives the request the form of a mode.
func (r *request) shape(mode Mode, m *holdfast.Message, id string) {
	switch mode {
	case Binary:
		for name, value := range attributes(m, id) {
			r.header.Set(attribute+name, escape(value))
		}
	case Structured:
		r.header.Set("Content-Type", cloudEventJSON)
		r.body = structured(m, id)
	case Notificaties:
		r.header.Set("Content-Type", cloudEventJSON)
		if n, ok := notificatieOf(m); ok {
			r.body = n.cloudEvent(m, id)
		} else {
			r.body = structured(m, id)
		}
	case Plain:
	}
}

// sign adds the headers of Standard Webhooks. The id is there without a secret too.
func (r *request) sign(t *Target, id string, now time.Time) *holdfast.Failure {
	var signers []standardwebhooks.Signer
	for i := range t.Secrets {
		if s := &t.Secrets[i]; s.Until.IsZero() || now.Before(s.Until) {
			signer, err := standardwebhooks.NewSigner(s.Value)
			if err != nil {
				return permanent("bad_secret", "a secret of the subscription cannot sign: %w", err)
			}
			signers = append(signers, signer)
		}
	}
	switch {
	case !httpguts.ValidHeaderFieldValue(id):
		return permanent("bad_id", "the id cannot be sent in a header")
	case len(signers) == 0 && len(t.Secrets) > 0:
		return permanent("bad_secret", "all secrets of the subscription have ended")
	case len(signers) == 0:
		r.header.Set(HeaderID, id)
	case strings.Contains(id, "."):
		return permanent("bad_id", "an id with a dot cannot be signed: what is signed could be read in two ways")
	default:
		standardwebhooks.Sign(r.header, id, now, r.body, signers...)
	}
	return nil
}

func contentType(m *holdfast.Message) string {
	if kind := m.Headers[HeaderContentType]; kind != "" && httpguts.ValidHeaderFieldValue(kind) {
		return kind
	}
	return "application/json"
}

// attributes returns the attributes of a CloudEvent by name, without that of its content type.
func attributes(m *holdfast.Message, id string) map[string]string {
	all := map[string]string{"specversion": "1.0", "id": id, "source": m.Source, "type": m.Endpoint}
	for name, value := range m.Headers {
		if name, is := strings.CutPrefix(name, attribute); is && isAttribute(name) {
			all[name] = value
		}
	}
	return all
}

// isAttribute reports whether a name fits an attribute that the message may set.
func isAttribute(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == "" && name != "data" && name != "datacontenttype"
}

// escape writes the value of an attribute as a header carries it (HTTP protocol binding, 3.1.3.2).
func escape(value string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// structured returns the document of a CloudEvent (JSON event format). The payload stands in it byte
// by byte, if it is JSON: digits of numbers, order of keys and spaces stay.
func structured(m *holdfast.Message, id string) []byte {
	var b []byte
	member := func(name, value string) {
		b = append(append(b, `,"`+name+`":`...), quoted(value)...)
	}
	all := attributes(m, id)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		member(name, all[name])
	}
	kind := contentType(m)
	member("datacontenttype", kind)
	switch {
	case len(m.Payload) == 0:
	case isJSON(kind) && json.Valid(m.Payload):
		b = append(append(b, `,"data":`...), m.Payload...)
	default:
		member("data_base64", base64.StdEncoding.EncodeToString(m.Payload))
	}
	b[0] = '{'
	return append(b, '}')
}

func isJSON(kind string) bool {
	kind, _, err := mime.ParseMediaType(kind)
	return err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}
