package email_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/notify"
)

// mailpit starts a mail server that is not ours, and returns the port that
// takes mail and the address of its API. Without HOLDFAST_MAILPIT, which scripts/test
// sets, it may be missing.
func mailpit(t *testing.T, args ...string) (port int, api string) {
	t.Helper()
	program := os.Getenv("HOLDFAST_MAILPIT")
	if program == "" {
		var err error
		if program, err = exec.LookPath("mailpit"); err != nil {
			t.Skip("there is no mailpit in PATH, and HOLDFAST_MAILPIT names none; scripts/test installs it")
		}
	}
	port, web := free(t), free(t)
	args = append([]string{
		"--smtp", fmt.Sprintf("127.0.0.1:%d", port), "--listen", fmt.Sprintf("127.0.0.1:%d", web), "--disable-version-check", "--quiet",
	}, args...)
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start mailpit: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	api = fmt.Sprintf("http://127.0.0.1:%d/api/v1/", web)
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
			if resp, err := http.Get(api + "info"); err == nil {
				_ = resp.Body.Close()
				return port, api
			}
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("mailpit does not listen: %v\n%s", err, out.String())
		}
	}
}

func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func get(t *testing.T, url string, into any) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", url, resp.StatusCode, err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return string(raw)
}

type person struct{ Name, Address string }

// judged is a mail as Mailpit sees it.
type judged struct {
	ID, MessageID, Subject, Text string
	From                         person
	To, Cc, Bcc                  []person
	ReturnPath                   string
}

// An outside judge: hostile notifications arrive as they were meant (E1, E40 …
// E45, E52, E53), with strict checks of headers on.
func TestMailpitReadsOurMails(t *testing.T) {
	t.Parallel()
	port, api := mailpit(t, "--smtp-allowed-recipients", `@x\.test$`, "--smtp-strict-rfc-headers", "--smtp-max-recipients", "2")
	subjects := map[string]string{
		"inject":   "x\r\nBcc: e@evil.test",
		"japanese": strings.Repeat("設備が停止しました🔥", 10),
		"words":    "=?utf-8?q?not_encoded?=",
		"long":     strings.Repeat("long", 200),
		"short":    "Batch 7 failed",
	}
	shown := map[string]string{"x Bcc: e@evil.test": "inject"}
	for name, subject := range subjects {
		if name != "inject" {
			shown[subject] = name
		}
	}
	texts := map[string]string{
		"inject": ".\n..\n.QUIT\n", "japanese": bodies()["Japanese"], "words": "=3D = \n=\n", "long": strings.Repeat("x", 5000) + "\n", "short": "tabs\t and \"quotes\" <b>\n",
	}
	from := `"Doe, \"Jürgen\" (Ops)" <alarm@plant.test>`
	m := openDial(t, with(object{"port": port, "from": from, "connections": 1}), nil)
	defer m.Close()
	for name, subject := range subjects {
		n := &notify.Notification{ID: example().ID, Subject: subject, Body: texts[name], Origin: notify.Origin{Site: "plant-7"}}
		r := m.Send(t.Context(), n, people("a@x.test", "b@other.test", "c@x.test"), 1)
		if got := told(r); !strings.HasPrefix(got, "accepted; refused 55") || !strings.HasSuffix(got, "; accepted") {
			t.Fatalf("%s: %s: %+v", name, got, r)
		}
	}
	var list struct{ Messages []struct{ ID string } }
	get(t, api+"messages?limit=100", &list)
	seen := map[string]int{}
	for _, one := range list.Messages {
		var j judged
		get(t, api+"message/"+one.ID, &j)
		name, ok := shown[j.Subject]
		if !ok {
			t.Errorf("a subject that was not sent: %q", j.Subject)
			continue
		}
		seen[name]++
		if got := strings.ReplaceAll(j.Text, "\r\n", "\n"); strings.TrimSpace(got) != strings.TrimSpace(texts[name]) {
			t.Errorf("%s: got %q", name, got)
		}
		if j.From != (person{`Doe, "Jürgen" (Ops)`, "alarm@plant.test"}) || j.ReturnPath != "alarm@plant.test" || j.MessageID != "0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11@plant.test" {
			t.Errorf("%s: from %+v, returned to %s, id %s", name, j.From, j.ReturnPath, j.MessageID)
		}
		if len(j.To)+len(j.Cc) > 0 || slices.ContainsFunc(j.Bcc, func(p person) bool { return !strings.HasSuffix(p.Address, "@x.test") }) {
			t.Errorf("%s: to %v, cc %v, envelope %v", name, j.To, j.Cc, j.Bcc)
		}
		raw := get(t, api+"message/"+one.ID+"/raw", nil)
		if !strings.Contains(raw, "To: undisclosed-recipients:;\r\n") || strings.Contains(raw, "other.test") {
			t.Errorf("%s:\n%s", name, raw)
		}
	}
	if len(seen) != len(subjects) {
		t.Errorf("arrived: %v", seen)
	}
}

// E12: a server that defers three times takes it the fourth; each attempt says
// so of its recipient only.
func TestMailpitDefers(t *testing.T) {
	t.Parallel()
	port, api := mailpit(t, "--enable-chaos")
	chaos := func(probability int) {
		req, err := http.NewRequest(http.MethodPut, api+"chaos", strings.NewReader(fmt.Sprintf(`{"Recipient":{"ErrorCode":451,"Probability":%d}}`, probability)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("chaos: %s", resp.Status)
		}
	}
	m := openDial(t, with(object{"port": port}), nil)
	defer m.Close()
	chaos(100)
	for range 3 {
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), 1)); !strings.HasPrefix(got, "deferred 451") {
			t.Fatal(got)
		}
	}
	chaos(0)
	if got := told(m.Send(t.Context(), example(), people("a@x.test"), 4)); got != "accepted" {
		t.Error(got)
	}
}
