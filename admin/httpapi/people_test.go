package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/gate"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/people"
	"github.com/holdfast-mq/holdfast/sqlite"
)

const password, otherPassword = "correct horse battery", "staple under the hoof"

// sealed keeps secrets of second factors in a box that is easy to open. That of a node is tested there.
type sealed struct{}

func (sealed) Ready() bool { return true }

func (sealed) Seal(person string, secret []byte) (string, error) {
	return person + hex.EncodeToString(secret), nil
}

func (sealed) Open(person, text string) ([]byte, error) {
	return hex.DecodeString(strings.TrimPrefix(text, person))
}

// house is a server with people in a real store, of which anna is the administrator and bob may read.
type house struct {
	*fixture
	log    *callLog
	signIn admin.SignIn
	store  *nodestore.People
	admin  map[string]string // header of a token
}

func newHouse(t *testing.T) *house {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	kept := nodestore.New(db, nil)
	h := &house{log: &callLog{}, store: kept.People}
	h.fixture = serve(t, locked, func(s *httpapi.Server) {
		s.Calls, s.Tokens, s.People, s.Factors = h.log, kept.Tokens, h.store, sealed{}
	})
	h.signIn = admin.SignIn{Service: h.Service}
	h.admin = h.token(t, `{"name":"root","role":"admin"}`)
	for _, body := range []string{`{"name":"anna","role":"admin"`, `{"name":"bob","displayName":"Bob","role":"read"`} {
		h.is(t, http.StatusCreated, call{method: "POST", path: "/v1/people", body: body + `,"password":"` + password + `"}`, header: h.admin})
	}
	return h
}

func (h *house) is(t *testing.T, status int, c call) string {
	t.Helper()
	w := h.do(t, c)
	if w.Code != status {
		t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, w.Code, w.Body, status)
	}
	return w.Body.String()
}

// cookie signs somebody in, and returns the header of their requests.
func (h *house) cookie(t *testing.T, name, password string) map[string]string {
	t.Helper()
	in, err := h.signIn.Password(t.Context(), name, password, netip.Addr{})
	if err != nil || in.Pending {
		t.Fatalf("%s signs in: %+v, %v", name, in, err)
	}
	return cookieOf(in.Secret)
}

func cookieOf(secret string) map[string]string {
	r, _ := http.NewRequest(http.MethodGet, "/", http.NoBody)
	c := gate.SessionCookie(r, secret)
	return map[string]string{"Cookie": c.Name + "=" + c.Value}
}

func (h *house) told(t *testing.T, want string) {
	t.Helper()
	if !slices.Contains(h.log.lines, want) {
		t.Errorf("the journal lacks %q; it has\n%s", want, strings.Join(h.log.lines, "\n"))
	}
}

// A person does by a session what their rights allow, under a name that no token can have.
func TestAPersonAsksByASession(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	bob := h.cookie(t, "bob", password)
	if body := h.is(t, 200, call{method: "GET", path: "/v1/tokens/self", header: bob}); !strings.Contains(body, `"name":"user:bob","role":"read"`) {
		t.Errorf("bob is %s", body)
	}
	h.is(t, 403, call{method: "GET", path: "/v1/people", header: bob})
	h.told(t, "called list-people  user:bob permanent")
	h.told(t, "called sign-in  user:bob delivered")
	// What a foreign page makes the browser of anna send changes nothing.
	anna := h.cookie(t, "anna", password)
	forged := map[string]string{"Sec-Fetch-Site": "cross-site", "Cookie": anna["Cookie"]}
	h.is(t, 403, call{method: "POST", path: "/v1/people/bob/disable", header: forged})
	forged["Sec-Fetch-Site"] = "same-origin"
	h.is(t, 204, call{method: "POST", path: "/v1/people/bob/disable", header: forged})
	h.told(t, "called disable-person bob user:anna delivered")
	h.is(t, 401, call{method: "GET", path: "/v1/tokens/self", header: bob}) // at once
	if _, err := h.signIn.Password(t.Context(), "bob", password, netip.Addr{}); err == nil {
		t.Error("a disabled person signs in")
	}
	h.is(t, 204, call{method: "POST", path: "/v1/people/bob/enable", header: anna})
	bob = h.cookie(t, "bob", password)
	h.is(t, 204, call{method: "PUT", path: "/v1/people/bob/rights", body: `{"rights":["read"],"destinations":["billing"]}`, header: anna})
	if body := h.is(t, 200, call{method: "GET", path: "/v1/tokens/self", header: bob}); !strings.Contains(body, `"destinations":["billing"]`) {
		t.Errorf("bob is %s", body)
	}
	for _, c := range []map[string]string{{"Cookie": "holdfast=hfs_x"}, cookieOf(api.NewSessionSecret()), {"Cookie": "__Host-" + bob["Cookie"]}} {
		h.is(t, 401, call{method: "GET", path: "/v1/tokens/self", header: c})
	}
}

// What is anybody's own is nobody else's, but for administrators.
func TestOnesOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	bob, anna := h.cookie(t, "bob", password), h.cookie(t, "anna", password)
	other := h.cookie(t, "bob", password)
	for _, c := range []call{
		{method: "GET", path: "/v1/people/anna"},
		{method: "PUT", path: "/v1/people/anna/password", body: `{"password":"` + otherPassword + `","current":"` + password + `"}`},
		{method: "POST", path: "/v1/people/anna/totp"},
		{method: "PUT", path: "/v1/people/anna/totp", body: `{"secret":"x","code":"1"}`},
		{method: "GET", path: "/v1/people/anna/sessions"},
		{method: "DELETE", path: "/v1/people/anna/sessions"},
		{method: "DELETE", path: "/v1/people/bob/totp"},
		{method: "PUT", path: "/v1/people/bob/rights", body: `{"role":"admin"}`},
		{method: "POST", path: "/v1/people/bob/enable"},
		{method: "DELETE", path: "/v1/people/anna"},
		{method: "POST", path: "/v1/people", body: `{"name":"eve","role":"admin","password":"` + password + `"}`},
		{method: "GET", path: "/v1/sessions"},
	} {
		c.header, h.log.lines = bob, nil
		h.is(t, 403, c)
		if len(h.log.lines) != 1 || !strings.HasSuffix(h.log.lines[0], "user:bob permanent") {
			t.Errorf("%s %s: the journal has %q", c.method, c.path, h.log.lines)
		}
	}
	h.is(t, 403, call{method: "PUT", path: "/v1/people/bob/password", body: `{"password":"` + otherPassword + `","current":"` + otherPassword + `"}`, header: bob})
	h.is(t, 422, call{method: "PUT", path: "/v1/people/bob/password", body: `{"password":"short","current":"` + password + `"}`, header: bob})
	sessions := ok[api.SessionList](t, h.fixture, call{method: "GET", path: "/v1/people/anna/sessions", header: anna})
	if len(sessions.Sessions) != 1 || !sessions.Sessions[0].Current {
		t.Fatalf("anna has %+v", sessions)
	}
	h.is(t, 404, call{method: "DELETE", path: "/v1/sessions/" + sessions.Sessions[0].ID, header: bob})
	h.is(t, 204, call{method: "PUT", path: "/v1/people/bob/password", body: `{"password":"` + otherPassword + `","current":"` + password + `"}`, header: bob})
	h.is(t, 200, call{method: "GET", path: "/v1/people/bob", header: bob})
	h.is(t, 401, call{method: "GET", path: "/v1/people/bob", header: other})
	h.cookie(t, "bob", otherPassword)
	if body := h.is(t, 200, call{method: "DELETE", path: "/v1/people/bob/sessions", header: anna}); !strings.Contains(body, `"ended":2`) {
		t.Errorf("ended: %s", body)
	}
	h.is(t, 401, call{method: "GET", path: "/v1/people/bob", header: bob})
}

// Somebody who can operate the node is left.
func TestTheLastAdministrator(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	anna := h.cookie(t, "anna", password)
	h.is(t, 204, call{method: "DELETE", path: "/v1/tokens/root", header: anna}) // since there is anna
	for _, c := range []call{
		{method: "POST", path: "/v1/people/anna/disable"},
		{method: "DELETE", path: "/v1/people/anna"},
		{method: "PUT", path: "/v1/people/anna/rights", body: `{"role":"read"}`},
	} {
		c.header = anna
		h.is(t, 409, c)
	}
	h.is(t, 204, call{method: "PUT", path: "/v1/people/bob/rights", body: `{"role":"admin"}`, header: anna})
	h.is(t, 204, call{method: "PUT", path: "/v1/people/anna/rights", body: `{"role":"read"}`, header: anna})
	h.is(t, 403, call{method: "DELETE", path: "/v1/people/bob", header: anna})
	bob := h.cookie(t, "bob", password)
	h.is(t, 204, call{method: "DELETE", path: "/v1/people/bob?force=true", header: bob})
	h.is(t, 409, call{method: "POST", path: "/v1/people", body: `{"name":"eve","role":"read","password":"` + password + `"}`, header: h.token(t, `{"name":"late","role":"admin","for":"1h"}`)})
}

// Whoever guesses learns nothing, and has few tries.
func TestGuessesAtPasswords(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var first string
	for _, guess := range [][2]string{{"bob", "wrong password"}, {"nobody", password}, {"bob", ""}, {"nobody", strings.Repeat("x", 1000)}} {
		_, err := h.signIn.Password(t.Context(), guess[0], guess[1], netip.MustParseAddr("192.0.2.7"))
		if err == nil {
			t.Fatalf("%v signs in", guess)
		}
		if first == "" {
			first = err.Error()
		} else if err.Error() != first {
			t.Errorf("%v is told %q, another %q", guess, err, first)
		}
	}
	h.told(t, "called sign-in  user:bob permanent")
	h.told(t, "called sign-in  stranger permanent") // what was typed may be a password
	status := func(err error) int {
		p, _ := errors.AsType[*api.Problem](err)
		if p == nil {
			return 0
		}
		return p.Status
	}
	tries := 0
	for ; tries < 30; tries++ {
		if _, err := h.signIn.Password(t.Context(), "bob", "wrong password", netip.Addr{}); status(err) == http.StatusTooManyRequests {
			break
		}
	}
	if tries > 20 {
		t.Errorf("%d guesses at one name", tries)
	}
	tries = 0
	for n := range 100 {
		if _, err := h.signIn.Password(t.Context(), fmt.Sprint("n", n), "", netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", n))); status(err) == http.StatusTooManyRequests {
			break
		}
		tries++
	}
	if tries > 60 {
		t.Errorf("%d guesses from one network", tries)
	}
	if n := len(h.log.lines); n > 20 {
		t.Errorf("guesses have written %d entries", n)
	}
	h.cookie(t, "anna", password)
}

// A second factor is asked for, each code once, and a recovery code in its place.
func TestASecondFactor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	bob := h.cookie(t, "bob", password)
	n := ok[api.NewTOTP](t, h.fixture, call{method: "POST", path: "/v1/people/bob/totp", header: bob})
	codeAt := func(at time.Time) string {
		return codeOf(t, n.Secret, at)
	}
	body := func(code, password string) string {
		return fmt.Sprintf(`{"secret":%q,"code":%q,"password":%q}`, n.Secret, code, password)
	}
	h.is(t, 422, call{method: "PUT", path: "/v1/people/bob/totp", body: body("000000", password), header: bob})
	h.is(t, 403, call{method: "PUT", path: "/v1/people/bob/totp", body: body(codeAt(time.Now()), otherPassword), header: bob})
	used := codeAt(time.Now())
	codes := ok[api.RecoveryCodes](t, h.fixture, call{method: "PUT", path: "/v1/people/bob/totp", body: body(used, password), header: bob})
	p, err := h.store.Person(t.Context(), "bob")
	if err != nil || strings.Contains(p.TOTP, n.Secret) || len(codes.Codes) != 10 || strings.Contains(p.Codes, codes.Codes[0]) {
		t.Errorf("kept: %+v, %v", p, err)
	}
	half := func() string {
		t.Helper()
		in, err := h.signIn.Password(t.Context(), "bob", password, netip.Addr{})
		if err != nil || !in.Pending {
			t.Fatalf("half a sign-in: %+v, %v", in, err)
		}
		h.is(t, 401, call{method: "GET", path: "/v1/tokens/self", header: cookieOf(in.Secret)})
		return in.Secret
	}
	secret := half()
	for _, code := range []string{used, "000000", ""} {
		if _, err := h.signIn.Code(t.Context(), secret, code, netip.Addr{}); err == nil {
			t.Errorf("the code %s is taken", code)
		}
	}
	in, err := h.signIn.Code(t.Context(), secret, codeAt(time.Now().Add(30*time.Second)), netip.Addr{})
	if err != nil || in.Pending {
		t.Fatalf("the next code: %+v, %v", in, err)
	}
	h.is(t, 200, call{method: "GET", path: "/v1/tokens/self", header: cookieOf(in.Secret)})
	if _, err := h.signIn.Code(t.Context(), secret, codes.Codes[0], netip.Addr{}); err == nil {
		t.Error("half a session is good for two")
	}
	if _, err := h.signIn.Code(t.Context(), half(), codes.Codes[0], netip.Addr{}); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
	if p, _ := h.store.Person(t.Context(), "bob"); people.CodesLeft(p.Codes) != 9 {
		t.Errorf("%d recovery codes are left", people.CodesLeft(p.Codes))
	}
	if err := h.signIn.Out(t.Context(), in.Secret); err != nil {
		t.Error(err)
	}
	h.is(t, 401, call{method: "GET", path: "/v1/tokens/self", header: cookieOf(in.Secret)})
	h.told(t, "called sign-out  user:bob delivered")
	h.is(t, 204, call{method: "DELETE", path: "/v1/people/bob/totp", header: h.admin})
	h.cookie(t, "bob", password)
}

// A hash of a former release, or of another program, is made anew at a sign-in.
func TestAnOldHashIsRenewed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const old = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if err := h.store.ChangePerson(t.Context(), &people.Change{Name: "bob", Apply: func(p *people.Person) error { p.Password = old; return nil }}); err != nil {
		t.Fatal(err)
	}
	h.cookie(t, "bob", "password")
	p, err := h.store.Person(t.Context(), "bob")
	if fits, stale, _ := people.VerifyPassword(t.Context(), p.Password, "password"); err != nil || !fits || stale {
		t.Errorf("%s fits: %v, old: %v, %v", p.Password, fits, stale, err)
	}
}

// codeOf is the code of a secret at a time.
func codeOf(t *testing.T, text string, at time.Time) string {
	t.Helper()
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, at.Unix()/30)
	sum := mac.Sum(nil)
	n := binary.BigEndian.Uint32(sum[sum[19]&15:]) & (1<<31 - 1)
	return fmt.Sprintf("%06d", n%1e6)
}
