package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// A hold is made once, tells what it keeps, and is in the log with who and why; its filter stands beside the record.
func TestHoldsOfTheAuditLog(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	calls(t, f, db, "x", "y", "x")
	post := func(path, body string) call { return call{method: http.MethodPost, path: path, body: body} }
	const body = `{"name":"case","filter":{"target":"x","from":"2026-01-01"},"reason":"a court asks"`
	tried := ok[api.AuditHold](t, f, post("/v1/audit/holds", body+`,"dryRun":true}`))
	if tried.Records != 2 || !tried.Since.IsZero() || len(ok[api.AuditHolds](t, f, call{method: http.MethodGet, path: "/v1/audit/holds"}).Holds) != 0 {
		t.Errorf("tried: %+v", tried)
	}
	made := ok[api.AuditHold](t, f, post("/v1/audit/holds", body+"}"))
	again := ok[api.AuditHold](t, f, post("/v1/audit/holds", body+"}"))
	if made != again || made.Records != 2 || made.More || made.Actor != "local" || made.Filter.Target != "x" || made.Filter.From != "2026-01-01T00:00:00Z" {
		t.Errorf("made %+v, and again %+v", made, again)
	}
	if list := ok[api.AuditHolds](t, f, call{method: http.MethodGet, path: "/v1/audit/holds"}).Holds; len(list) != 1 || list[0].Reason != "a court asks" || list[0].Since != made.Since {
		t.Errorf("listed %+v", list)
	}
	for body, code := range map[string]int{
		`{"name":"case","filter":{"target":"y"},"reason":"a court asks"}`: 409, `{"name":"n","filter":{},"reason":"r"}`: 422, `{"name":"n","filter":{"target":"x"}}`: 422,
		`{"filter":{"target":"x"},"reason":"r"}`: 422, `{"name":"n","filter":{"from":"soon"},"reason":"r"}`: 422, `{"name":"n","filter":{"tarjet":"x"},"reason":"r"}`: 422,
		`{"name":"n","filter":{"target":"` + strings.Repeat("t", 1024) + `"},"reason":"r"}`: 422,
	} {
		if w := f.do(t, post("/v1/audit/holds", body)); w.Code != code {
			t.Errorf("%.100s: got %d %s", body, w.Code, w.Body)
		}
	}
	if w := f.do(t, post("/v1/audit/holds/case/release", `{"reason":"it has ended"}`)); w.Code != http.StatusNoContent {
		t.Errorf("release: got %d %s", w.Code, w.Body)
	}
	if w := f.do(t, post("/v1/audit/holds/case/release", `{"reason":"it has ended"}`)); w.Code != http.StatusNotFound {
		t.Errorf("release again: got %d", w.Code)
	}
	recorded(t, f, db)
	list := ok[api.AuditPage](t, f, call{method: http.MethodGet, path: "/v1/audit?target=case"}).Records
	var got []string
	for _, r := range list {
		if r.Channel == "Operator" {
			got = append(got, strings.Join([]string{r.Kind, r.Actor, string(r.Extra), r.Request}, " "))
		}
	}
	want := []string{`Release local {"reason":"it has ended"} `, `Hold local {"reason":"a court asks"} {"from":"2026-01-01T00:00:00Z","target":"x"}`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A hold does not count what a purge has on record and has not deleted yet.
func TestAHoldCountsWhatStays(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	calls(t, f, db, "x", "y", "x")
	store := nodestore.New(db, nil).Audit
	page, err := store.Query(t.Context(), audit.Query{Filter: audit.Filter{Target: "x"}, Limit: 2})
	if err != nil || len(page.Records) != 2 {
		t.Fatal(page.Records, err)
	}
	first := page.Records[1]
	if cut, err := store.Cut(t.Context(), 1, first.Seq, audit.Hash(first.Hash), 0); err != nil || !cut {
		t.Fatal(cut, err)
	}
	tried := ok[api.AuditHold](t, f, call{method: http.MethodPost, path: "/v1/audit/holds", body: `{"name":"case","filter":{"target":"x"},"reason":"a court asks","dryRun":true}`})
	if tried.Records != 1 {
		t.Errorf("it says that it keeps %d records, and one stays", tried.Records)
	}
}
