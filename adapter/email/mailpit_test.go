package email_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/mailpittest"
	"github.com/holdfast-mq/holdfast/notify"
)

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
	server := mailpittest.Start(t, "--smtp-allowed-recipients", `@x\.test$`, "--smtp-strict-rfc-headers", "--smtp-max-recipients", "2")
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
	m := openDial(t, with(object{"port": server.Port, "from": from, "connections": 1}), nil)
	defer m.Close()
	ids := map[string]string{}
	for name, subject := range subjects {
		n := &notify.Notification{ID: example().ID, Subject: subject, Body: texts[name], Origin: notify.Origin{Site: "plant-7"}}
		ids[name] = string(n.Key()) + "."
		r := m.Send(t.Context(), n, people("a@x.test", "b@other.test", "c@x.test"), nil)
		if got := told(r); !strings.HasPrefix(got, "accepted; refused 55") || !strings.HasSuffix(got, "; accepted") {
			t.Fatalf("%s: %s: %+v", name, got, r)
		}
	}
	var list struct{ Messages []struct{ ID string } }
	server.Get(t, "messages?limit=100", &list)
	seen := map[string]int{}
	for _, one := range list.Messages {
		var j judged
		server.Get(t, "message/"+one.ID, &j)
		name, ok := shown[j.Subject]
		if !ok {
			t.Errorf("a subject that was not sent: %q", j.Subject)
			continue
		}
		seen[name]++
		if got := strings.ReplaceAll(j.Text, "\r\n", "\n"); strings.TrimSpace(got) != strings.TrimSpace(texts[name]) {
			t.Errorf("%s: got %q", name, got)
		}
		if j.From != (person{`Doe, "Jürgen" (Ops)`, "alarm@plant.test"}) || j.ReturnPath != "alarm@plant.test" || !strings.HasPrefix(j.MessageID, ids[name]) {
			t.Errorf("%s: from %+v, returned to %s, id %s", name, j.From, j.ReturnPath, j.MessageID)
		}
		if len(j.To)+len(j.Cc) > 0 || slices.ContainsFunc(j.Bcc, func(p person) bool { return !strings.HasSuffix(p.Address, "@x.test") }) {
			t.Errorf("%s: to %v, cc %v, envelope %v", name, j.To, j.Cc, j.Bcc)
		}
		raw := server.Get(t, "message/"+one.ID+"/raw", nil)
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
	server := mailpittest.Start(t, "--enable-chaos")
	chaos := func(probability int) {
		req, err := http.NewRequest(http.MethodPut, server.API+"chaos", strings.NewReader(fmt.Sprintf(`{"Recipient":{"ErrorCode":451,"Probability":%d}}`, probability)))
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
	m := openDial(t, with(object{"port": server.Port}), nil)
	defer m.Close()
	chaos(100)
	for range 3 {
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); !strings.HasPrefix(got, "deferred 451") {
			t.Fatal(got)
		}
	}
	chaos(0)
	if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
		t.Error(got)
	}
}
