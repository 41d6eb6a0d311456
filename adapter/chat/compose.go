package chat

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/notify"
)

// Limits of what the other sides accept. Where they count characters, unitsOf counts.
const (
	mostWebhook = 256 << 10 // bytes of a request; our limit
	mostTeams   = 27 << 10  // bytes of a request; Teams refuses more than 28 KB (H2)
	mostHeader  = 150       // characters of Slack's header
	mostSection = 3000      // characters of a section
	mostNtfy    = 4096      // bytes of a message
	mostGotify  = 32 << 10  // bytes of a message; our limit
	mostTitle   = 250       // bytes
	mostOrigin  = 256       // bytes of each field that says where it comes from
)

// compose makes the body of a request. It reports whether text was cut.
func (p *Poster) compose(n *notify.Notification, topic string) ([]byte, bool) {
	switch p.kind {
	case webhook:
		return event(n)
	case teams:
		return card(n)
	case slack:
		return blocks(n)
	case ntfy:
		return p.publication(n, topic)
	}
	return p.gotify(n)
}

// title returns the subject on one line; it is never empty.
func title(n *notify.Notification) string {
	for _, s := range []string{n.Subject, n.Type, n.List} {
		if s = line(s); s != "" {
			return s
		}
	}
	return "Notification"
}

// fact is one fact that is shown beside the text.
type fact struct{ Title, Value string }

// facts say where a notification comes from. The last one is its id.
func facts(n *notify.Notification) (list []fact) {
	o, at := &n.Origin, ""
	if t, ok := enqueued(n); ok {
		at = t.Format("2006-01-02 15:04:05 UTC")
	}
	for _, f := range []fact{{"Site", o.Site}, {"Instance", o.Instance}, {"Script", o.Script}, {"Time", at}, {"ID", string(n.ID)}} {
		if f.Value = clip(f.Value, mostOrigin); f.Value != "" {
			list = append(list, f)
		}
	}
	return list
}

// enqueued returns when the site took the notification, if the site says so. A clock may be so
// wrong that JSON cannot express the time.
func enqueued(n *notify.Notification) (time.Time, bool) {
	t := n.Origin.Enqueued.UTC()
	return t, !t.IsZero() && t.Year() > 0 && t.Year() < 10000
}

// encode returns JSON without HTML escapes: it is not put into a page.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // cannot happen: texts, numbers and valid JSON
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// hook is the body of a webhook, in the form of Standard Webhooks.
type hook struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      hookData  `json:"data"`
}

type hookData struct {
	NotificationID  string          `json:"notificationId"`
	List            string          `json:"list,omitempty"`
	Subject         string          `json:"subject"`
	Body            string          `json:"body"`
	Site            string          `json:"site,omitempty"`
	Instance        string          `json:"instance,omitempty"`
	Script          string          `json:"script,omitempty"`
	Execution       string          `json:"executionId,omitempty"`
	ParentExecution string          `json:"parentExecutionId,omitempty"`
	Enqueued        *time.Time      `json:"enqueued,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	Truncated       bool            `json:"truncated,omitempty"`
}

// event returns the body for a webhook. If it is too large, the text is cut at its end. If the data
// alone is too large, it is left out first, since half of it would not be JSON.
func event(n *notify.Notification) ([]byte, bool) {
	o := &n.Origin
	h := hook{Type: clip(n.Type, mostOrigin), Data: hookData{
		NotificationID: string(n.ID), List: clip(n.List, mostOrigin), Subject: line(n.Subject), Site: clip(o.Site, mostOrigin),
		Instance: clip(o.Instance, mostOrigin), Script: clip(o.Script, mostOrigin),
		Execution: clip(o.Execution, mostOrigin), ParentExecution: clip(o.ParentExecution, mostOrigin),
	}}
	if h.Type == "" {
		h.Type = "notification"
	}
	var known bool
	if h.Timestamp, known = enqueued(n); !known {
		h.Timestamp = time.Now().UTC()
	} else {
		h.Data.Enqueued = &h.Timestamp
	}
	subject, cutSubject := cut(h.Data.Subject, mostWebhook/8, bytesOf)
	h.Data.Subject, h.Data.Truncated = subject, cutSubject
	switch {
	case len(n.Data) == 0:
	case len(n.Data) <= mostWebhook/2 && utf8.Valid(n.Data) && json.Valid(n.Data):
		h.Data.Data = n.Data
	default:
		h.Data.Truncated = true
	}
	whole := func(text string) []byte {
		h.Data.Body = text
		return encode(&h)
	}
	text := clean(n.Body)
	body, truncated := fit(text, mostWebhook, whole)
	if truncated && !h.Data.Truncated {
		h.Data.Truncated = true
		body, _ = fit(text, mostWebhook, whole)
	}
	return body, h.Data.Truncated
}
