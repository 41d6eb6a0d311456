package chat

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/notify"
)

// What the other sides take. Where they count characters, unitsOf does.
const (
	mostWebhook = 256 << 10 // bytes of a request; ours
	mostTeams   = 27 << 10  // bytes of a request; they refuse more than 28 KB (H2)
	mostHeader  = 150       // characters of Slack's header
	mostSection = 3000      // and of its section
	mostNtfy    = 4096      // bytes of a message
	mostGotify  = 32 << 10  // bytes of a message; ours
	mostTitle   = 250       // bytes
	mostOrigin  = 256       // bytes of each thing that says where it comes from
)

// compose makes the body of a request, and says whether text was cut.
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

// title is the subject on one line, and never empty.
func title(n *notify.Notification) string {
	for _, s := range []string{n.Subject, n.Type, n.List} {
		if s = line(s); s != "" {
			return s
		}
	}
	return "Notification"
}

// fact is one thing that people are told beside the text.
type fact struct{ Title, Value string }

// facts are where a notification comes from; the last one is its id.
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

// enqueued is when the site took the notification, where it says so: a clock
// may be so wrong that JSON has no form for it.
func enqueued(n *notify.Notification) (time.Time, bool) {
	t := n.Origin.Enqueued.UTC()
	return t, !t.IsZero() && t.Year() > 0 && t.Year() < 10000
}

// encode is JSON as it is read: nobody puts it into a page.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // cannot be: texts, numbers, and JSON that is valid
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// hook is the body of a webhook, as Standard Webhooks has it.
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

// event is what a webhook gets. What does not fit loses the end of its text;
// where the data alone is too large, that goes first, as half of it is none.
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
