package web_test

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/people"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/web"
)

const password = "correct horse battery"

// box keeps secrets of second factors so that the tests can read them.
type box struct{}

func (box) Ready() bool { return true }

func (box) Seal(person string, secret []byte) (string, error) {
	return person + hex.EncodeToString(secret), nil
}

func (box) Open(person, text string) ([]byte, error) {
	return hex.DecodeString(strings.TrimPrefix(text, person))
}

// house is pages with people in a real store: anna is the administrator, and bob may read.
type house struct {
	*site

	people admin.People
}

func lived(t *testing.T) *house {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "people.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h := &house{}
	h.site = serve(t, api.Everything(), func(_ *web.Settings, s *admin.Service) {
		s.People, s.Factors = nodestore.New(db, nil).People, box{}
		h.people = admin.People{Service: s}
	})
	h.add(t, "anna", api.RoleAdmin)
	h.add(t, "bob", api.RoleRead)
	return h
}

func (h *house) add(t *testing.T, name string, role api.Role) {
	t.Helper()
	if _, err := h.people.Add(admin.As(t.Context(), "root", api.Everything()), &api.NewPerson{Name: name, Role: role, Password: password}); err != nil {
		t.Fatal(err)
	}
}

// nobody is the header of a browser without a session.
func nobody(more ...string) []string { return append([]string{"Authorization", ""}, more...) }

// cookie returns the header of a browser that has what an answer has set.
func cookie(t *testing.T, w *httptest.ResponseRecorder) []string {
	t.Helper()
	for _, c := range w.Result().Cookies() {
		if strings.HasSuffix(c.Name, "holdfast") {
			return nobody("Cookie", c.Name+"="+c.Value)
		}
	}
	t.Fatalf("status %d without a session: %s", w.Code, body(t, w))
	return nil
}

func (h *house) signIn(t *testing.T, name string) []string {
	t.Helper()
	return cookie(t, h.post(t, "/ui/sign-in", url.Values{"name": {name}, "password": {password}}.Encode(), nobody()...))
}

// leads checks where an answer leads.
func leads(t *testing.T, w *httptest.ResponseRecorder, to string) {
	t.Helper()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
		t.Errorf("status %d to %q, want %q: %s", w.Code, w.Header().Get("Location"), to, w.Body)
	}
}

// Who is nobody is led to the sign-in, from there to where they wanted, and out again.
func TestAPersonSignsInAndOut(t *testing.T) {
	t.Parallel()
	h := lived(t)
	leads(t, h.get(t, "/ui/messages?state=parked", nobody()...), "/ui/sign-in?next=%2Fui%2Fmessages%3Fstate%3Dparked")
	leads(t, h.post(t, "/ui/messages/1/retry", "", nobody("Referer", "http://localhost/ui/messages/1")...), "/ui/sign-in?next=%2Fui%2Fmessages%2F1")
	w := h.get(t, "/ui/messages/1/story", nobody("HX-Request", "true", "Referer", "http://localhost/ui/messages/1")...)
	if to := w.Header().Get("HX-Redirect"); w.Code != http.StatusUnauthorized || to != "/ui/sign-in?next=%2Fui%2Fmessages%2F1" || body(t, w) != "" {
		t.Errorf("a fragment: status %d to %s", w.Code, to)
	}
	if w := h.get(t, "/ui/", "Authorization", "Bearer hf_x"); w.Code != http.StatusUnauthorized {
		t.Errorf("a program with a wrong token: status %d", w.Code)
	}
	w = h.get(t, "/ui/sign-in?next=/ui/messages", nobody()...)
	page := body(t, w)
	wants(t, page, `name="next" value="/ui/messages"`, `type="password"`, `autocomplete="current-password"`)
	if w.Code != http.StatusOK || strings.Contains(page, `class="rail"`) || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the sign-in: status %d, %v", w.Code, w.Header())
	}
	for _, elsewhere := range []string{"https://evil.example/", "//evil.example/ui/", "/ui/\\evil", "/v1/x"} {
		wants(t, body(t, h.get(t, "/ui/sign-in?next="+url.QueryEscape(elsewhere), nobody()...)), `name="next" value="/ui/"`)
		leads(t, h.post(t, "/ui/sign-in", url.Values{"name": {"anna"}, "password": {password}, "next": {elsewhere}}.Encode(), nobody()...), "/ui/")
	}
	w = h.post(t, "/ui/sign-in", url.Values{"name": {"anna"}, "password": {password}, "next": {"/ui/messages"}}.Encode(), nobody()...)
	leads(t, w, "/ui/messages")
	anna := cookie(t, w)
	wants(t, body(t, h.get(t, "/ui/", anna...)), ">anna<", `action="/ui/sign-out"`)
	if w := h.post(t, "/ui/sign-out", "", append(anna, "Sec-Fetch-Site", "cross-site")...); w.Code != http.StatusForbidden {
		t.Errorf("a page of another site signs out: status %d", w.Code)
	}
	bob := h.signIn(t, "bob")
	w = h.post(t, "/ui/sign-out", "", anna...)
	leads(t, w, "/ui/sign-in?done=signed-out")
	if c := w.Result().Cookies(); len(c) != 2 || c[0].Name != "holdfast" || c[0].MaxAge >= 0 {
		t.Errorf("cookies %v", c)
	}
	wants(t, body(t, h.follow(t, w, nobody()...)), "Signed out")
	leads(t, h.get(t, "/ui/messages", anna...), "/ui/sign-in?next=%2Fui%2Fmessages")
	if w := h.get(t, "/ui/messages", bob...); w.Code != http.StatusOK {
		t.Errorf("another person: status %d", w.Code)
	}
}

// One answer for all who are not let in, which does not say what was wrong. A page of another site signs nobody in.
func TestASignInIsRefused(t *testing.T) {
	t.Parallel()
	h := lived(t)
	pages := map[string]bool{}
	for _, form := range []url.Values{{"name": {"anna"}, "password": {"x"}}, {"name": {"eve"}, "password": {password}}} {
		w := h.post(t, "/ui/sign-in", form.Encode(), nobody()...)
		if w.Code != http.StatusUnauthorized || len(w.Result().Cookies()) != 0 {
			t.Errorf("%v: status %d, %v", form, w.Code, w.Result().Cookies())
		}
		page := body(t, w)
		wants(t, page, "Not signed in", "The name or the password is wrong", `value="`+form.Get("name")+`"`)
		if strings.Contains(page, password) {
			t.Error("the page has the password")
		}
		pages[strings.ReplaceAll(page, form.Get("name"), "NAME")] = true
	}
	if len(pages) != 1 {
		t.Error("the page says whether there is such a name")
	}
	if w := h.post(t, "/ui/sign-in", url.Values{"name": {"anna"}, "password": {password}}.Encode(), nobody("Sec-Fetch-Site", "cross-site")...); w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 {
		t.Errorf("from a page of another site: status %d", w.Code)
	}
	if w := h.post(t, "/ui/sign-in", "name=anna&password="+strings.Repeat("x", 10<<10), nobody()...); w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form without an end: status %d", w.Code)
	}
	for range 40 {
		w := h.post(t, "/ui/sign-in", "name=eve&password=x", nobody()...)
		if w.Code == http.StatusUnauthorized {
			continue
		}
		wants(t, body(t, w), "wait a minute")
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("status %d, %v", w.Code, w.Header())
		}
		return
	}
	t.Error("guesses have no end")
}

// With a second factor, the password alone opens nothing.
func TestASecondFactorIsAskedFor(t *testing.T) {
	t.Parallel()
	h := lived(t)
	list, kept := people.NewCodes()
	if err := h.people.People.ChangePerson(t.Context(), &people.Change{Name: "anna", Quiet: true, Apply: func(p *people.Person) error {
		p.TOTP, p.Codes = "lost", kept
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	w := h.post(t, "/ui/sign-in", url.Values{"name": {"anna"}, "password": {password}, "next": {"/ui/messages"}}.Encode(), nobody()...)
	leads(t, w, "/ui/sign-in/code?next=%2Fui%2Fmessages")
	half := cookie(t, w)
	leads(t, h.get(t, "/ui/", half...), "/ui/sign-in?next=%2Fui%2F")
	wants(t, body(t, h.get(t, "/ui/sign-in/code?next=/ui/messages", half...)), `autocomplete="one-time-code"`, `value="/ui/messages"`)
	w = h.post(t, "/ui/sign-in/code", "code=123456", half...)
	wants(t, body(t, w), "The code is wrong")
	w = h.post(t, "/ui/sign-in/code", url.Values{"code": {list[0]}, "next": {"/ui/messages"}}.Encode(), half...)
	leads(t, w, "/ui/messages")
	if w := h.get(t, "/ui/", cookie(t, w)...); w.Code != http.StatusOK {
		t.Errorf("signed in: status %d", w.Code)
	}
	wants(t, body(t, h.post(t, "/ui/sign-in/code", url.Values{"code": {list[1]}}.Encode(), half...)), "sign in again")
}
