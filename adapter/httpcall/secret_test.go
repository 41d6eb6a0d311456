package httpcall_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/httpcall"
)

const ownSecret = `sk-live/4eC39HqLyj+WDarjtT"1zdp7dc`

// quoting are ways in which a target says what it was sent.
func quoting(secret string) map[string]string {
	return map[string]string{
		"as it is": secret, "in a query": url.QueryEscape(secret), "in a path": url.PathEscape(secret), "quoted": fmt.Sprintf("%q", secret),
		"in HTML": html.EscapeString(secret), "in base64": base64.StdEncoding.EncodeToString([]byte(secret)), "a piece": "…" + secret[3:21] + "…",
		"with a user": base64.StdEncoding.EncodeToString([]byte("holdfast:" + secret)), "behind much": strings.Repeat("x", 285) + secret,
		"again and again": strings.Repeat(secret, 40), "behind blanks": strings.Repeat(" ", 250) + secret,
	}
}

// leaks says whether 8 bytes in a row of a secret or its base64 are in a text.
func leaks(text, secret string) bool {
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("holdfast:" + secret))[12:]} {
		for i := 0; i+8 <= len(form); i++ {
			if strings.Contains(text, form[i:i+8]) {
				return true
			}
		}
	}
	return false
}

// A target that quotes the credential it refuses makes no copy of it.
func TestATargetThatQuotesTheCredential(t *testing.T) {
	t.Parallel()
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, ownSecret)
	}))
	defer issuer.Close()
	byToken, err := httpcall.ClientCredentials(httpcall.OAuth2{URL: issuer.URL, ClientID: "holdfast", ClientSecret: "another secret, of the client"})
	if err != nil {
		t.Fatal(err)
	}
	byClient, err := httpcall.ClientCredentials(httpcall.OAuth2{URL: tokensOf(t, "an access token"), ClientID: "holdfast", ClientSecret: ownSecret})
	if err != nil {
		t.Fatal(err)
	}
	for name, conf := range map[string]httpcall.Config{
		"basic": {Auth: httpcall.Basic("holdfast", ownSecret)}, "bearer": {Auth: httpcall.Bearer(ownSecret)}, "key": {Auth: httpcall.Key("X-Api-Key", ownSecret)},
		"key with a scheme": {Auth: httpcall.Key("Authorization", "Token "+ownSecret)}, "access token": {Auth: byToken}, "client secret": {Auth: byClient},
		"header": {Header: http.Header{"X-Api-Key": {ownSecret}}}, "query": {URL: "?api_key=" + url.QueryEscape(ownSecret)}, "userinfo": {URL: ownSecret},
	} {
		for form, quoted := range quoting(ownSecret) {
			if strings.Contains(form, "user") && name != "basic" && name != "userinfo" && name != "client secret" {
				continue // nothing was sent so
			}
			for _, status := range []int{401, 422, 500, 302, 0} {
				at := serve(t, quotes(status, quoted))
				c := conf
				switch name {
				case "userinfo":
					c.URL = strings.Replace(at, "http://", "http://"+url.UserPassword("holdfast", ownSecret).String()+"@", 1)
				default:
					c.URL = at + "/" + conf.URL
				}
				c.Excerpt = 300
				f := failureOf(t, made(t, c))
				if f == nil || leaks(f.Error()+f.Code, ownSecret) || len(f.Error()) > 5000 {
					t.Errorf("%s, quoted %s with %d: got %v", name, form, status, f)
				}
			}
		}
	}
}

func tokensOf(t *testing.T, token string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, token)
	})
}

// quotes answers with a text in its body; 302: in an address that cannot be
// read; 0: in place of an answer. Both stand in errors of net/http.
func quotes(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch status {
		case 302:
			w.Header().Set("Location", "http://%zz/"+text)
			w.WriteHeader(status)
		case 0:
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err == nil {
				answerBadly(conn, rw, text)
			}
		default:
			answer(status, "wrong key: "+text)(w, nil)
		}
	}
}

func answerBadly(conn net.Conn, rw *bufio.ReadWriter, text string) {
	_, _ = io.WriteString(rw, text+"\r\n\r\n")
	_ = rw.Flush()
	_ = conn.Close()
}

// Half of a secret at the end of what is read is none that is shown.
func TestAnExcerptEndsInNoSecret(t *testing.T) {
	t.Parallel()
	for before := range 60 {
		at := serve(t, answer(422, strings.Repeat("x", before)+ownSecret+strings.Repeat("y", 4096)))
		f := failureOf(t, made(t, httpcall.Config{URL: at, Auth: httpcall.Bearer(ownSecret), Excerpt: 40}))
		if f == nil || strings.Contains(f.Error(), ownSecret[:3]) || !strings.Contains(f.Error(), strings.Repeat("x", min(before, 40))) {
			t.Errorf("behind %d: got %v", before, f)
		}
	}
}

// A server for tokens quotes, too.
func TestAnAuthorizationServerThatQuotesTheSecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"hunter2-hunter2-hunter2", "hunter2"} {
		for name, body := range map[string]string{"a code": `{"error":"bad ` + secret + `"}`, "no answer": ""} {
			at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if body == "" {
					quotes(0, secret)(w, nil)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				answer(400, body)(w, nil)
			})
			auth, err := httpcall.ClientCredentials(httpcall.OAuth2{URL: at, ClientID: "holdfast", ClientSecret: secret})
			if err != nil {
				t.Fatal(err)
			}
			f := failureOf(t, made(t, httpcall.Config{URL: at, Auth: auth}))
			if f == nil || strings.Contains(f.Error(), "hunter2") || !strings.Contains(f.Error(), "[secret]") {
				t.Errorf("%s: got %v", name, f)
			}
		}
	}
}

// The answer to a call is the caller's, whatever is in it.
func TestAResponseIsNotChanged(t *testing.T) {
	t.Parallel()
	at := serve(t, answer(200, `{"session":"`+ownSecret+`"}`))
	r, err := made(t, httpcall.Config{URL: at, Auth: httpcall.Bearer(ownSecret)}).Deliver(t.Context(), holdfast.Message{ID: "m"})
	if err != nil || string(r.Response) != `{"session":"`+ownSecret+`"}` {
		t.Errorf("got %q, %v", r.Response, err)
	}
}

// A fault of the settings does not quote them.
func TestNoSecretInAFaultOfTheSettings(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"ftp://u:hunter2@host/?token=hunter2", "http://u:hunter2@{id}.host/?token=hunter2", "http://u:hunter2@host:x/"} {
		if _, err := httpcall.New(httpcall.Config{URL: target}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", target, err)
		}
	}
}

// What is kept of an answer besides the excerpt has no secret either.
func TestWhatIsKeptOfAnAnswerHasNoSecret(t *testing.T) {
	t.Parallel()
	body := `{"said":"` + strings.Repeat("x", 5000) + `","you":"%s"}`
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, body, r.Header.Get("Authorization"))
	}))
	defer srv.Close()
	c, err := httpcall.New(httpcall.Config{URL: srv.URL, Auth: httpcall.Bearer("s3cr3t-token"), Excerpt: 100, Answer: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Deliver(t.Context(), holdfast.Message{ID: "m"})
	if err != nil || !strings.Contains(string(r.Response), "s3cr3t") || len(r.Answer) < 5000 || strings.Contains(string(r.Answer), "s3cr3t") {
		t.Errorf("%v: %.60q in %d bytes", err, r.Answer, len(r.Answer))
	}
	for _, status = range []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable} {
		_, err = c.Deliver(t.Context(), holdfast.Message{ID: "m"})
		if f := holdfast.AsFailure(err); len(f.Answer) < 5000 || strings.Contains(f.Answer, "s3cr3t") || len(f.Error()) > 200 {
			t.Errorf("%d: %.60q in %d bytes; %v", status, f.Answer, len(f.Answer), f)
		}
	}
}
