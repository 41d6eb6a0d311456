package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// button returns a button for who asks. A tone is main, danger or nothing.
func button(r *http.Request, right api.Right, label, icon, tone, href string) action {
	a := action{Label: label, Icon: icon, Tone: tone, Href: href}
	if may := admin.Granted(r.Context()); !may.Can(right) {
		a.Why = "this needs the right " + string(right) + ", which " + admin.Actor(r.Context()) + " does not have"
	}
	return a
}

// asking is button for what leads to a page that asks first.
func asking(r *http.Request, right api.Right, label, icon, tone, href string) action {
	a := button(r, right, label, icon, tone, href)
	a.Asks = true
	return a
}

// askFirst returns a page that asks. Its form goes to the page's own path.
func (p *Pages) askFirst(r *http.Request, rail, title string, q question) *view {
	q.Ask, q.Action = title, p.Base+r.URL.EscapedPath()
	return q.view(rail)
}

// instead shows on a list why its filter is refused. Any other error has a page of its own.
func (v *view) instead(err error) (answer, error) {
	switch why := problemOf(err); why.Status {
	case http.StatusUnprocessableEntity, http.StatusForbidden:
		v.status, v.said = why.Status, refused(err)
		return v, err
	}
	return nil, err
}

// once is a page that shows a secret, and answers the form itself: nobody keeps it, so that there is no page to lead to.
type once struct{ *view }

func (o once) send(p *Pages, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	o.view.send(p, w, r)
}

// secret is what such a page shows.
type secret struct {
	Label, Secret, Text string
	Until               any
	Back                string
}

// download is an answer of any length that a browser saves.
type download struct {
	name, kind string
	write      func(w http.ResponseWriter) error
}

func (d *download) send(_ *Pages, w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", d.kind)
	h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`) // a name of ours
	h.Set("Cache-Control", "no-store")
	if d.write(w) != nil {
		panic(http.ErrAbortHandler) // so that the browser does not take it for all
	}
}
