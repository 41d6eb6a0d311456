package httpapi_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// An erasure says what it takes before it does, and the answer to a wrong one does not repeat whom it names.
func TestValuesAreErased(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	search := call{method: http.MethodGet, path: "/v1/audit?target=a.smit@example.org"}
	f.do(t, search)
	f.do(t, search)
	recorded(t, f, db)
	erase := func(more string) api.AuditErased {
		t.Helper()
		out := ok[api.AuditErased](t, f, call{method: http.MethodPost, path: "/v1/audit/erasures", body: `{"person":"a.smit@example.org","reason":"request 4711"` + more + "}"})
		recorded(t, f, db)
		return out
	}
	two := api.AuditErased{Records: 2, Values: 2}
	if tried, did, again := erase(`,"dryRun":true`), erase(""), erase(""); !reflect.DeepEqual([]api.AuditErased{tried, did, again}, []api.AuditErased{two, two, {}}) {
		t.Errorf("tried %+v, did %+v, again %+v", tried, did, again)
	}
	page := f.do(t, call{method: http.MethodGet, path: "/v1/audit"}).Body.String()
	if strings.Contains(page, "smit") || strings.Count(page, `"erased":["request"]`) != 2 || strings.Count(page, `"kind":"Erase"`) != 1 {
		t.Errorf("the log has %s", page)
	}
	for body, code := range map[string]int{
		`{"person":"smit@x\ny","reason":"r"}`: 422, `{"person":"smit","value":"smit","reason":"r"}`: 422, `{"person":"smit"}`: 422, `{"reason":"r"}`: 422, `{"person":"s","reason":"r"}`: 422,
		`{"record":"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162","reason":"r"}`: 404, `{"value":"` + strings.Repeat("smit", 20000) + `","reason":"r"}`: 422,
	} {
		if w := f.do(t, call{method: http.MethodPost, path: "/v1/audit/erasures", body: body}); w.Code != code || strings.Contains(w.Body.String(), "smit") {
			t.Errorf("%.100s: got %d %s", body, w.Code, w.Body)
		}
	}
}
