package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/gate"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/web"
)

// calls keeps what the audit log would have.
type calls struct {
	mu   sync.Mutex
	list []holdfast.Entry
}

func (c *calls) Append(_ context.Context, entries ...holdfast.Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, entries...)
	return holdfast.CheckEntries(entries)
}

// site is pages over a real store, behind a real gate.
type site struct {
	http.Handler

	store *sqlite.DB
	calls *calls
	token string
}

// serve returns pages. Each change is made before they are built.
func serve(t *testing.T, may api.Grant, change ...func(*web.Settings, *admin.Service)) *site {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &site{store: store, calls: &calls{}, token: bearer.New("hf_")}
	service := &admin.Service{
		Outbox: store, Enqueuer: store, Inbox: store, Name: "plant-4", Calls: s.calls,
		Destinations: func() []admin.Destination { return []admin.Destination{{Name: "erp"}, {Name: `a/b.c+d"x`}} },
	}
	settings := web.Settings{}
	for _, c := range change {
		c(&settings, service)
	}
	pages, err := web.New(settings, service)
	if err != nil {
		t.Fatal(err)
	}
	keys := gate.Keys{
		Denied: service.Denied, As: admin.As, Refuse: service.Refusal,
		Find: func(context.Context, [32]byte) (string, string, error) { return "ana", may.String(), nil },
	}
	if service.People != nil {
		keys.Session, keys.InSession = service.FindSession, admin.InSession
	}
	if s.Handler, err = gate.New(gate.Settings{AuthRequired: true, Page: pages.Refuse}, keys, pages.Routes(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// get asks as a browser does.
func (s *site) get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return s.ask(t, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody), header...)
}

// post sends a form.
func (s *site) post(t *testing.T, path, form string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.ask(t, r, header...)
}

func (s *site) ask(t *testing.T, r *http.Request, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r.Host = "localhost"
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Accept", "text/html")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// follow asks for the page that a form leads to, as a browser does: with the cookies of the answer.
func (s *site) follow(t *testing.T, w *httptest.ResponseRecorder, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	var cookies []string
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Cookie" {
			cookies = append(cookies, header[i+1])
		}
	}
	for _, c := range w.Result().Cookies() {
		if c.MaxAge >= 0 {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
	}
	return s.get(t, w.Header().Get("Location"), append(header, "Cookie", strings.Join(cookies, "; "))...)
}

func body(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wants(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
}

// U36, U14: every answer says that it is HTML, and the policy allows nothing in a page.
func TestEveryAnswerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	for path, status := range map[string]int{"/ui/": 200, "/ui/design": 200, "/ui/nowhere": 404} {
		for _, fragment := range []string{"", "true"} {
			w := s.get(t, path, "HX-Request", fragment)
			h := w.Header()
			if w.Code != status || h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s (%q): status %d, %v", path, fragment, w.Code, h)
			}
			if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("%s: policy %s", path, csp)
			}
			page := body(t, w)
			if strings.Contains(page, " style=") || strings.Contains(page, "<script>") || strings.Contains(page, " onclick=") {
				t.Errorf("%s has a style or a script in it", path)
			}
			if whole := strings.Contains(page, "<html"); whole == (fragment != "") {
				t.Errorf("%s (%q): whole is %t", path, fragment, whole)
			}
		}
	}
}

// U22: behind a proxy below a path, every link begins with it.
func TestLinksBeginWithTheBase(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"/x", "/x/"} {
		s := serve(t, api.Everything(), func(to *web.Settings, _ *admin.Service) { to.Base = base })
		for _, path := range []string{"/ui/", "/ui/design", "/ui/nowhere"} {
			page := body(t, s.get(t, path))
			for _, attr := range []string{`href="`, `src="`, `action="`, `hx-get="`} {
				for _, rest := range strings.Split(page, attr)[1:] {
					if to, _, _ := strings.Cut(rest, `"`); !strings.HasPrefix(to, "/x/ui/") && !strings.HasPrefix(to, "#") {
						t.Errorf("%s: %s%s", path, attr, to)
					}
				}
			}
		}
		if w := s.get(t, "/"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/x/ui/" {
			t.Errorf("/ leads to %d %s", w.Code, w.Header().Get("Location"))
		}
	}
}

// A program that asks for / gets a problem document, as for any other path.
func TestAProgramIsNotLedToThePages(t *testing.T) {
	t.Parallel()
	w := serve(t, api.Everything()).get(t, "/", "Accept", "*/*")
	if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != api.ProblemType {
		t.Errorf("status %d, %s", w.Code, w.Header().Get("Content-Type"))
	}
}

// Assets are named by their content, and kept for ever.
func TestAssetsAreKept(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	_, rest, _ := strings.Cut(body(t, s.get(t, "/ui/")), `rel="stylesheet" href="`)
	path, _, _ := strings.Cut(rest, `"`)
	w := s.get(t, path, "Accept-Encoding", "gzip")
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Fatalf("status %d, %v", w.Code, w.Header())
	}
	if again := s.get(t, path, "Accept-Encoding", "gzip", "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("asked again: status %d", again.Code)
	}
	if other := s.get(t, "/ui/static/style.css"); other.Code != http.StatusNotFound {
		t.Errorf("without its hash: status %d", other.Code)
	}
}

// U32: a browser cannot be made to ask all the time. U26: times have their zone.
func TestPreferencesAreClamped(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	for given, want := range map[string]string{"1": "every 5s", "-3": "every 5s", "1000000000": "every 300s", "x": "every 10s", "99999999999999999999": "every 10s"} {
		w := s.post(t, "/ui/preferences", "theme=dark&zone=America/New_York&next=%2Fui%2Fdesign&every="+given)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/design" {
			t.Fatalf("%s: status %d to %s", given, w.Code, w.Header().Get("Location"))
		}
		var cookies []string
		for _, c := range w.Result().Cookies() {
			if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
				t.Errorf("cookie %s", c)
			}
			cookies = append(cookies, c.Name+"="+c.Value)
		}
		header := []string{"Cookie", strings.Join(cookies, "; ")}
		wants(t, body(t, s.get(t, "/ui/", header...)), `hx-trigger="`+want+`"`, `data-theme="dark"`)
		wants(t, body(t, s.get(t, "/ui/design", header...)), "20:59:30", "EDT", "ago")
	}
	for _, next := range []string{"https://evil.example/", "//evil.example/ui/", "/ui/\\evil", "/v1/x", "javascript:1"} {
		if to := s.post(t, "/ui/preferences", "next="+next).Header().Get("Location"); to != "/ui/" {
			t.Errorf("%s leads to %s", next, to)
		}
	}
}

// U14: what would act is shown, and does not act.
func TestTextOfOthersIsText(t *testing.T) {
	t.Parallel()
	page := body(t, serve(t, api.Everything()).get(t, "/ui/design"))
	wants(t, page, "&lt;script&gt;alert(1)&lt;/script&gt;", "⟨U+202E⟩", "⟨U+0007⟩")
	for _, acts := range []string{"\u202e", "\x00", "\a"} {
		if strings.Contains(page, acts) {
			t.Errorf("the page has %q", acts)
		}
	}
}

// A refusal of a page is a page.
func TestARefusalIsAPage(t *testing.T) {
	t.Parallel()
	w := serve(t, api.Grant{Rights: []api.Right{api.AuditRead}}).get(t, "/ui/")
	if w.Code != http.StatusForbidden || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	wants(t, body(t, w), "needs the right read")
	s := serve(t, api.Everything())
	w = s.ask(t, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/ui/messages", http.NoBody))
	if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("a method that no page takes: status %d, %v", w.Code, w.Header())
	}
}
