//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/doctor"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// F1-95: messages of a destination that was taken out of the configuration end by
// the command that health and doctor advise, as it is printed, and all is well
// again. What was delivered there before stays as it is.
func TestTheAdviceAboutADestinationThatIsGoneWorks(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its programs runs one command and ends")
	const gone = "o'ld&shop"
	nowhere := freeAddress(t)
	stays := fmt.Sprintf("stays: {call: {url: \"http://%s\"}}", nowhere)
	c := serving(t, fmt.Sprintf("destinations: {%s, %q: {call: {url: \"http://%s\"}}}\n", stays, gone, nowhere))
	var ids []string
	for n := range 60 { // more than a page has
		ids = append(ids, fmt.Sprint("m", n))
		accepted(t, c, ids[n], gone, "0s")
	}
	accepted(t, c, "other", "stays", "9h")
	write(t, c.args[len(c.args)-1], "destinations: {"+stays+"}\n")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	c.start()
	c.ready()

	var advice string
	eventually(t, "health tells of what waits", func() bool {
		for _, check := range healthOf(t, c).Checks {
			if check.Name == "destinations" {
				advice = check.Detail
			}
		}
		return advice != ""
	})
	checks, _, _, _ := examined(t, c.args[2:]...)
	if hint := checks["without a destination"].Hint; hint == "" || !strings.HasSuffix(advice, hint) {
		t.Errorf("doctor says %q, and health %q", hint, advice)
	}
	_, look, found := strings.Cut(advice, "look with: ")
	look, discard, both := strings.Cut(look, "; and discard all of them with: ")
	if !found || !both {
		t.Fatalf("the advice is %q", advice)
	}
	if out := shell(t, c, look); !strings.Contains(out, "m59 ") || strings.Contains(out, "other") {
		t.Errorf("%s: %s", look, out)
	}
	shell(t, c, discard)
	for _, id := range ids {
		if m := message(t, c, id); m.State != "discarded" {
			t.Errorf("%s is %s after %s", id, m.State, discard)
		}
	}
	if m := message(t, c, "other"); m.State != "pending" {
		t.Errorf("a message of another destination is %s", m.State)
	}
	eventually(t, "health is well again", func() bool { return healthOf(t, c).Status == api.OK })
	checks, _, _, _ = examined(t, c.args[2:]...)
	wantChecks(t, checks, map[string]doctor.Status{"without a destination": doctor.OK})
}

// accepted hands a message in.
func accepted(t *testing.T, c *child, id, to, delay string) {
	t.Helper()
	body := fmt.Sprintf(`{"id": %q, "destination": %q, "endpoint": "Book", "delay": %q, "wait": "0s"}`, id, to, delay)
	resp, err := http.Post(c.url()+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%s: got %d", id, resp.StatusCode)
	}
}

func healthOf(t *testing.T, c *child) (h api.Health) {
	t.Helper()
	if err := json.Unmarshal([]byte(get(t, c.url()+"/_rf/health")), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// shell runs a line as a person would type it.
func shell(t *testing.T, c *child, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+c.url())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

func message(t *testing.T, c *child, id string) (m api.Message) {
	t.Helper()
	if err := json.Unmarshal([]byte(get(t, c.url()+"/v1/messages/"+id)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
