package httpapi_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

// receives gives the server a way in for peers, which its document then has.
func receives(s *httpapi.Server) {
	s.Mounts = append(s.Mounts, httpapi.Mount{Pattern: "POST /_rf/receive", Handler: http.NotFoundHandler(), Signed: true})
}

var update = flag.Bool("update", false, "rewrite the golden files")

func TestTheOpenAPIDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	w := serve(t, receives).do(t, call{method: "GET", path: "/openapi.json"})
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "application/openapi+json" {
		t.Fatalf("got %d %s", w.Code, got)
	}
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, w.Body.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), w.Body.String()); diff != "" {
		t.Errorf("run go test ./admin/httpapi -update, and look at what changed (-want +got):\n%s", diff)
	}
}

// F1-01: the document has no way in for peers where there is none.
func TestTheDocumentHasWhatTheNodeServes(t *testing.T) {
	t.Parallel()
	var doc document
	if err := json.Unmarshal(serve(t).do(t, call{method: "GET", path: "/openapi.json"}).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if _, ok := doc.Paths["/_rf/receive"]; ok || len(doc.Paths) == 0 {
		t.Errorf("got %d paths, /_rf/receive among them: %t", len(doc.Paths), ok)
	}
}

type document struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		OperationID string                     `json:"operationId"`
		Summary     string                     `json:"summary"`
		Description string                     `json:"description"`
		Responses   map[string]json.RawMessage `json:"responses"`
		Security    []map[string][]string      `json:"security"`
		Tags        []string                   `json:"tags"`
		Right       api.Right                  `json:"x-right"`
		Scoped      bool                       `json:"x-scoped"`
		Parameters  []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"parameters"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	text := serve(t, receives).do(t, call{method: "GET", path: "/openapi.json"}).Body
	var doc document
	if err := json.Unmarshal(text.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("got version %s, want 3.1", doc.OpenAPI)
	}
	for _, path := range []string{
		"/v1/messages", "/v1/messages/{id}", "/v1/messages/{id}/retry", "/v1/messages/{id}/discard", "/v1/messages/{id}/run", "/v1/messages/{id}/reschedule", "/v1/inbox", "/v1/inbox/{id}/done",
		"/v1/destinations", "/v1/backups", "/v1/tokens", "/v1/tokens/{name}", "/v1/tokens/self",
		"/v1/sites", "/v1/sites/{site}", "/v1/sites/{site}/rotate", "/v1/sites/{site}/messages", "/v1/sites/{site}/messages/{id}",
		"/v1/sites/{site}/messages/{id}/retry", "/v1/sites/{site}/messages/{id}/discard", "/v1/sites/{site}/messages/{id}/run", "/v1/sites/{site}/messages/{id}/reschedule", "/v1/health", "/_rf/health", "/_rf/outbox/stats", "/_rf/outbox/failed", "/_rf/outbox/{id}/retry",
		"/v1/notifications", "/v1/notifications/kpis", "/v1/notifications/{id}", "/v1/notifications/{id}/retry", "/v1/notifications/{id}/discard",
		"/v1/destinations/{name}", "/v1/destinations/{name}/pause", "/v1/destinations/{name}/resume",
		"/v1/channels", "/v1/channels/{name}", "/v1/channels/{name}/resume", "/v1/channels/{name}/test",
		"/v1/lists", "/v1/lists/{name}", "/v1/lists/{name}/recipients", "/v1/lists/{name}/recipients/import",
		"/_rf/inbox/stats", "/_rf/receive", "/healthz", "/readyz", "/metrics", "/openapi.json",
	} {
		if len(doc.Paths[path]) == 0 {
			t.Errorf("%s is not in the document", path)
		}
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			name := method + " " + path
			if op.OperationID == "" || op.Summary == "" || op.Description == "" {
				t.Errorf("%s: got %q %q %q, want id, summary and description", name, op.OperationID, op.Summary, op.Description)
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s: parameter %s has no description", name, p.Name)
				}
			}
			if len(op.Security) == 0 || len(op.Tags) != 1 {
				t.Errorf("%s: got the security %v and the tags %v", name, op.Security, op.Tags)
				continue
			}
			if op.Tags[0] == "node" {
				continue // of other packages
			}
			for status, r := range op.Responses {
				if status >= "400" && !strings.Contains(string(r), "application/problem+json") {
					t.Errorf("%s: %s is not a problem", name, status)
				}
			}
		}
	}
	for name := range doc.Components.Schemas {
		if strings.HasPrefix(name, "Error") {
			t.Errorf("schema %s is not ours", name)
		}
	}
}

// Statuses that tests have seen must be in the document.
func TestDocumentedStatusesCoverThoseThatOccur(t *testing.T) {
	t.Parallel()
	var doc document
	if err := json.Unmarshal(serve(t).do(t, call{method: "GET", path: "/openapi.json"}).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"post /v1/messages":                           "200 202 400 401 403 409 413 415 422 500 503 507",
		"get /v1/messages":                            "200 401 403 422 500 503",
		"get /v1/messages/{id}":                       "200 401 403 404 422 500 503",
		"post /v1/messages/{id}/retry":                "200 400 401 403 404 409 413 415 422 500 503 507",
		"post /v1/messages/{id}/discard":              "200 401 403 404 409 422 500 503 507",
		"post /v1/notifications":                      "200 202 400 401 403 409 413 415 422 500 501 503 507",
		"get /v1/notifications/{id}":                  "200 401 403 404 422 500 501 503",
		"post /v1/inbox/{id}/done":                    "200 400 401 403 404 409 413 415 422 500 503 507",
		"post /v1/tokens":                             "201 400 401 403 409 413 415 422 500 501 503 507",
		"delete /v1/tokens/{name}":                    "204 401 403 404 422 500 501 503 507",
		"post /v1/sites":                              "201 400 401 403 409 413 415 422 500 503 507",
		"delete /v1/sites/{site}":                     "204 401 403 404 422 500 503 507",
		"get /v1/sites/{site}/messages":               "200 401 403 404 422 500 503 504",
		"post /v1/sites/{site}/messages/{id}/retry":   "200 400 401 403 404 409 413 415 422 500 503 504 507",
		"post /v1/sites/{site}/messages/{id}/discard": "200 401 403 404 409 422 500 503 504 507",
		"post /v1/notifications/{id}/retry":           "200 400 401 403 404 409 413 415 422 500 501 503 507",
		"put /v1/channels/{name}":                     "200 400 401 403 412 413 415 422 500 501 503 507",
		"delete /v1/channels/{name}":                  "204 401 403 404 409 412 422 500 501 503 507",
		"post /v1/channels/{name}/test":               "200 400 401 403 404 413 415 422 500 501 503",
		"put /v1/lists/{name}":                        "200 400 401 403 412 413 415 422 500 501 503 507",
		"delete /v1/lists/{name}/recipients":          "200 401 403 404 422 500 501 503 507",
		"post /v1/lists/{name}/recipients/import":     "200 400 401 403 404 413 415 422 500 501 503 507",
	}
	for route, statuses := range want {
		method, path, _ := strings.Cut(route, " ")
		for status := range strings.FieldsSeq(statuses) {
			if _, ok := doc.Paths[path][method].Responses[status]; !ok {
				t.Errorf("%s: %s is not documented", route, status)
			}
		}
	}
}
