package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (p *Pages) bulkPages() []page {
	return []page{
		{"GET bulk", "list-bulk", api.Read, false, p.bulkList},
		{"GET bulk/new", "ask-bulk", api.Operate, false, p.askBulk},
		{"POST bulk", "add-bulk", api.Operate, false, p.addBulk},
		{"GET bulk/{id}", "get-bulk", api.Read, false, p.bulkAction},
		{"GET bulk/{id}/cancel", "ask-cancel-bulk", api.Operate, false, p.askCancelBulk},
		{"POST bulk/{id}/pause", "pause-bulk", api.Operate, false, p.moveBulk("paused", admin.Bulk.Pause)},
		{"POST bulk/{id}/resume", "resume-bulk", api.Operate, false, p.moveBulk("resumed", admin.Bulk.Resume)},
		{"POST bulk/{id}/cancel", "cancel-bulk", api.Operate, false, p.moveBulk("cancelled", admin.Bulk.Cancel)},
	}
}

// typedAbove is how many rows a person may act on without typing how many they are.
const typedAbove = 100

// lacksWhole says why the caller may not act on the whole node with a right; empty: it may.
func lacksWhole(r *http.Request, right api.Right) string {
	may := admin.Granted(r.Context())
	switch {
	case !may.Can(right):
		return "this needs the right " + string(right) + ", which " + admin.Actor(r.Context()) + " does not have"
	case !may.Whole():
		return "this is about the whole node, and " + admin.Actor(r.Context()) + " is only for a part of it"
	}
	return ""
}

// bulkActions are the verbs that a list offers for all that its filter finds. names are the parameters of the
// list that narrow it.
func (p *Pages) bulkActions(r *http.Request, list string, filter url.Values, names []string) (actions []action) {
	if p.Bulks == nil {
		return nil
	}
	q := url.Values{"of": {list}}
	for _, name := range names {
		if value := filter.Get(name); value != "" {
			q.Set(name, value)
		}
	}
	for _, a := range []action{{Label: "Retry all", Icon: "retry", Href: "retry"}, {Label: "Discard all", Icon: "trash", Tone: "danger", Href: "discard"}} {
		q.Set("verb", a.Href)
		a.Href, a.Asks, a.Why = p.link("bulk", "new")+"?"+q.Encode(), true, lacksWhole(r, api.Operate)
		actions = append(actions, a)
	}
	return actions
}

// bulkForm asks what a bulk action is to do, with what its filter finds now.
type bulkForm struct {
	Request api.BulkRequest
	Filter  []fact // the filter in words
	Keep    []field
	Counts  []bulkCount
	Back    string
	Errors  map[string]string // by field
	ID      string            // of the action that the form makes, so that a form that is sent twice makes one

	Found, Eligible, Skips int64
	Types                  bool // how many they are must be typed
}

// bulkCount is how many rows are alike, and whether the verb starts from their state.
type bulkCount struct {
	api.BulkCount

	Fits bool
}

// startsFrom reports whether the verb of a request starts from a state.
func startsFrom(req *api.BulkRequest, status string) bool {
	verb, known := map[string]holdfast.Verb{"retry": holdfast.VerbRequeue, "discard": holdfast.VerbDiscard, "run": holdfast.VerbReschedule}[req.Verb]
	switch {
	case !known:
		return true
	case req.List == "notifications":
		return copyFits(verb, status)
	}
	state, err := holdfast.ParseState(status)
	return err == nil && slices.Contains(verb.States(), state)
}

// fact is a name and what it is.
type fact struct{ Name, Value string }

// bulkRequestOf reads a request from the query of a link, or from a form.
func bulkRequestOf(q url.Values) (req api.BulkRequest, wrong []api.Fault) {
	req = api.BulkRequest{List: q.Get("of"), Verb: q.Get("verb"), Channel: q.Get("only"), Reason: strings.TrimSpace(q.Get("reason")), Force: q.Get("force") != ""}
	for field, to := range filterFields(&req.Filter) {
		*to = q.Get(field)
	}
	if s := cmp.Or(q.Get("status"), q.Get("state")); s != "" {
		req.Filter.Status = strings.Split(s, ",")
	}
	for name, to := range map[string]*int64{"first": &req.First, "rate": &req.Rate} {
		text := strings.TrimSpace(q.Get(name))
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			wrong = append(wrong, api.Fault{Field: name, Value: api.Clip(text), Problem: "must be a whole number above zero, or nothing"})
			continue
		}
		*to = n
	}
	return req, wrong
}

// filterFields are the texts of a filter, by the names that they have in links.
func filterFields(f *api.BulkFilter) map[string]*string {
	return map[string]*string{
		"destination": &f.Destination, "category": &f.Category, "cause": &f.Cause, "code": &f.Code, "error": &f.Error, "channel": &f.Channel, "list": &f.List, "type": &f.Type, "site": &f.Site,
		"subject": &f.Subject, "topic": &f.Topic, "from": &f.From, "to": &f.To,
	}
}

// bulkForm counts what a request finds.
func (p *Pages) bulkForm(r *http.Request, req *api.BulkRequest) (*bulkForm, error) {
	f := &bulkForm{Request: *req, ID: string(holdfast.NewID()), Back: p.link("bulk"), Filter: wordsOfFilter(req)}
	f.Keep = append(f.Keep, field{"of", req.List}, field{"verb", req.Verb}, field{"only", req.Channel}, field{"status", strings.Join(req.Filter.Status, ",")})
	back := url.Values{statusField(req.List): {strings.Join(req.Filter.Status, ",")}}
	for name, from := range filterFields(&req.Filter) {
		f.Keep = append(f.Keep, field{name, *from})
		back.Set(name, *from)
	}
	f.Keep = slices.DeleteFunc(f.Keep, func(one field) bool { return one.Value == "" })
	slices.SortFunc(f.Keep, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	if req.List == "messages" || req.List == "notifications" {
		maps.DeleteFunc(back, func(_ string, values []string) bool { return len(values) == 0 || values[0] == "" })
		f.Back = p.link(req.List) + "?" + back.Encode()
	}
	dry := *req
	dry.DryRun = true
	out, err := admin.Bulk{Service: p.Service}.Add(r.Context(), &dry)
	for _, c := range out.Counts {
		one := bulkCount{c, startsFrom(req, c.Status)}
		f.Counts, f.Found = append(f.Counts, one), f.Found+c.Count
		if one.Fits {
			f.Eligible += c.Count
		}
	}
	f.Skips = f.Found - f.Eligible
	f.Types = f.Found > typedAbove
	return f, err
}

// statusField is how a list calls the parameter of its status.
func statusField(list string) string {
	if list == "messages" {
		return "state"
	}
	return "status"
}

// wordsOfFilter says what a request is about.
func wordsOfFilter(req *api.BulkRequest) (list []fact) {
	if len(req.Filter.Status) > 0 {
		list = append(list, fact{"status", strings.Join(req.Filter.Status, " or ")})
	}
	f := filterFields(&req.Filter)
	for _, name := range []string{"destination", "category", "cause", "code", "error", "channel", "list", "type", "site", "subject", "topic", "from", "to"} {
		if value := *f[name]; value != "" {
			list = append(list, fact{name, value})
		}
	}
	if req.Channel != "" {
		list = append(list, fact{"only the copy over", req.Channel})
	}
	return list
}

func (p *Pages) askBulk(r *http.Request) (answer, error) {
	req, wrong := bulkRequestOf(r.URL.Query())
	f, err := p.bulkForm(r, &req)
	if err == nil && len(wrong) > 0 {
		err = api.Faulty(wrong...)
	}
	return bulkView(f, err)
}

// bulkView shows the form, with what is wrong with the request.
func bulkView(f *bulkForm, err error) (answer, error) {
	v := &view{template: "bulk_new", title: upper(f.Request.Verb) + " many " + f.Request.List, rail: "Bulk actions", data: f}
	if err != nil {
		why := problemOf(err)
		v.status, v.said, f.Errors = why.Status, refused(err), map[string]string{}
		for _, e := range why.Errors {
			f.Errors[e.Field] = e.Problem
		}
	}
	return v, err
}

// addBulk makes an action of a form: once its reason is given, and more rows than a few are confirmed by their
// number.
func (p *Pages) addBulk(r *http.Request) (answer, error) {
	req, wrong := bulkRequestOf(r.PostForm)
	of, id := admin.Bulk{Service: p.Service}, r.PostFormValue("action")
	if !madeID(id) {
		return nil, api.Faulty(api.Fault{Field: "action", Value: api.Clip(id), Problem: "is not what the form had; open the form again"})
	}
	if a, err := of.Get(r.Context(), id); err == nil { // the form was sent twice
		return redirect(p.link("bulk", a.ID)), nil
	}
	if req.Verb == "discard" && strings.TrimSpace(req.Reason) == "" {
		wrong = append(wrong, api.Fault{Field: "reason", Problem: "is missing: say why, for who reads the audit log"})
	}
	f, err := p.bulkForm(r, &req)
	if err == nil {
		wrong = append(wrong, f.confirmed(r.PostFormValue("confirm"))...)
		err = faulty(wrong)
	}
	if err != nil {
		return bulkView(f, err)
	}
	a, err := of.AddAs(r.Context(), id, &req)
	if err != nil {
		return bulkView(f, err)
	}
	return told{redirect(withQuery(p.link("bulk", a.ID), "done", "begun")), []any{"action", a.ID, "list", a.List, "verb", a.Verb, "total", a.Total, "reason", api.Clip(req.Reason)}}, nil
}

// madeID reports whether a form has an id as holdfast.NewID makes one.
func madeID(id string) bool {
	u, ok := holdfast.ID(id).UUID()
	return ok && u.Version() == 7 && u.String() == id
}

func faulty(wrong []api.Fault) error {
	if len(wrong) == 0 {
		return nil
	}
	return api.Faulty(wrong...)
}

// confirmed checks what was typed against what is found now.
func (f *bulkForm) confirmed(typed string) []api.Fault {
	typed = strings.Join(strings.FieldsFunc(typed, func(c rune) bool { return strings.ContainsRune(" ,.'\u2009\u00a0", c) }), "")
	switch {
	case f.Eligible == 0:
		return []api.Fault{{Field: "filter", Problem: "finds nothing that this verb starts from"}}
	case f.Types && typed != strconv.FormatInt(f.Found, 10):
		return []api.Fault{{Field: "confirm", Value: api.Clip(typed), Problem: fmt.Sprintf("is not how many the filter finds now: type %d", f.Found)}}
	}
	return nil
}

// bulkDetail is what the page of an action shows.
type bulkDetail struct {
	api.Bulk

	Filter      []fact
	Left        int64
	Percent     int64
	Actions     []action
	Rows        []bulkRow
	First, Next string
	Commands    []string
}

// bulkRow is a row of an action, with where it is looked at.
type bulkRow struct {
	api.BulkRow

	Href string
}

func (p *Pages) oneBulk(r *http.Request) (*view, error) {
	of, id := admin.Bulk{Service: p.Service}, r.PathValue("id")
	a, err := of.Get(r.Context(), id)
	if err != nil {
		return nil, err
	}
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // nonsense is the first page
	rows, err := of.Rows(r.Context(), id, max(after, 0), usualRows)
	if err != nil {
		return nil, err
	}
	d := &bulkDetail{Bulk: a, Filter: wordsOfFilter(&a.Request), Left: a.Total - a.Done - a.Refused}
	if a.Total > 0 {
		d.Percent = 100 * (a.Done + a.Refused) / a.Total
	}
	for _, row := range rows.Rows {
		if row.Outcome == "refused" {
			row.Outcome = "skipped"
		}
		d.Rows = append(d.Rows, bulkRow{row, p.bulkItem(a.List, row.Item)})
	}
	next := ""
	if rows.Next > 0 {
		next = strconv.FormatInt(rows.Next, 10)
	}
	d.First, d.Next = p.around(r.URL, next)
	why := lacksWhole(r, api.Operate)
	open := false
	switch a.State {
	case "running":
		open = true
		d.Actions = []action{{Label: "Pause", Icon: "pause", Href: p.link("bulk", id, "pause"), Why: why}}
		d.Commands = append(d.Commands, "holdfast bulk pause "+id, "holdfast bulk cancel "+id)
	case "paused":
		open = true
		d.Actions = []action{{Label: "Resume", Icon: "play", Tone: "main", Href: p.link("bulk", id, "resume"), Why: why}}
		d.Commands = append(d.Commands, "holdfast bulk resume "+id, "holdfast bulk cancel "+id)
	case "gathering":
		open = true
	}
	if open {
		d.Actions = append(d.Actions, action{Label: "Cancel", Icon: "stop", Tone: "danger", Href: p.link("bulk", id, "cancel"), Asks: true, Why: why})
	}
	d.Commands = append(d.Commands, "holdfast bulk show --rows "+id)
	return &view{template: "bulk", title: upper(a.Verb) + " of " + a.List, rail: "Bulk actions", live: open, data: d}, nil
}

// bulkItem returns the path of what a row is about; empty: it has no page.
func (p *Pages) bulkItem(list, item string) string {
	switch list {
	case "messages":
		return p.link("messages", item)
	case "notifications":
		site, id, _ := strings.Cut(item, "/")
		return p.notificationLink(site, id)
	}
	return ""
}

func (p *Pages) bulkAction(r *http.Request) (answer, error) {
	v, err := p.oneBulk(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// moveBulk pauses, resumes or cancels an action, and leads back to it.
func (p *Pages) moveBulk(done string, move func(of admin.Bulk, ctx context.Context, id string) (api.Bulk, error)) func(r *http.Request) (answer, error) {
	return func(r *http.Request) (answer, error) {
		id := r.PathValue("id")
		_, err := move(admin.Bulk{Service: p.Service}, r.Context(), id)
		if err == nil {
			return redirect(withQuery(p.link("bulk", id), "done", done)), nil
		}
		v, gone := p.oneBulk(r)
		if gone != nil {
			return nil, err
		}
		v.status, v.said = problemOf(err).Status, refused(err)
		return v, err
	}
}

func (p *Pages) askCancelBulk(r *http.Request) (answer, error) {
	v, err := p.oneBulk(r)
	if err != nil {
		return nil, err
	}
	d, ok := v.data.(*bulkDetail)
	if !ok {
		return nil, errors.New("not the page of a bulk action")
	}
	ask := &question{
		Ask: "Cancel this bulk action?", Text: fmt.Sprintf("%s stay as they are. What is done stays done, and it cannot go on later.", upper(countedAs(d.Left, "row", "rows"))),
		Action: p.link("bulk", d.ID, "cancel"), Verb: "Cancel the action", Back: p.link("bulk", d.ID),
	}
	return ask.view("Bulk actions"), nil
}

// bulkTable is what the list of actions shows.
type bulkTable struct {
	Open, Past  []bulkLine
	First, Next string
}

type bulkLine struct {
	api.Bulk

	Href    string
	Percent int64
	Filter  []fact
}

func (p *Pages) bulkList(r *http.Request) (answer, error) {
	page, err := admin.Bulk{Service: p.Service}.List(r.Context(), r.URL.Query().Get("after"), usualRows)
	if err != nil {
		return nil, err
	}
	t := &bulkTable{}
	for i := range page.Actions {
		a := &page.Actions[i]
		line := bulkLine{Bulk: *a, Href: p.link("bulk", a.ID), Filter: wordsOfFilter(&a.Request)}
		if a.Total > 0 {
			line.Percent = 100 * (a.Done + a.Refused) / a.Total
		}
		if a.Ended == nil {
			t.Open = append(t.Open, line)
		} else {
			t.Past = append(t.Past, line)
		}
	}
	t.First, t.Next = p.around(r.URL, page.Next)
	return &view{template: "bulks", title: "Bulk actions", rail: "Bulk actions", live: true, data: t}, nil
}
