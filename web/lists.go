package web

import (
	"net/http"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (p *Pages) listPages() []page {
	return []page{
		{"GET lists", "list-lists", api.Read, false, p.lists},
		{"POST lists", "put-list", api.Admin, false, p.addList},
		{"GET lists/{name}", "get-list", api.Read, false, p.listPage},
		{"POST lists/{name}", "put-list", api.Admin, false, p.editList},
		{"GET lists/{name}/delete", "ask-delete-list", api.Admin, false, p.askDeleteList},
		{"POST lists/{name}/delete", "delete-list", api.Admin, false, p.deleteList},
		{"POST lists/{name}/recipients", "put-recipient", api.Admin, false, p.addRecipient},
		{"POST lists/{name}/recipients/disable", "put-recipient", api.Admin, false, p.disableRecipient(true)},
		{"POST lists/{name}/recipients/enable", "put-recipient", api.Admin, false, p.disableRecipient(false)},
		{"GET lists/{name}/recipients/remove", "ask-delete-recipient", api.Admin, false, p.askRemoveRecipient},
		{"POST lists/{name}/recipients/remove", "delete-recipient", api.Admin, false, p.removeRecipient},
		{"POST lists/{name}/recipients/import", "import-recipients", api.Admin, false, p.importRecipients},
	}
}

// listTable is what the page of all lists shows.
type listTable struct {
	Rows  []listRow
	Lacks string // why the caller may not change lists
	Form  api.List
	Wrong map[string]string // what is wrong with the form, by field
}

type listRow struct {
	api.ListSummary

	Href, Notified string // paths of the list, and of what it was sent
}

func (p *Pages) allLists(r *http.Request) (*view, *listTable, error) {
	all, err := admin.Lists{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, nil, err
	}
	t := &listTable{Lacks: lacksWhole(r, api.Admin)}
	for i := range all.Lists {
		l := &all.Lists[i]
		t.Rows = append(t.Rows, listRow{*l, p.link("lists", l.Name), withQuery(p.link("notifications"), "list", l.Name)})
	}
	return &view{template: "lists", title: "Lists", rail: "Lists", data: t}, t, nil
}

func (p *Pages) lists(r *http.Request) (answer, error) {
	v, _, err := p.allLists(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// addList makes a list without recipients. One that is there already is not replaced.
func (p *Pages) addList(r *http.Request) (answer, error) {
	spec := api.ListSpec{Name: r.PostFormValue("name"), Description: r.PostFormValue("description"), Recipients: []api.Recipient{}}
	_, err := admin.Lists{Service: p.Service}.Put(r.Context(), spec.Name, &spec, admin.Conditions{IfNoneMatch: "*"})
	if err == nil {
		return redirect(withQuery(p.link("lists", spec.Name), "done", "saved")), nil
	}
	v, t, gone := p.allLists(r)
	if gone != nil {
		return nil, err
	}
	t.Form, t.Wrong = api.List(spec), v.refuse(err)
	return v, err
}

// refuse shows on a page why a form was not taken, and returns what is wrong by field.
func (v *view) refuse(err error) map[string]string {
	why, wrong := problemOf(err), map[string]string{}
	v.status, v.said = why.Status, refused(err)
	for _, e := range why.Errors {
		wrong[e.Field] = e.Problem
	}
	return wrong
}

// listDetail is what the page of a list shows.
type listDetail struct {
	api.List

	Reach    []recipientRow
	Counts   map[string]int // of recipients, by whether they are reached
	Channels []string
	Lacks    string
	Notified string // path of what it was sent
	Href     string
	Commands []string

	New   api.Recipient // as it was typed
	Text  string        // of an import
	Wrong map[string]string
}

type recipientRow struct {
	api.RecipientReach

	Remove string // path of the page that asks
}

func (p *Pages) oneList(r *http.Request) (*view, *listDetail, error) {
	name := r.PathValue("name")
	l, reach, err := admin.Lists{Service: p.Service}.Reach(r.Context(), name)
	if err != nil {
		return nil, nil, err
	}
	d := &listDetail{
		List: l, Counts: map[string]int{}, Lacks: lacksWhole(r, api.Admin), Href: p.link("lists", name), Notified: withQuery(p.link("notifications"), "list", name),
		Commands: []string{"holdfast lists show " + shellQuote(name), "holdfast lists add " + shellQuote(name)},
	}
	d.Channels, _ = p.directory(r)
	for _, one := range reach {
		d.Counts[one.State]++
		d.Reach = append(d.Reach, recipientRow{one, withQuery(p.link("lists", name, "recipients", "remove"), "channel", one.Channel, "address", one.Address)})
	}
	return &view{template: "list", title: "List " + l.Name, rail: "Lists", data: d}, d, nil
}

func (p *Pages) listPage(r *http.Request) (answer, error) {
	v, _, err := p.oneList(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// changed leads back to a list, or shows it with what was not done. keep puts what was typed back into its form.
func (p *Pages) changed(r *http.Request, err error, keep func(d *listDetail), with ...any) (answer, error) {
	if err == nil {
		return told{redirect(withQuery(p.link("lists", r.PathValue("name")), "done", "saved")), with}, nil
	}
	v, d, gone := p.oneList(r)
	if gone != nil {
		return nil, err
	}
	d.Wrong = v.refuse(err)
	keep(d)
	return v, err
}

// editList changes what a list says of itself. The version tells whether somebody else was faster.
func (p *Pages) editList(r *http.Request) (answer, error) {
	of := admin.Lists{Service: p.Service}
	l, err := of.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	spec := api.ListSpec(l)
	spec.Description, spec.Partial, spec.Version = r.PostFormValue("description"), r.PostFormValue("partial") != "", r.PostFormValue("version")
	_, err = of.Put(r.Context(), l.Name, &spec, admin.Conditions{})
	return p.changed(r, err, func(d *listDetail) { d.Description, d.Partial = spec.Description, spec.Partial })
}

func (p *Pages) addRecipient(r *http.Request) (answer, error) {
	spec := api.RecipientSpec{Channel: r.PostFormValue("channel"), Address: r.PostFormValue("address"), Name: r.PostFormValue("name")}
	_, err := admin.Lists{Service: p.Service}.AddRecipient(r.Context(), r.PathValue("name"), &spec)
	return p.changed(r, err, func(d *listDetail) { d.New = api.Recipient(spec) }, "channel", api.Clip(spec.Channel))
}

func (p *Pages) disableRecipient(disabled bool) func(r *http.Request) (answer, error) {
	return func(r *http.Request) (answer, error) {
		channel := r.PostFormValue("channel")
		_, err := admin.Lists{Service: p.Service}.DisableRecipient(r.Context(), r.PathValue("name"), channel, r.PostFormValue("address"), disabled)
		return p.changed(r, err, func(*listDetail) {}, "channel", api.Clip(channel), "disabled", disabled)
	}
}

func (p *Pages) askRemoveRecipient(r *http.Request) (answer, error) {
	name, q := r.PathValue("name"), r.URL.Query()
	if _, _, err := p.oneList(r); err != nil {
		return nil, err
	}
	ask := &question{
		Ask: "Remove this recipient?", Text: "It gets no further notifications of list " + name + " over this channel. What was sent stays sent.",
		Items: []string{q.Get("address") + " over " + q.Get("channel")}, Action: p.link("lists", name, "recipients", "remove"),
		Fields: []field{{"channel", q.Get("channel")}, {"address", q.Get("address")}}, Verb: "Remove", Back: p.link("lists", name),
	}
	return ask.view("Lists"), nil
}

func (p *Pages) removeRecipient(r *http.Request) (answer, error) {
	_, err := admin.Lists{Service: p.Service}.DeleteRecipient(r.Context(), r.PathValue("name"), r.PostFormValue("channel"), r.PostFormValue("address"))
	return p.changed(r, err, func(*listDetail) {})
}

func (p *Pages) importRecipients(r *http.Request) (answer, error) {
	req := api.ImportRequest{Channel: r.PostFormValue("channel"), Format: r.PostFormValue("format"), Text: r.PostFormValue("text")}
	out, err := admin.Lists{Service: p.Service}.Import(r.Context(), r.PathValue("name"), &req)
	return p.changed(r, err, func(d *listDetail) { d.Text = req.Text }, "added", out.Added, "changed", out.Changed)
}

func (p *Pages) askDeleteList(r *http.Request) (answer, error) {
	_, d, err := p.oneList(r)
	if err != nil {
		return nil, err
	}
	ask := &question{
		Ask: "Delete list " + d.Name + "?", Text: "Notifications to it park from then on, until there is a list of this name again. It has " + countedAs(int64(len(d.Recipients)), "recipient", "recipients") + ".",
		Action: p.link("lists", d.Name, "delete"), Fields: []field{{"version", d.Version}}, Verb: "Delete the list", Back: d.Href,
	}
	return ask.view("Lists"), nil
}

func (p *Pages) deleteList(r *http.Request) (answer, error) {
	err := admin.Lists{Service: p.Service}.Delete(r.Context(), r.PathValue("name"), admin.Conditions{IfMatch: strconv.Quote(r.PostFormValue("version"))})
	if err == nil {
		return redirect(withQuery(p.link("lists"), "done", "deleted")), nil
	}
	return p.changed(r, err, func(*listDetail) {})
}
