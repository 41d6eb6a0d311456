package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// frame is what a template gets: the page's own data, and what is around each page. It belongs to one answer.
type frame struct {
	Title, Node, Version, Environment, Tone string

	Rail []entry
	Who  string // who asks; empty: nobody knows
	// Person is the name of the person who asks, if one does.
	Person string
	preferences
	Here string // the path of this page with its filters, for forms that come back to it
	Live bool
	Said *notice
	Data any

	may   api.Grant
	now   time.Time
	asked url.Values
}

// Asked returns the value of a filter, as this page was asked for.
func (f *frame) Asked(name string) string { return f.asked.Get(name) }

// entry is a line of the navigation.
type entry struct {
	Name, Icon, Href string
	Current          bool
}

// notice tells what came of a form.
type notice struct{ Tone, Title, Text string }

// rail lists the entries of the navigation: its name, its icon, the path of its page, the right without which it is not shown.
func rail() [][4]string {
	return [][4]string{
		{"Overview", "home", "", ""},
		{"Messages", "mail", "messages", ""},
		{"Notifications", "bell", "notifications", ""},
		{"Parked", "flag", "parked", ""},
		{"Destinations", "out", "destinations", ""},
		{"Channels", "send", "channels", ""},
		{"Lists", "people", "lists", ""},
		{"Bulk actions", "list", "bulk", ""},
		{"Events", "bolt", "events", ""},
		{"Subscriptions", "user", "subscriptions", ""},
		{"Sites", "site", "sites", ""},
		{"Site calls", "copy", "site-calls", ""},
		{"Health", "check", "health", ""},
		{"Activity", "clock", "activity", ""},
		{"Audit", "shield", "audit", ""},
		{"People", "people", "people", string(api.Admin)},
		{"Settings", "gear", "settings", ""},
	}
}

func (p *Pages) frame(r *http.Request, v *view) *frame {
	f := &frame{
		Title: v.title, Node: p.Name, Version: p.Program(), Environment: p.Environment, Tone: p.Tone,
		preferences: preferencesOf(r), Here: p.here(r), Data: v.data, now: time.Now(),
		Live: v.live && r.Method == http.MethodGet, // what came of a form is not swapped away
		Said: v.said, asked: r.URL.Query(),
	}
	if v.bare {
		return f
	}
	f.Who, f.may = admin.Actor(r.Context()), admin.Granted(r.Context())
	f.Person, _ = personOf(r)
	for _, e := range rail() {
		if e[3] != "" && !f.Can(e[3]) {
			continue
		}
		f.Rail = append(f.Rail, entry{Name: e[0], Icon: e[1], Href: p.link() + e[2], Current: e[0] == v.rail})
	}
	return f
}

// personOf returns the person who asks, if one does.
func personOf(r *http.Request) (name string, is bool) {
	if name, is = api.PersonOf(admin.Actor(r.Context())); !is {
		name = ""
	}
	return name, is
}

// here returns the path of the page that a request asks for, or that its form stood on.
func (p *Pages) here(r *http.Request) string {
	if r.Method != http.MethodGet {
		return p.cameFrom(r)
	}
	path, query := p.Base+r.URL.EscapedPath(), r.URL.Query()
	query.Del("done")
	query.Del("rows")
	query.Del("skipped")
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// cameFrom returns the path of the page that a form stood on: what the form says of it, or what the browser says,
// or the first page. It reads no body: a request that the gate refuses has one that nobody has measured.
func (p *Pages) cameFrom(r *http.Request) string {
	if next := r.PostForm.Get("next"); next != "" {
		return p.local(next)
	}
	from, err := url.Parse(r.Referer())
	if err != nil {
		return p.link()
	}
	return p.local(from.RequestURI())
}

// Can reports whether the caller has a right.
func (f *frame) Can(right string) bool { return f.may.Can(api.Right(right)) }

// Why says why the caller may not do what needs the right; empty: it may.
func (f *frame) Why(right string) string {
	if f.Can(right) {
		return ""
	}
	return "needs the right " + right + ", which " + f.Who + " does not have"
}

// With returns the path of this page with another value of one filter. An empty value removes it. The list
// begins anew.
func (f *frame) With(name, value string) string {
	path, query, _ := strings.Cut(f.Here, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return path
	}
	q.Del("after")
	q.Del(name)
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// sub is what a part of a page gets: words of ours, what it is about, and the frame around it.
type sub struct {
	Title string
	Of    any
	Outer *frame
}

// Sub returns what a part of a page gets.
func (f *frame) Sub(title string, of any) sub { return sub{title, of, f} }
