package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// pageRows is how many rows a page of a list has.
const pageRows = 50

// auditPages are the pages of the audit log. Each look at its list is on record, and so is each export; a look at one
// record is not, as in the API.
func (p *Pages) auditPages() []page {
	return []page{
		{"GET audit", "query-audit", api.AuditRead, true, p.auditList},
		{"GET audit/export", "ask-audit-export", api.AuditExport, false, p.auditAskExport},
		{"POST audit/verify", "verify-audit", api.AuditRead, false, p.auditVerify},
		{"GET audit/{id}", "get-audit-record", api.AuditRead, false, p.auditRecord},
		{"POST audit/{id}/proof", "prove-audit-record", api.AuditRead, false, p.auditProof},
	}
}

// exportRoute is the route of exports. An export puts itself on record, and takes as long as it needs.
func (p *Pages) exportRoute() gate.Route {
	of := &page{operation: admin.ExportAudit, serve: p.auditExport}
	return gate.Route{
		Pattern: "POST " + Root + "audit/export", Operation: of.operation, Right: api.AuditExport, Scoped: true, Page: true, Long: true, MaxBody: mostForm,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			secure(w.Header())
			a, err := p.ask(of, w, r)
			if err != nil {
				if admin.IsDenied(err) {
					p.Denied(r.Context(), of.operation, problemOf(err))
				}
				a = p.problemView(r, problemOf(err))
			}
			a.send(p, w, r)
		}),
	}
}

// audited is what the page of the audit log shows.
type audited struct {
	api.AuditPage

	Integrity                 *api.AuditIntegrity
	Own                       *api.AuditLogStatus // of Integrity; nil: unknown
	Channels, Kinds, Statuses []string
	Actions                   []action
	Fine                      bool // a filter that is folded away is set
}

// auditFilter reads the filter of the audit log from a request.
func auditFilter(r *http.Request) api.AuditFilter {
	return api.AuditFilter{
		From: instantIn(r, r.FormValue("from")), To: instantIn(r, r.FormValue("to")), Site: r.FormValue("site"), Node: r.FormValue("node"), Instance: r.FormValue("instance"),
		Actor: r.FormValue("actor"), Target: r.FormValue("target"), Channel: r.FormValue("channel"), Kind: r.FormValue("kind"), Status: r.FormValue("status"),
		CorrelationID: r.FormValue("correlationId"), Errors: r.FormValue("errors") != "",
	}
}

func (p *Pages) auditList(r *http.Request) (answer, error) {
	log, filter := admin.Audit{Service: p.Service}, auditFilter(r)
	channels, kinds, statuses := admin.AuditWords()
	data := &audited{Channels: texts(channels), Kinds: texts(kinds), Statuses: texts(statuses), Fine: filter.Site+filter.Node+filter.Instance != ""}
	v := &view{template: "audit", title: "Audit", rail: "Audit", data: data}
	data.Actions = []action{button(r, api.AuditRead, "Verify now", "shield", "", p.link("audit", "verify")), asking(r, api.AuditExport, "Export", "out", "", p.link("audit", "export")+"?"+filter.Values().Encode())}
	if i, err := log.Integrity(r.Context()); err == nil { // a caller with a narrowed scope sees none
		data.Integrity = &i
		if len(i.Logs) > 0 {
			data.Own = &i.Logs[0]
		}
	}
	found, err := log.Query(r.Context(), &filter, r.FormValue("after"), pageRows)
	data.AuditPage = found
	if err != nil {
		return v.instead(err)
	}
	return told{v, []any{"filter", filter.Map()}}, nil
}

// texts returns words as texts.
func texts[T ~string](words []T) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

func (p *Pages) auditVerify(r *http.Request) (answer, error) {
	if err := (admin.Audit{Service: p.Service}).Verify(r.Context()); err != nil {
		return nil, err
	}
	return redirect(withQuery(p.link("audit"), "done", "verifying")), nil
}

// recorded is what the page of one record shows.
type recorded struct {
	api.AuditRecord

	Related []related
	Extra   string
	Prove   action
	Proof   *api.AuditProof // nil: it was not asked for
	Text    string          // of the proof, as a file has it
}

// related is a list that has to do with a record.
type related struct{ Name, Href string }

func (p *Pages) auditRecord(r *http.Request) (answer, error) {
	one, err := admin.Audit{Service: p.Service}.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return p.recordView(r, &one), nil
}

func (p *Pages) recordView(r *http.Request, one *api.AuditRecord) *view {
	data := &recorded{AuditRecord: *one, Extra: indented(one.Extra)}
	data.Prove = button(r, api.AuditRead, "Prove that it is in the log", "shield", "", p.link("audit", one.ID, "proof"))
	add := func(name, key, value string) {
		if value != "" {
			data.Related = append(data.Related, related{name, p.link("audit") + "?" + key + "=" + url.QueryEscape(value)})
		}
	}
	add("with this correlation id", "correlationId", one.CorrelationID)
	add("of this actor", "actor", one.Actor)
	add("about this target", "target", one.Target)
	return &view{template: "audit_record", title: fmt.Sprintf("Audit record %d", one.Seq), rail: "Audit", data: data}
}

// auditProof proves a record. That may sign a checkpoint, so it is no GET.
func (p *Pages) auditProof(r *http.Request) (answer, error) {
	log := admin.Audit{Service: p.Service}
	proof, err := log.Prove(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(&proof, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the proof: %w", err)
	}
	if r.PostFormValue("as") == "file" {
		return &download{"proof.json", "application/json", func(w http.ResponseWriter) error { _, err := w.Write(text); return err }}, nil //nolint:wrapcheck // the browser is gone
	}
	one, err := log.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	v := p.recordView(r, &one)
	if data, ok := v.data.(*recorded); ok {
		data.Proof, data.Text = &proof, string(text)
	}
	return v, nil
}

// auditAskExport is the page that asks what to export: what the filter finds, of which format.
func (p *Pages) auditAskExport(r *http.Request) (answer, error) {
	filter := auditFilter(r)
	q := question{
		Text: "All records that the log has now are exported, the oldest first.", Back: p.link("audit"),
		Verb: "Export", Icon: "out", Tone: "main",
		Inputs: []input{{Name: "format", Label: "Format", Kind: "select", Value: "jsonl", Choices: []string{"jsonl", "csv"}}},
	}
	if all := filter.Map(); len(all) > 0 {
		q.Back += "?" + filter.Values().Encode()
		q.Text = "The records that the filter finds are exported, the oldest first:"
		for _, name := range slices.Sorted(maps.Keys(all)) {
			q.Text += " " + name + " " + all[name] + ";"
			q.Fields = append(q.Fields, field{name, all[name]})
		}
		q.Text = q.Text[:len(q.Text)-1] + "."
	}
	q.Text += " The export itself is on record. JSON Lines (jsonl) can be verified without the node; csv is for tables."
	return p.askFirst(r, "Audit", "Export the audit log", q), nil
}

func (p *Pages) auditExport(r *http.Request) (answer, error) {
	format, filter := r.PostFormValue("format"), auditFilter(r)
	kind, ok := map[string]string{"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8; header=present"}[format]
	if !ok {
		return nil, api.Faulty(api.Fault{Field: "format", Value: api.Clip(format), Problem: "must be jsonl or csv"})
	}
	write, err := admin.Audit{Service: p.Service}.Export(r.Context(), &filter, "", format)
	if err != nil {
		return nil, err
	}
	return &download{"audit." + format, kind, func(w http.ResponseWriter) error { return write(w) }}, nil
}
