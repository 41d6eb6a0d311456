package oauth_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
	"github.com/holdfast-mq/holdfast/internal/oauth"
)

func tokens(t *testing.T, url string) *oauth.Tokens {
	t.Helper()
	k := oauth.New(oauth.Grant{
		URL: url, Client: "id", Secret: func() (string, error) { return "hunter2-hunter2", nil },
		HTTP: exchange.NewClient(exchange.Settings{Idle: 1}),
	})
	t.Cleanup(k.Close)
	return k
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// F1-30: a token is asked for once, whatever net/http would repeat.
func TestAWarmConnectionThatIsClosedIsNoReasonToAskAgain(t *testing.T) {
	t.Parallel()
	s := exchangetest.Slamming(t, answer(200, `{"access_token":"t"}`))
	k := tokens(t, s.URL)
	if _, err := k.Token(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	_, err := k.Token(t.Context(), "t")
	if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.Unreachable || f.MaybeDelivered || s.Requests() != 2 {
		t.Errorf("got %+v after %d requests, want unreachable after 2", f, s.Requests())
	}
}

// F1-34: what no repetition cures holds the lane; what waiting cures is an outage.
func TestAnswersWithoutAToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   holdfast.Outcome
		code   string
	}{
		"none":              {200, `{"expires_in":3600}`, holdfast.LaneFault, "token_refused"},
		"a page":            {200, "<html>Sign in</html>", holdfast.LaneFault, "token_refused"},
		"an error":          {200, `{"error":"invalid_client"}`, holdfast.LaneFault, "token_refused"},
		"not fit to send":   {200, `{"access_token":"a\nb"}`, holdfast.LaneFault, "token_refused"},
		"leads elsewhere":   {302, "", holdfast.LaneFault, "token_refused"},
		"no such page":      {404, "", holdfast.LaneFault, "token_refused"},
		"broken":            {500, "", holdfast.Unreachable, "token_unavailable"},
		"overloaded":        {503, `{"access_token":"t"}`, holdfast.Unreachable, "token_unavailable"},
		"too many requests": {429, "", holdfast.Unreachable, "token_unavailable"},
	} {
		s := httptest.NewServer(answer(c.status, c.body))
		_, err := tokens(t, s.URL).Token(t.Context(), "")
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != c.want || f.Code != c.code || f.MaybeDelivered {
			t.Errorf("%s: got %+v, want %s %s", name, f, c.want, c.code)
		}
		s.Close()
	}
}

// Servers differ in where they want the client's secret, and in how they write
// the answer.
func TestServersThatDiffer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.PostFormValue("client_secret") != "hunter2-hunter2" || r.PostFormValue("client_id") != "id" || r.Header.Get("Authorization") != "" {
			answer(401, `{"error":"invalid_client"}`)(w, r)
			return
		}
		if asked.Load() > 2 {
			w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
			_, _ = io.WriteString(w, "access_token=form&token_type=bearer&expires_in=3600")
			return
		}
		answer(200, `{"access_token":"json","token_type":"MAC","expires_in":"3600"}`)(w, r)
	}))
	t.Cleanup(s.Close)
	k := tokens(t, s.URL)
	if token, err := k.Token(t.Context(), ""); err == nil || asked.Load() != 1 {
		t.Fatalf("got %+v after %d requests, want one, refused", token, asked.Load())
	}
	if token, err := k.Token(t.Context(), ""); err != nil || token.Access != "json" {
		t.Fatalf("got %+v, %v", token, err)
	}
	if token, err := k.Token(t.Context(), "json"); err != nil || token.Access != "form" || token.Type != "Bearer" || asked.Load() != 3 {
		t.Errorf("got %+v, %v after %d requests; want the way that worked to be remembered", token, err, asked.Load())
	}
}

// F1-67: a way that has worked is not left because the server refuses a client:
// that says nothing about the way.
func TestAWayThatWorkedStays(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, basic := r.BasicAuth(); !basic || refuse.Load() {
			answer(401, `{"error":"invalid_client"}`)(w, r)
			return
		}
		answer(200, `{"access_token":"t"}`)(w, r)
	}))
	t.Cleanup(s.Close)
	k := tokens(t, s.URL)
	if _, err := k.Token(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		refuse.Store(true)
		if _, err := k.Token(t.Context(), "t"); err == nil {
			t.Fatal("got a token")
		}
		refuse.Store(false)
		if _, err := k.Token(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
	}
}

// F1-67: one attempt is one call, and none is made as long as the server has
// asked us to wait.
func TestTheServersWaitIsKept(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 429, 503} {
		var asked atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			w.Header().Set("Retry-After", "60")
			answer(status, `{"error":"slow_down"}`)(w, r)
		}))
		k := tokens(t, s.URL)
		for range 3 {
			_, err := k.Token(t.Context(), "")
			f := holdfast.AsFailure(err)
			if err == nil || f.RetryAfter <= 0 || f.RetryAfter > time.Minute || !strings.Contains(f.Error(), "slow_down") {
				t.Errorf("%d: got %+v", status, f)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("%d: asked %d times", status, asked.Load())
		}
		s.Close()
	}
}

// F1-67: people see what the server says, whatever its status, but for secrets,
// and not more than they can read.
func TestTheServersWordsAreShown(t *testing.T) {
	t.Parallel()
	const words = `{"error":"invalid_scope","error_description":"AADSTS70011: hunter2-hunter2 is\r\nnot valid %s"}`
	for _, status := range []int{200, 400, 401, 503} {
		s := httptest.NewServer(answer(status, fmt.Sprintf(words, strings.Repeat("x", 10_000))))
		_, err := tokens(t, s.URL).Token(t.Context(), "")
		s.Close()
		if err == nil || !strings.Contains(err.Error(), "invalid_scope: AADSTS70011: [secret] is  not valid xxx") || len(err.Error()) > 800 {
			t.Errorf("%d: got %.300v", status, err)
		}
	}
}

func TestWhatAServerQuotesIsHidden(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(answer(400, `{"error":"bad hunter2-hunter2"}`))
	t.Cleanup(s.Close)
	if _, err := tokens(t, s.URL).Token(t.Context(), ""); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("got %v", err)
	}
}
