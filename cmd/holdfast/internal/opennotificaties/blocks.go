package opennotificaties

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Bounds of the upstream, in characters.
const (
	maxName   = 50
	maxFilter = 100
	maxValue  = 1000
	maxType   = 255
)

// needed reports a text that is missing or too long.
func (r *reader) needed(path, text string, most int) {
	if text == "" {
		r.wrong(path, "", "is missing", "write it")
	}
	r.most(path, text, most)
}

func (r *reader) most(path, text string, most int) {
	if n := utf8.RuneCountInString(text); n > most {
		r.wrong(path, text, fmt.Sprintf("has %d characters", n), fmt.Sprintf("use at most %d", most))
	}
}

func (r *reader) link(path, text string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		r.wrong(path, "", "is missing", "write a URL")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		if strings.Contains(text, "@") { // a password may stand before it
			text = ""
		}
		r.wrong(path, text, "is no http or https URL", "write one, such as https://zaken.example.nl/hook")
	case u.User != nil:
		u.User = nil
		r.wrong(path, u.String(), "holds a user or a password", "remove them, and set auth")
	}
}

func (r *reader) client(path string, n *yaml.Node) {
	var c Client
	r.mapping(setting.Keys{"identifier": r.text(&c.ID), "secret": r.secret(&c.Secret)})(path, n)
	r.needed(path+".identifier", c.ID, maxName)
	if c.Secret == "" {
		r.wrong(path+".secret", "", "is missing", "write it, or take it from a variable")
	}
	for i := range r.file.Clients {
		if r.file.Clients[i].ID == c.ID {
			r.note(n.Line, fmt.Sprintf("%s: %s is there twice; the last secret counts", path, c.ID))
			r.file.Clients[i] = c
			return
		}
	}
	r.file.Clients = append(r.file.Clients, c)
}

func (r *reader) channel(path string, n *yaml.Node) {
	c := Channel{Path: path}
	r.mapping(setting.Keys{"naam": r.text(&c.Name), "documentatie_link": given(r.text, &c.Documentation), "filters": func(path string, n *yaml.Node) {
		c.Filters = []string{}
		r.list(func(path string, n *yaml.Node) {
			var name string
			r.text(&name)(path, n)
			r.needed(path, name, maxFilter)
			c.Filters = append(c.Filters, name)
		})(path, n)
	}})(path, n)
	r.needed(path+".naam", c.Name, maxName)
	if c.Documentation != nil && *c.Documentation != "" {
		r.link(path+".documentatie_link", *c.Documentation)
	}
	for i := range r.file.Channels {
		if old := &r.file.Channels[i]; old.Name == c.Name {
			r.note(n.Line, fmt.Sprintf("%s: %s is there twice; its last values count", path, c.Name))
			if c.Documentation = cmp.Or(c.Documentation, old.Documentation); c.Filters == nil {
				c.Filters = old.Filters
			}
			*old = c
			return
		}
	}
	r.file.Channels = append(r.file.Channels, c)
}

func (r *reader) schedule(path string, n *yaml.Node) {
	var s Schedule
	var factor, most int
	var own string
	r.mapping(setting.Keys{
		"notification_delivery_max_retries": r.whole(&s.Retries), "notification_delivery_retry_backoff": r.whole(&factor),
		"notification_delivery_retry_backoff_max": r.whole(&most), "notification_delivery_base_factor": r.whole(&s.Base),
		"notifications_api_service_identifier": r.text(&own),
	})(path, n)
	s.Factor, s.Cap = time.Duration(factor)*time.Second, time.Duration(most)*time.Second
	if s != (Schedule{}) {
		r.file.Schedule = &s
	}
}

func (r *reader) subscription(path string, n *yaml.Node) {
	s := Subscription{Path: path}
	var id string
	a := auth{kind: "api_key"}
	r.mapping(setting.Keys{
		"uuid": r.text(&id), "callback_url": r.text(&s.URL), "send_cloudevents": given(r.boolean, &s.CloudEvents),
		"auth": given(r.secret, &a.whole), "auth_type": r.text(&a.kind), "auth_client_id": r.text(&a.client), "secret": r.secret(&a.secret),
		"oauth2_token_url": r.text(&a.url), "oauth2_scope": r.text(&a.scope),
		"kanalen": r.list(func(path string, n *yaml.Node) { r.group(&s, path, n) }), "cloudevent_filters": r.list(func(path string, n *yaml.Node) { r.typed(&s, path, n) }),
	})(path, n)
	s.ID = canonical(id)
	if s.ID == "" {
		r.wrong(path+".uuid", id, "is no UUID", "write one, such as 02907e89-1ba8-43e9-a86c-d0534d461316")
	}
	r.link(path+".callback_url", s.URL)
	s.Authorization = r.authorization(path, &a)
	if len(s.Groups)+len(s.Types) == 0 && !r.Bad[path+".kanalen"] && !r.Bad[path+".cloudevent_filters"] {
		r.wrong(path, s.ID, "has neither kanalen nor cloudevent_filters", "write one of them: it gets nothing without")
	}
	for i := range r.file.Subscriptions {
		if old := &r.file.Subscriptions[i]; old.ID == s.ID && s.ID != "" {
			r.note(n.Line, fmt.Sprintf("%s: %s is there twice; its last values count, and what both ask for", path, s.ID))
			for _, g := range s.Groups {
				r.addGroup(old, n.Line, g)
			}
			for _, t := range s.Types {
				r.addType(old, n.Line, path, t)
			}
			s.Groups, s.Types = old.Groups, old.Types
			s.Authorization, s.CloudEvents = cmp.Or(s.Authorization, old.Authorization), cmp.Or(s.CloudEvents, old.CloudEvents)
			*old = s
			return
		}
	}
	r.file.Subscriptions = append(r.file.Subscriptions, s)
}

// canonical returns a UUID in its usual form; empty: it is none.
func canonical(id string) string {
	digits := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(strings.ToLower(id), "urn:uuid:"), "{}"), "-", "")
	if b, err := hex.DecodeString(digits); err != nil || len(b) != 16 {
		return ""
	}
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

func (r *reader) group(s *Subscription, path string, n *yaml.Node) {
	g := Group{Path: path}
	r.mapping(setting.Keys{"naam": r.text(&g.Channel), "filters": r.texts(&g.Filters)})(path, n)
	r.needed(path+".naam", g.Channel, maxName)
	r.values(path, g.Filters)
	r.addGroup(s, n.Line, g)
}

func (r *reader) values(path string, filters map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		at := setting.Join(path+".filters", name)
		r.needed(at, name, maxFilter)
		r.most(at, filters[name], maxValue)
	}
}

// addGroup adds a group. The upstream keeps one group for each channel of a subscription: those of one
// channel in a file are one, and all their filters must fit.
func (r *reader) addGroup(s *Subscription, line int, g Group) {
	for i := range s.Groups {
		if old := &s.Groups[i]; old.Channel == g.Channel {
			r.note(line, fmt.Sprintf("%s: %s is there twice for this subscription; as at Open Notificaties, the filters of both must fit. If those of one should do, set it over the API", g.Path, g.Channel))
			old.Filters = merged(old.Filters, g.Filters)
			return
		}
	}
	s.Groups = append(s.Groups, g)
}

func merged(old, given map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, old)
	maps.Copy(all, given)
	return all
}

func (r *reader) typed(s *Subscription, path string, n *yaml.Node) {
	var t Type
	if n.Kind == yaml.ScalarNode {
		r.text(&t.Contains)(path, n)
	} else {
		r.mapping(setting.Keys{"type_substring": r.text(&t.Contains), "filters": r.texts(&t.Filters)})(path, n)
	}
	r.needed(path, t.Contains, maxType)
	r.values(path, t.Filters)
	r.addType(s, n.Line, path, t)
}

func (r *reader) addType(s *Subscription, line int, path string, t Type) {
	for i := range s.Types {
		if old := &s.Types[i]; old.Contains == t.Contains {
			if len(old.Filters)+len(t.Filters) > 0 {
				r.note(line, fmt.Sprintf("%s: %s is there twice for this subscription; the filters of both must fit", path, t.Contains))
			}
			old.Filters = merged(old.Filters, t.Filters)
			return
		}
	}
	s.Types = append(s.Types, t)
}
