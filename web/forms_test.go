package web_test

import (
	"bytes"
	"html"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// unread fails the test if somebody reads it.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("a refusal reads the body")
	return 0, http.ErrBodyReadAfterClose
}

func (unread) Close() error { return nil }

// The gate refuses a request before it has room for a body: none is read, whatever its form. The page leads back to
// where the form stood.
func TestARefusalReadsNoBody(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Grant{Rights: []api.Right{api.Read}})
	for _, kind := range []string{"multipart/form-data; boundary=x", "application/x-www-form-urlencoded"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ui/messages/selected", unread{t})
		r.Header.Set("Content-Type", kind)
		w := s.ask(t, r, "Referer", "http://localhost/ui/messages?state=parked")
		wantStatus(t, w.Code, http.StatusForbidden)
		wants(t, body(t, w), `href="/ui/messages?state=parked"`)
	}
}

// A form with files is no form of ours: it is not kept anywhere.
func TestFilesAreNotTaken(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	must(t, parts.WriteField("id", "m1"))
	must(t, parts.Close())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ui/messages/selected", &form)
	r.Header.Set("Content-Type", parts.FormDataContentType())
	wantStatus(t, s.ask(t, r).Code, http.StatusUnprocessableEntity)
	if r.MultipartForm != nil {
		t.Error("its parts were kept")
	}
}

// What was not done stays on the page that says so: it asks for nothing again, and its forms lead back to where the
// person was.
func TestWhatWasNotDoneStaysShown(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump is hot", holdfast.Pending, "mail")
	for path, from := range map[string]string{
		"/ui/notifications/n1/retry?site=north": "/ui/notifications/n1?site=north",
	} {
		w := n.post(t, path, "", "Referer", "http://localhost"+from)
		page := body(t, w)
		if w.Code < 400 {
			t.Fatalf("%s: status %d", path, w.Code)
		}
		wants(t, page, "Not done", `name="next" value="`+from+`"`)
		if m := regexp.MustCompile(`<main[^>]*hx-get`).FindString(page); m != "" {
			t.Errorf("%s is swapped away: %s", path, m)
		}
	}
}

// A page that stays open asks for what changes, without content: the audit log has one look (AU-09). A search of
// payloads is such a look, too.
func TestLooksAtContentAreOnRecordOnce(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump is hot", holdfast.Parked, "mail")
	page := body(t, n.get(t, "/ui/notifications/n1?site=north"))
	wants(t, page, "It is hot.")
	if len(n.calls.list) != 1 {
		t.Fatalf("%d records of one look", len(n.calls.list))
	}
	m := regexp.MustCompile(`hx-get="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page asks for nothing again")
	}
	again := body(t, n.get(t, html.UnescapeString(m[1]), "HX-Request", "true"))
	wants(t, again, "parked", "Timeline", "Discard")
	wantsNone(t, again, "It is hot.", "9223372036854775807")
	if len(n.calls.list) != 1 {
		t.Errorf("%d records after the page asked again", len(n.calls.list))
	}
	n.get(t, "/ui/messages?grep=secret")
	if len(n.calls.list) != 2 || n.calls.list[1].Code != "list-messages" {
		t.Errorf("a search of payloads is not on record: %d records", len(n.calls.list))
	}
}

// What a form sends back is what the node holds, also where the page shows characters by their number.
func TestFormsSendBackWhatIsStored(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	const name = "\u0623\u062d\u0645\u062f\u200f <(ops)>"
	w := n.post(t, "/ui/lists/ops/recipients", url.Values{"channel": {"mail"}, "address": {"a@x.org"}, "name": {name}}.Encode())
	wantStatus(t, w.Code, http.StatusSeeOther)
	page := body(t, n.get(t, "/ui/lists/ops"))
	wantsNone(t, page, "\u200f", `value="`+"\u0623\u062d\u0645\u062f\u27e8")
	wants(t, page, "\u27e8U+200F\u27e9")
	w = n.post(t, "/ui/lists/ops/recipients/import", url.Values{"channel": {"mail"}, "text": {"none of\u200f them"}}.Encode())
	wants(t, body(t, w), "none of&#x200F; them</textarea>")
	list := body(t, n.get(t, "/ui/notifications?subject=a%E2%80%AEb"))
	wants(t, list, `value="a&#x202E;b"`)
	wantsNone(t, list, "\u202e")
}

// Blanks are no reason.
func TestBlanksAreNoReason(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump is hot", holdfast.Parked, "mail")
	for path, form := range map[string]string{
		"/ui/notifications/n1/discard?site=north": "", "/ui/messages/n1/discard": "",
		"/ui/messages/selected": "verb=discard&sure=yes&id=n1&", "/ui/notifications/selected": "verb=discard&sure=yes&id=north%2Fn1&",
	} {
		if w := n.post(t, path, form+"reason=+%09+"); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Header().Get("Location"))
		}
	}
	if state := n.state(t, "n1"); state != "parked" {
		t.Errorf("it is %s", state)
	}
	if strings.Contains(body(t, n.get(t, "/ui/messages/n1/discard")), `maxlength="80"`) {
		t.Error("the reason of one message is shorter than any other")
	}
}
