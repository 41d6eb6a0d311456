package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

//go:embed templates
var sources embed.FS

// templates are those of the pages. Each is parsed at its first use: parsed, it takes a tenth of a
// megabyte, and most nodes show few of them.
type templates struct {
	mu    sync.Mutex
	base  *template.Template // what all pages share
	pages map[string]*template.Template
}

func newTemplates(funcs template.FuncMap) (*templates, error) {
	base, err := template.New("").Funcs(funcs).ParseFS(sources, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("parse templates: %w", err)
	}
	return &templates{base: base, pages: map[string]*template.Template{}}, nil
}

// page returns the template of a page.
func (s *templates) page(name string) (*template.Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.pages[name]; t != nil {
		return t, nil
	}
	t, err := s.base.Clone()
	if err == nil {
		t, err = t.ParseFS(sources, "templates/"+name+".html")
	}
	if err != nil {
		return nil, fmt.Errorf("parse template %s: %w", name, err)
	}
	s.pages[name] = t
	return t, nil
}

// funcs are what all templates may call. What depends on the caller is a method of frame.
func (p *Pages) funcs() template.FuncMap {
	return template.FuncMap{
		"link": p.link, "asset": p.asset, "count": countOf, "bytes": sizeOf, "pill": pillOf, "spark": sparkline, "quote": shellQuote,
		"join": strings.Join, "upper": upper, "ms": inMillis, "outcome": outcomeOf, "deref": deref, "add": func(a, b int) int { return a + b },
	}
}

// view is a page: a template and what it shows.
type view struct {
	status   int // zero: 200
	template string
	title    string
	rail     string  // the entry of the navigation that it belongs to
	live     bool    // it is brought up to date while it is looked at
	part     string  // of the template that is the answer, without anything around it; empty: the page
	bare     bool    // it has no navigation, as for somebody who is not signed in
	said     *notice // what came of a form that was not done
	data     any
}

func (v *view) send(p *Pages, w http.ResponseWriter, r *http.Request) {
	part := "layout"
	if v.part != "" {
		part = v.part
	} else if r.Header.Get("HX-Request") == "true" { // htmx takes the place of the main part only
		part = "main"
	}
	if told := p.announced(w, r); v.said == nil {
		v.said = told
	}
	var out bytes.Buffer // all or nothing: a fault must not leave half a page
	t, err := p.templates.page(v.template)
	if err == nil {
		err = t.ExecuteTemplate(&out, part, p.frame(r, v))
	}
	if err != nil {
		p.Log().LogAttrs(r.Context(), slog.LevelError, "page not rendered", slog.String("page", v.template), slog.Any("error", err))
		http.Error(w, "the node failed; its log says why", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Encoding, HX-Request, Cookie")
	p.write(w, r, max(v.status, http.StatusOK), harmless(out.Bytes()))
}

// write sends a page, compressed if the browser takes that. What fails then is that the browser is gone.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, status int, content []byte) {
	if !zips(r) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.WriteHeader(status)
		_, _ = w.Write(content)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z, _ := p.zippers.Get().(*gzip.Writer)
	z.Reset(w)
	_, _ = z.Write(content)
	_ = z.Close()
	p.zippers.Put(z)
}

func newZipper() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is known
	return z
}
