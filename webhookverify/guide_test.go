package webhookverify_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

const (
	pythonDriver = `
import json, sys
given = json.load(sys.stdin)
print(verify(given["secret"], given["headers"], given["body"].encode()))
`
	nodeDriver = `
const given = JSON.parse(require("node:fs").readFileSync(0));
console.log(verify(given.secret, given.headers, Buffer.from(given.body)));
`
)

// The receivers that the guide shows in other languages verify what we sign, and nothing else.
func TestTheReceiversOfTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guide", "receiving.md"))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"order":42,"name":"Łódź"}`
	for program, c := range map[string]struct{ language, driver, sign, verify string }{
		"python3": {"python", pythonDriver, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		"node": {
			"js", nodeDriver, "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
			"whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
		},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(program)
			if err != nil {
				t.Skipf("there is no %s here", program)
			}
			code := regexp.MustCompile("(?ms)^```" + c.language + "\n(.*?)^```").FindSubmatch(guide)
			if code == nil {
				t.Fatalf("the guide has no %s", c.language)
			}
			signer, err := standardwebhooks.NewSigner(c.sign)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "receiver."+c.language)
			if err := os.WriteFile(file, append(code[1], c.driver...), 0o600); err != nil {
				t.Fatal(err)
			}
			ask := func(at time.Time, got string) string {
				h := http.Header{}
				standardwebhooks.Sign(h, "msg_1", at, []byte(body), signer)
				headers := map[string]string{}
				for name := range h {
					headers[strings.ToLower(name)] = h.Get(name)
				}
				given, err := json.Marshal(map[string]any{"secret": c.verify, "headers": headers, "body": got})
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), path, file)
				cmd.Stdin = strings.NewReader(string(given))
				said, err := cmd.CombinedOutput()
				if err != nil && len(said) == 0 {
					t.Fatal(err)
				}
				return string(said)
			}
			if said := ask(time.Now(), body); said != "msg_1\n" {
				t.Errorf("got %s", said)
			}
			if said := ask(time.Now(), body+" "); !strings.Contains(said, "no signature matches") {
				t.Errorf("another body: got %s", said)
			}
			if said := ask(time.Now().Add(-time.Hour), body); !strings.Contains(said, "too old") {
				t.Errorf("an hour later: got %s", said)
			}
		})
	}
}
