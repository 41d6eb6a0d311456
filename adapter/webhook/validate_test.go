package webhook_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
)

// fields are the fields that an error names.
func fields(err error) (all []string) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			all = append(all, fields(one)...)
		}
		return all
	}
	if f, ok := errors.AsType[*holdfast.FieldError](err); ok {
		all = append(all, f.Field)
	}
	return all
}

func TestEachFaultOfATargetIsNamed(t *testing.T) {
	t.Parallel()
	good := "https://example.com/hook"
	for want, target := range map[string]webhook.Target{
		"url":                    {URL: "http://169.254.169.254/latest"},
		"url ":                   {URL: "http://example.com/?token=hunter2"},
		"url  ":                  {},
		"url   ":                 {URL: "http://a!b.example/"},
		"url    ":                {URL: "http://.example/"},
		"headers":                {URL: good, Headers: map[string]string{"a b": "x"}},
		"headers.Cookie":         {URL: good, Headers: map[string]string{"Cookie": "hunter2"}},
		"headers.webhook-id":     {URL: good, Headers: map[string]string{"webhook-id": "x"}},
		"headers.X":              {URL: good, Headers: map[string]string{"X": "hunter2\r\nHost: y"}},
		"headers.x-a":            {URL: good, Headers: map[string]string{"X-A": "1", "x-a": "2"}},
		"headers ":               {URL: good, Headers: map[string]string{"X": strings.Repeat("x", 9<<10)}},
		"authorization.secret":   {URL: good, Auth: webhook.Auth{Bearer: "hunter2\n"}},
		"authorization.user":     {URL: good, Auth: webhook.Auth{Basic: &webhook.Basic{User: "a:b"}}},
		"authorization.header":   {URL: good, Auth: webhook.Auth{Key: &webhook.Key{Header: "Webhook-Signature", Value: "hunter2"}}},
		"authorization.secret ":  {URL: good, Auth: webhook.Auth{Key: &webhook.Key{Header: "X-Api-Key"}}},
		"authorization.url":      {URL: good, Auth: webhook.Auth{OAuth2: &webhook.OAuth2{URL: "x", Client: "a", ClientSecret: "hunter2"}}},
		"authorization.secret  ": {URL: good, Auth: webhook.Auth{OAuth2: &webhook.OAuth2{URL: good, Client: "a"}}},
		"authorization.client":   {URL: good, Auth: webhook.Auth{ZGW: &webhook.ZGW{Secret: "hunter2"}}},
		"authorization":          {URL: good, Auth: webhook.Auth{Bearer: "hunter2", ZGW: &webhook.ZGW{Client: "a", Secret: "hunter2"}}},
		"secrets[1]":             {URL: good, Secrets: []webhook.Secret{{Value: first}, {Value: "whsec_hunter2"}}},
		"secrets":                {URL: good, Secrets: slices.Repeat([]webhook.Secret{{Value: first}}, 9)},
		"mode":                   {URL: good, Mode: "hunter2"},
		"timeout":                {URL: good, Timeout: time.Hour},
		"tls":                    {URL: good, TLS: webhook.TLS{Cert: "hunter2"}},
		"url headers.Te mode":    {URL: "x", Headers: map[string]string{"Te": ""}, Mode: "x"},
		"":                       {URL: good, Headers: map[string]string{"X-A": "1"}, Auth: webhook.Auth{Key: &webhook.Key{Header: "Authorization", Value: "x"}}, Secrets: slices.Repeat([]webhook.Secret{{Value: first}, {Value: pair}}, 4), Mode: webhook.Binary, Timeout: time.Second},
	} {
		err := sender(t, webhook.Settings{}).Validate(&target)
		if got := strings.Join(fields(err), " "); got != strings.TrimSpace(want) {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is quoted: %v", want, err)
		}
	}
}

// A host is read in one way, whatever its spelling; long URLs are taken.
func TestURLsThatAreTaken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"https://example.com", "HTTPS://EXAMPLE.com:8443/a?b=c#d", "https://bücher.example/ö", "http://my_service:8080/", "https://example.com./",
		"https://[2001:4860:4860::8888]:443/", "https://example.com/" + strings.Repeat("x", 4000),
	} {
		if err := sender(t, webhook.Settings{}).Validate(&webhook.Target{URL: text}); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// A trial shows all that was said, and no secret, even if the subscriber repeats it (49).
func TestATrialShowsTheExchangeWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("X-Odd", "caf\xe9")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "you said "+r.Header.Get("Authorization")+" and "+r.Header.Get("X-Session")+" for "+first)
	})
	target := webhook.Target{
		URL: r.URL + "/hook?token=hunter2-hunter2", Headers: map[string]string{"x-session": "session-of-many-bytes", "X-Tenant": "7"},
		Auth: webhook.Auth{Bearer: "bearer-of-many-bytes"}, Secrets: []webhook.Secret{{Value: first}},
	}
	e := sender(t, local()).Try(t.Context(), &target, &holdfast.Message{ID: "m", Payload: []byte(odd)})
	if e.Status != http.StatusTeapot || e.Failure == nil || e.Failure.Code != "http_418" || string(e.Body) != odd || e.Took <= 0 {
		t.Errorf("got %+v", e)
	}
	if e.Header.Get("X-Tenant") != "7" || e.Header.Get("Webhook-Id") != "m" || !strings.HasPrefix(e.Header.Get("Webhook-Signature"), "v1,") || e.Header.Get("Authorization") != "Bearer [secret]" {
		t.Errorf("the request is shown as %v", e.Header)
	}
	if e.Text != "you said Bearer [secret] and [secret] for [secret]" || e.Answer.Get("X-Echo") != "Bearer [secret]" || e.Answer.Get("X-Odd") != "caf\uFFFD" {
		t.Errorf("the answer is shown as %q with %v", e.Text, e.Answer)
	}
	if strings.Contains(e.URL+e.Failure.Error(), "hunter2") || strings.Contains(e.Failure.Error(), "many-bytes") || !strings.Contains(e.Failure.Error(), "you said") {
		t.Errorf("got %s, %v", e.URL, e.Failure)
	}
}
