package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whoever may make a channel, or names the host of a call, does not reach through the node what its
// configuration forbids: nobody is asked.
func TestAddressesThatTheConfigurationForbids(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(target.Close)
	url := serve(t, parse(t, fmt.Sprintf(`
notifications: {addresses: [public]}
destinations:
  erp: {call: {url: "%[1]s", addresses: [public, 10.0.0.0/8]}, retry: {interval: 20ms}}
  token: {call: {url: "https://example.com", addresses: [public], auth: {oauth2: {url: "%[1]s", client: a, secret: {env: SECRET}}}}, retry: {interval: 20ms}}
`, target.URL)))
	port := target.URL[strings.LastIndexByte(target.URL, ':')+1:]
	for name, body := range map[string]string{
		"room": fmt.Sprintf(`{"kind":"ntfy","settings":{"url":%q,"topic":"ops"}}`, target.URL),
		"mail": fmt.Sprintf(`{"kind":"email","settings":{"host":"localhost","port":%s,"tls":"none","from":"a@example.com"}}`, port),
	} {
		if status, text := ask(t, "PUT", url+"/v1/channels/"+name, body); status >= 300 {
			t.Fatalf("%s: %d %s", name, status, text)
		}
		address := map[string]string{"mail": "a@example.com"}[name]
		if _, text := ask(t, "POST", url+"/v1/channels/"+name+"/test", fmt.Sprintf(`{"address":%q}`, address)); !strings.Contains(text, "forbidden_address") {
			t.Errorf("%s: got %s", name, text)
		}
	}
	for _, name := range []string{"erp", "token"} {
		_, text := ask(t, "POST", url+"/v1/messages", fmt.Sprintf(`{"destination":%q,"endpoint":"Book","payload":{}}`, name))
		if !strings.Contains(text, `"outcome":"lane_fault"`) || !strings.Contains(text, "loopback") {
			t.Errorf("%s: got %s", name, text)
		}
	}
}
