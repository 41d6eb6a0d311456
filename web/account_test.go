package web_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// between returns what stands in a page between two texts.
func between(t *testing.T, page, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, before)
	text, _, ended := strings.Cut(rest, after)
	if !found || !ended {
		t.Fatalf("the page lacks %q", before)
	}
	return text
}

// codeOf is what an authenticator shows now (RFC 6238).
func codeOf(t *testing.T, secret string) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, time.Now().Unix()/30)
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

// A person changes their own password, whatever they may do else, and ends their sessions.
func TestAPersonKeepsTheirAccount(t *testing.T) {
	t.Parallel()
	h := lived(t)
	bob, elsewhere := h.signIn(t, "bob"), h.signIn(t, "bob")
	page := body(t, h.get(t, "/ui/account", bob...))
	wants(t, page, "role read", "this one", "Only the password is asked for")
	if strings.Contains(page, `href="/ui/people"`) {
		t.Error("who may only read is led to the people")
	}
	change := func(current, fresh, again string) string {
		w := h.post(t, "/ui/account/password", url.Values{"current": {current}, "new": {fresh}, "again": {again}}.Encode(), bob...)
		return fmt.Sprint(w.Code, w.Header().Get("Location"), body(t, w))
	}
	const fresh = "staple under the hoof"
	wants(t, change("wrong", fresh, fresh), "403", "is not the password")
	wants(t, change(password, "short", "short"), "422", "must have 12 to 256 bytes")
	wants(t, change(password, fresh, "other"), "422", "is another one")
	wants(t, change(password, fresh, fresh), "303/ui/account?done=password")
	if w := h.get(t, "/ui/account", elsewhere...); w.Code != http.StatusSeeOther {
		t.Errorf("another session: status %d", w.Code)
	}
	id := between(t, body(t, h.get(t, "/ui/account", bob...)), "/ui/account/sessions/", "/end")
	anna := h.signIn(t, "anna")
	mine := between(t, body(t, h.get(t, "/ui/account", anna...)), "/ui/account/sessions/", "/end")
	wantStatus(t, h.post(t, "/ui/account/sessions/"+mine+"/end", "", bob...).Code, http.StatusNotFound)
	leads(t, h.post(t, "/ui/account/sessions/"+id+"/end", "", bob...), "/ui/account?done=ended")
	leads(t, h.get(t, "/ui/account", bob...), "/ui/sign-in?next=%2Fui%2Faccount")
	wantStatus(t, h.get(t, "/ui/account").Code, http.StatusNotFound) // a token
}

// A second factor is set by the person, with a code that shows that they have it; from then on a sign-in asks for it.
func TestAPersonSetsASecondFactor(t *testing.T) {
	t.Parallel()
	h := lived(t)
	bob := h.signIn(t, "bob")
	page := body(t, h.post(t, "/ui/account/totp/new", "", bob...))
	secret := between(t, page, `name="secret" value="`, `"`)
	wants(t, page, "otpauth://totp/plant-4:bob?secret="+secret)
	form := url.Values{"secret": {secret}, "address": {"otpauth://x"}, "code": {"000"}, "password": {password}}
	wants(t, body(t, h.post(t, "/ui/account/totp", form.Encode(), bob...)), "is not the code of now", secret)
	form.Set("code", codeOf(t, secret))
	form.Set("password", "wrong")
	wants(t, body(t, h.post(t, "/ui/account/totp", form.Encode(), bob...)), "is not the password", secret)
	form.Set("password", password)
	page = body(t, h.post(t, "/ui/account/totp", form.Encode(), bob...))
	wants(t, page, "they are not shown again", "Recovery codes left: 10")
	recovery := between(t, between(t, page, `<ul class="ids mono">`, "</ul>"), "<li>", "</li>")
	if strings.Contains(body(t, h.get(t, "/ui/account", bob...)), recovery) {
		t.Error("the codes are shown again")
	}
	w := h.post(t, "/ui/sign-in", url.Values{"name": {"bob"}, "password": {password}}.Encode(), nobody()...)
	leads(t, w, "/ui/sign-in/code?next=%2Fui%2F")
	leads(t, h.post(t, "/ui/sign-in/code", "code="+recovery, cookie(t, w)...), "/ui/")
}

// An administrator adds people and changes what they may do.
func TestPeopleAreKept(t *testing.T) {
	t.Parallel()
	h := lived(t)
	anna := h.signIn(t, "anna")
	wants(t, body(t, h.get(t, "/ui/people", anna...)), ">anna<", ">bob<", `href="/ui/people"`)
	w := h.post(t, "/ui/people", url.Values{"name": {"bob"}, "display": {"Bob"}, "role": {"operate"}, "password": {password}}.Encode(), anna...)
	wantStatus(t, w.Code, http.StatusConflict)
	page := body(t, w)
	wants(t, page, "is taken", `value="Bob"`, "<option selected>operate")
	if strings.Contains(page, password) {
		t.Error("the page has the password")
	}
	leads(t, h.post(t, "/ui/people", url.Values{"name": {"carl"}, "role": {"read"}, "password": {password}}.Encode(), anna...), "/ui/people/carl?done=added")
	carl := h.signIn(t, "carl")
	wantStatus(t, h.post(t, "/ui/destinations/erp/pause", "", carl...).Code, http.StatusForbidden)
	w = h.post(t, "/ui/people/carl/rights", "role=operate", anna...)
	leads(t, w, "/ui/people/carl?done=granted")
	wants(t, body(t, h.follow(t, w, anna...)), "Role changed", "<option selected>operate")
	if w := h.post(t, "/ui/messages/none/retry", "", carl...); w.Code != http.StatusNotFound {
		t.Errorf("carl may not operate: status %d", w.Code)
	}
	leads(t, h.post(t, "/ui/people/carl/end", "", anna...), "/ui/people/carl?done=ended")
	wantStatus(t, h.get(t, "/ui/", carl...).Code, http.StatusSeeOther)
	carl = h.signIn(t, "carl")
	leads(t, h.post(t, "/ui/people/carl/disable", "", anna...), "/ui/people/carl?done=barred")
	wantStatus(t, h.get(t, "/ui/", carl...).Code, http.StatusSeeOther)
	wantStatus(t, h.post(t, "/ui/sign-in", url.Values{"name": {"carl"}, "password": {password}}.Encode(), nobody()...).Code, http.StatusUnauthorized)
	leads(t, h.post(t, "/ui/people/carl/enable", "", anna...), "/ui/people/carl?done=enabled")
	h.signIn(t, "carl")
	w = h.post(t, "/ui/people/anna/disable", "", anna...)
	wantStatus(t, w.Code, http.StatusConflict)
	wants(t, body(t, w), "the last one with the role admin")
	wantStatus(t, h.get(t, "/ui/people/none", anna...).Code, http.StatusNotFound)
}

// What only an administrator may do is refused to others who post it by hand, and recorded under their name.
func TestPeopleAreOnlyForAdministrators(t *testing.T) {
	t.Parallel()
	h := lived(t)
	bob := h.signIn(t, "bob")
	for path, operation := range map[string]string{
		"": "add-person", "/anna/rights": "set-person-rights", "/anna/disable": "disable-person", "/anna/enable": "enable-person", "/anna/end": "end-person-sessions",
	} {
		before := len(h.calls.list)
		wantStatus(t, h.post(t, "/ui/people"+path, "role=read&name=eve&password="+url.QueryEscape(password), bob...).Code, http.StatusForbidden)
		if told := h.calls.list[before:]; len(told) != 1 || told[0].Actor != "user:bob" || told[0].Code != operation || told[0].Outcome != holdfast.Permanent {
			t.Errorf("%s: recorded %+v", path, told)
		}
	}
	wantStatus(t, h.get(t, "/ui/people", bob...).Code, http.StatusForbidden)
	wantStatus(t, h.get(t, "/ui/people/anna", bob...).Code, http.StatusForbidden)
	if who, err := h.people.People.Person(t.Context(), "anna"); err != nil || !who.Administers() {
		t.Errorf("anna is %+v, %v", who, err)
	}
}
