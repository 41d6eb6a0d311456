package notificaties

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var document string

// placeholder stands in the document for what comes before the paths.
const placeholder = "https://notificaties.example.nl/api/v1"

const (
	yamlType = "application/vnd.oai.openapi"
	jsonType = "application/vnd.oai.openapi+json"
)

func (s *Server) documentRoutes() []route {
	get := func(path string, h handler) route {
		return route{path: path, open: true, methods: map[string]handler{http.MethodGet: h}}
	}
	return []route{
		get("", s.index),
		get("openapi.yaml", func(w http.ResponseWriter, r *http.Request) error { return s.showDocument(w, r, "yaml") }),
		get("openapi.json", func(w http.ResponseWriter, r *http.Request) error { return s.showDocument(w, r, "json") }),
		get("schema/", s.showSchema),
		get("schema/openapi.yaml", func(w http.ResponseWriter, r *http.Request) error { return s.moved(w, r, "yaml") }),
		get("schema/openapi.json", func(w http.ResponseWriter, r *http.Request) error { return s.moved(w, r, "json") }),
	}
}

func (s *Server) index(w http.ResponseWriter, r *http.Request) error {
	return write(w, http.StatusOK, struct {
		Abonnement  string `json:"abonnement"`
		Kanaal      string `json:"kanaal"`
		CloudEvents string `json:"cloudevents"`
	}{s.link(r, "abonnement"), s.link(r, "kanaal"), s.link(r, "cloudevents")})
}

// showDocument answers with the OpenAPI document. It may be read by pages of other sites.
func (s *Server) showDocument(w http.ResponseWriter, r *http.Request, form string) error {
	text := []byte(strings.ReplaceAll(document, placeholder, strings.TrimSuffix(s.link(r, ""), "/")))
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Content-Type", yamlType)
	if form == "json" {
		var tree any
		err := yaml.Unmarshal(text, &tree)
		if err == nil {
			text, err = json.Marshal(tree)
		}
		if err != nil {
			return err
		}
		h.Set("Content-Type", jsonType)
	}
	_, _ = w.Write(text) //nolint:gosec // it is no HTML; an error says that the caller has gone away
	return nil
}

// moved leads from the former address of the document to the present one.
func (s *Server) moved(w http.ResponseWriter, r *http.Request, form string) error {
	if f := r.URL.Query().Get("format"); f == "json" || f == "yaml" {
		form = f
	}
	w.Header().Set("Location", s.link(r, "openapi."+form))
	w.WriteHeader(http.StatusFound)
	return nil
}

// showSchema leads people to the document.
func (s *Server) showSchema(w http.ResponseWriter, r *http.Request) error {
	showPage(w, page("Notificaties API", `<p><a href="../openapi.yaml">openapi.yaml</a>, <a href="../openapi.json">openapi.json</a></p>`))
	return nil
}
