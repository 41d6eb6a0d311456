package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/audit"
)

// What the API answers verifies as it is, and a record that is not signed yet is signed for it.
func TestARecordIsProved(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	calls(t, f, db, "x", "y")
	r := ok[api.AuditPage](t, f, call{method: http.MethodGet, path: "/v1/audit?target=x"}).Records[0]
	w := f.do(t, call{method: http.MethodGet, path: "/v1/audit/" + r.ID + "/proof"})
	report, err := audit.VerifyProof(w.Body.Bytes(), audit.VerifyOptions{Keys: []audit.Public{f.AuditLog.Key.Public()}})
	if err != nil || report.Status != audit.Intact || report.Logs[0].Size != r.Seq || report.Logs[0].Origin != r.Log {
		t.Errorf("got %+v, %v", report, err)
	}
	recorded(t, f, db)
	c := ok[api.AuditCheckpoint](t, f, call{method: http.MethodPost, path: "/v1/audit/checkpoint"})
	if read, err := audit.ParseCheckpoint(c.Note); err != nil || c.Records < r.Seq || read.Size != c.Records || c.Log != r.Log || c.Key != f.AuditLog.Key.VerifierKey(c.Log) {
		t.Errorf("got %+v, %v", c, err)
	}
	if w := f.do(t, call{method: http.MethodGet, path: "/v1/audit/0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162/proof"}); w.Code != http.StatusNotFound {
		t.Errorf("a record that is not kept: got %d", w.Code)
	}
	off := serve(t, func(s *httpapi.Server) { s.Records = f.Records })
	if w := off.do(t, call{method: http.MethodPost, path: "/v1/audit/checkpoint"}); w.Code != http.StatusNotImplemented {
		t.Errorf("without a log: got %d", w.Code)
	}
}
