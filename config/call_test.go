package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/adapter/httpcall/call"
	"github.com/holdfast-mq/holdfast/config"
)

// SF-06, SF-07, SF-32: what a call means when nothing else is said, wherever
// the key stands.
func TestACallHasDefaultsOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`destinations: {erp: {call: {url: "http://h"}, timeout: 5s}}`,
		`destinations: {erp: {timeout: 5s, call: {url: "http://h"}}}`,
	} {
		d := parse(t, text).Destinations["erp"]
		want := config.DefaultForeign()
		want.Foreign, want.Timeout = &call.Settings{URL: "http://h", Method: "POST", Response: 1 << 20, Auth: call.Auth{}}, 5*time.Second
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if d.TTL != config.Never || d.Retry.Interval != 30*time.Second || d.Retry.Retries != 50 {
			t.Errorf("got %+v", d)
		}
	}
	d := parse(t, `destinations: {erp: {retry: {policy: exponential}, call: {url: "http://h"}, ttl: 1h}}`).Destinations["erp"]
	if d.TTL != time.Hour || d.Retry.Policy != config.Exponential || d.Retry.Retries != 5 {
		t.Errorf("got %+v", d)
	}
}

func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                "call.url: is not set",
		`{url: "ftp://h"}`:                  "does not begin with http:// or https://",
		`{url: "http://u:hunter2@h"}`:       "holds credentials, which would be shown wherever the URL is; remove them, and use auth",
		`{url: "http://{id}.example"}`:      "has a placeholder in its host",
		`{url: "http://h/{order}"}`:         "is neither {endpoint} nor {id}",
		`{url: "http://h", method: FETCH}`:  `"FETCH" is not one of POST, PUT`,
		`{url: "http://h", ca: good.b64}`:   "for which ca, cert and key have no meaning",
		`{url: "https://h", key: good.b64}`: "has one of cert and key",
		`{url: "http://h", headers: {Authorization: "Bearer hunter2"}}`:                                          "would be a secret in the file; use auth",
		`{url: "http://h", headers: {Idempotency-Key: x}}`:                                                       "is set for each call",
		`{url: "http://h", headers: {"a b": x}}`:                                                                 "is not the name of a header",
		`{url: "http://h", headers: {A: "x\ny"}}`:                                                                "has a control character",
		`{url: "http://h", headers: {A: x, a: y}}`:                                                               "in another spelling",
		`{url: "http://h", headers: {A: 7}}`:                                                                     "is a number, not text",
		`{url: "http://h", success: [2xx]}`:                                                                      `"2xx" is neither a status code`,
		`{url: "http://h", success: 200}`:                                                                        "is a number, not a list",
		`{url: "http://h", permanent: [499-400]}`:                                                                `"499-400" is not a range of status codes`,
		`{url: "http://h", success: [100]}`:                                                                      "write codes from 200 to 599",
		`{url: "http://h", response: 1GiB}`:                                                                      "write a size from 1KiB to 16MiB",
		`{url: "http://h", auth: {bearer: hunter2}}`:                                                             "does not say where the secret is",
		`{url: "http://h", auth: {bearer: {env: EMPTY}}}`:                                                        "it is empty",
		`{url: "http://h", auth: {bearer: {env: NOWHERE}}}`:                                                      "is a variable that is not set",
		`{url: "http://h", auth: {bearer: {}}}`:                                                                  "names no secret",
		`{url: "http://h", auth: {basic: {user: "a:b", password: {env: PLAIN}}}}`:                                "has a colon",
		`{url: "http://h", auth: {basic: {password: {env: PLAIN}}}}`:                                             "basic.user: is not set",
		`{url: "http://h", auth: {basic: {user: u}}}`:                                                            "basic.password: is missing",
		`{url: "http://h", auth: {key: {header: "a:b", value: {env: PLAIN}}}}`:                                   "is not the name of a header",
		`{url: "http://h", auth: {bearer: {env: PLAIN}, key: {value: {env: PLAIN}}}}`:                            "has more than one method",
		`{url: "http://h", auth: {oauth2: {client: c, secret: {env: PLAIN}}}}`:                                   "oauth2.url: is not set",
		`{url: "http://h", auth: {oauth2: {url: "http://h", client: c, secret: {env: PLAIN}, scopes: ["a b"]}}}`: `"a b" is not a scope`,
		`{url: "http://h"}, url: "http://h"`:                                                                     "belongs to a peer, but this destination is a call",
		`{url: "http://h"}, secret: {env: GOOD}, hmac: v1`:                                                       "remove it, or remove call",
	} {
		_, _, err := config.Parse("holdfast.yaml", []byte("destinations: {erp: {call: "+text+"}}"), world(nil), config.Overrides{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
