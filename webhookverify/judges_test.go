package webhookverify_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/webhookverify"
)

// What programs that we did not write have signed is verified, with a new key pair each time.
func TestSignaturesOfOthersVerify(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js")
	}
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"order":42,"name":"Łódź"}`
	input, err := json.Marshal(map[string]string{"id": "msg_1", "body": body, "whsec": secret})
	if err != nil {
		t.Fatal(err)
	}
	library := os.Getenv("TEST_STANDARDWEBHOOKS") // scripts/test installs it
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "sign.cjs"), library)
	cmd.Stdin = strings.NewReader(string(input))
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]string
	if err := json.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	judge := func(secret, signature string) {
		t.Helper()
		h := map[string]string{"webhook-id": "msg_1", "webhook-timestamp": said["at"], "webhook-signature": signature}
		v := verifier(t, webhookverify.StandardWebhooks, 0, secret)
		if status, got := ask(t, v, h, strings.NewReader(body)); status != 200 || got != "msg_1  "+body {
			t.Errorf("%s: got %d %s", signature, status, got)
		}
		if status, _ := ask(t, v, h, strings.NewReader(body+" ")); status != 401 {
			t.Errorf("%s of another body: got %d", signature, status)
		}
	}
	judge(said["whpk"], said["v1a"])
	if library == "" {
		t.Log("TEST_STANDARDWEBHOOKS does not name the library of Standard Webhooks: it judges no v1")
		return
	}
	judge(secret, said["v1"])
}
