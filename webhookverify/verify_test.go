package webhookverify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/webhookverify"
	"github.com/holdfast-mq/holdfast/wire"
)

// ages is a tolerance that lets published vectors through, which are years old.
const ages = 100 * 365 * 24 * time.Hour

// sample is a signed request.
type sample struct {
	form   webhookverify.Form
	secret string
	header map[string]string
	body   string
	id     string
}

// vectors are requests that the senders publish. That of Stripe, which publishes none, was made by openssl.
func vectors() map[string]sample {
	return map[string]sample{
		"v1, of the libraries of Standard Webhooks": {
			webhookverify.StandardWebhooks, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", map[string]string{
				"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
				"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
			}, `{"test": 2432232314}`, "msg_p5jXN8AQM9LWM0D4loKWxJek",
		},
		"v1a, of the server of Svix": {
			webhookverify.StandardWebhooks, "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=", map[string]string{
				"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
				"webhook-signature": "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
			}, `{"test": 2432232314}`, "msg_p5jXN8AQM9LWM0D4loKWxJek",
		},
		"GitHub, of its documentation": {
			webhookverify.GitHub, "It's a Secret to Everybody", map[string]string{
				"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
			}, "Hello, World!", "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		},
		"Slack, of its documentation": {
			webhookverify.Slack, "8f742231b10e8888abcd99yyyzzz85a5", map[string]string{
				"X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", "X-Slack-Request-Timestamp": "1531420618",
			}, "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c", "",
		},
		"Stripe, by openssl": {
			webhookverify.Stripe, "whsec_test_secret", map[string]string{
				"Stripe-Signature": "t=1492774577,v1=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39,v1=654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543,v0=00",
			}, `{"id":"evt_1","object":"event"}`, "evt_1",
		},
	}
}

func verifier(t *testing.T, form webhookverify.Form, tolerance time.Duration, secrets ...string) *webhookverify.Verifier {
	t.Helper()
	v, err := webhookverify.New(webhookverify.Config{Form: form, Secrets: secrets, Tolerance: tolerance, MaxBody: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask sends a request through the middleware, to a handler that answers with the body and the id.
func ask(t *testing.T, v *webhookverify.Verifier, header map[string]string, body io.Reader) (status int, said string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks", body)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	v.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := webhookverify.From(r.Context())
		again, err := io.ReadAll(r.Body)
		if !ok || err != nil || string(again) != string(d.Body) {
			t.Errorf("the handler got %q, %v", again, err)
		}
		_, _ = io.WriteString(w, d.ID+" "+d.Source+" "+string(again))
	})).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestPublishedVectorsVerify(t *testing.T) {
	t.Parallel()
	for name, s := range vectors() {
		status, said := ask(t, verifier(t, s.form, ages, "the-one-before-it-which-is-long", s.secret), s.header, strings.NewReader(s.body))
		if want := s.id + "  " + s.body; status != 200 || said != want {
			t.Errorf("%s: got %d %q, want %q", name, status, said, want)
		}
	}
}

func TestWhatWasChangedIsRefused(t *testing.T) {
	t.Parallel()
	for name, s := range vectors() {
		v := verifier(t, s.form, ages, s.secret)
		refused := func(what string, header map[string]string, body string) {
			t.Helper()
			if status, said := ask(t, v, header, strings.NewReader(body)); status != 401 || said != "Unauthorized\n" {
				t.Errorf("%s, %s: got %d %q", name, what, status, said)
			}
		}
		refused("another body", s.header, s.body+" ")
		refused("no body", s.header, "")
		for header, value := range s.header {
			if header == "X-GitHub-Delivery" {
				continue // not signed
			}
			changed := maps.Clone(s.header)
			delete(changed, header)
			refused("without "+header, changed, s.body)
			changed[header] = strings.NewReplacer("1", "2", "p", "q").Replace(value)
			refused("another "+header, changed, s.body)
		}
		other := strings.Replace(s.secret, "e", "E", 1)
		if s.form == webhookverify.StandardWebhooks {
			other = "another-secret-of-enough-bytes"
		}
		if status, _ := ask(t, verifier(t, s.form, ages, other), s.header, strings.NewReader(s.body)); status != 401 {
			t.Errorf("%s, another secret: got %d", name, status)
		}
		if s.form != webhookverify.GitHub {
			v = verifier(t, s.form, 0, s.secret)
			refused("years later", s.header, s.body)
		}
	}
}

// Of two values, another reader could believe the other one.
func TestAHeaderThatIsThereTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for name, s := range vectors() {
		for header := range s.header {
			if header == "X-GitHub-Delivery" {
				continue
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks", strings.NewReader(s.body))
			for name, value := range s.header {
				r.Header.Set(name, value)
			}
			r.Header.Add(header, s.header[header])
			if _, err := verifier(t, s.form, ages, s.secret).Verify(httptest.NewRecorder(), r); !errors.Is(err, webhookverify.ErrRefused) {
				t.Errorf("%s, %s twice: got %v", name, header, err)
			}
		}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write([]byte(at + ".{}"))
	h := map[string]string{"Stripe-Signature": "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))}
	if status, _ := ask(t, verifier(t, webhookverify.Stripe, 0, "secret"), h, strings.NewReader("{}")); status != 200 {
		t.Errorf("a fresh request: got %d", status)
	}
	h["Stripe-Signature"] += ",t=" + at
	if status, _ := ask(t, verifier(t, webhookverify.Stripe, 0, "secret"), h, strings.NewReader("{}")); status != 401 {
		t.Errorf("two times: got %d", status)
	}
}

func TestOurWireVerifies(t *testing.T) {
	t.Parallel()
	secret := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	key, err := wire.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := wire.Encode(nil, &holdfast.Message{ID: "m1", Source: "shop", Endpoint: "E", Payload: []byte(`{"a":1}`)}, wire.Seal{Secret: key, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t, webhookverify.Holdfast, 0, secret)
	if status, said := ask(t, v, nil, strings.NewReader(string(envelope))); status != 200 || said != "m1 shop "+string(envelope) {
		t.Errorf("got %d %q", status, said)
	}
	for what, body := range map[string]string{"changed": strings.Replace(string(envelope), "shop", "ship", 1), "no envelope": "{}", "nothing": ""} {
		if status, _ := ask(t, v, nil, strings.NewReader(body)); status != 401 {
			t.Errorf("%s: got %d", what, status)
		}
	}
}

// broken ends in the middle.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	v := verifier(t, webhookverify.GitHub, 0, "secret")
	if status, _ := ask(t, v, nil, strings.NewReader(strings.Repeat("x", 1<<10+1))); status != 413 {
		t.Errorf("too large: got %d", status)
	}
	if status, _ := ask(t, v, nil, broken{}); status != 400 {
		t.Errorf("broken off: got %d", status)
	}
}

func TestAWrongConfigurationIsRefusedAndNoSecretShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]webhookverify.Config{
		"no form":        {Secrets: []string{"hunter2-hunter2-hunter2"}},
		"another form":   {Form: "none", Secrets: []string{"hunter2-hunter2-hunter2"}},
		"no secret":      {Form: webhookverify.GitHub},
		"an empty one":   {Form: webhookverify.GitHub, Secrets: []string{"x", ""}},
		"a short one":    {Form: webhookverify.StandardWebhooks, Secrets: []string{"hunter2"}},
		"a private half": {Form: webhookverify.StandardWebhooks, Secrets: []string{"whsk_hunter2"}},
		"no base64":      {Form: webhookverify.Holdfast, Secrets: []string{"hunter2!"}},
		"tolerance":      {Form: webhookverify.GitHub, Secrets: []string{"x"}, Tolerance: -1},
		"size":           {Form: webhookverify.GitHub, Secrets: []string{"x"}, MaxBody: -1},
	} {
		if _, err := webhookverify.New(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWithoutTheMiddlewareThereIsNoDelivery(t *testing.T) {
	t.Parallel()
	if d, ok := webhookverify.From(t.Context()); ok || !cmp.Equal(d, webhookverify.Delivery{}) {
		t.Errorf("got %v", d)
	}
}
