package chat_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/notify"
)

// sent is what a server gets of a notification.
type sent struct {
	path      string
	header    http.Header
	body      []byte
	truncated bool
}

func send(t *testing.T, kind string, n *notify.Notification, more object) (got sent) {
	t.Helper()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.path, got.header = r.URL.Path, r.Header
		got.body, _ = io.ReadAll(r.Body)
		answer(200, "ok")(w, r)
	})
	settings := own(kind, at)
	maps.Copy(settings, more)
	report := open(t, kind, settings, keep(at), nil).Send(t.Context(), n, to(""), nil)
	if v := verdict(report, 0); v != "accepted" {
		t.Fatalf("%s: got %q", kind, v)
	}
	if got.header.Get("Content-Type") != "application/json" || got.header.Get("User-Agent") != "holdfast" {
		t.Errorf("%s: got headers %v", kind, got.header)
	}
	if !utf8.Valid(got.body) || !json.Valid(got.body) {
		t.Errorf("%s: the body is no JSON in UTF-8: %q", kind, got.body)
	}
	got.truncated = report.Truncated
	return got
}

// is compares JSON as values.
func is(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestWhatEachKindIsSent(t *testing.T) {
	t.Parallel()
	const about = "plant-7 · plant-7-a · press_5 · 2026-11-28 13:05:00 UTC · 0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11"
	for kind, c := range map[string]struct{ path, want string }{
		"webhook": {"/hooks/" + urlToken, `{"type":"batch.failed","timestamp":"2026-11-28T13:05:00Z","data":{
			"notificationId":"0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11","list":"ops","subject":"Batch 7 failed",
			"body":"Press 5 stopped.\nCall <maintenance> & ask.","site":"plant-7","instance":"plant-7-a","script":"press_5",
			"executionId":"e-1","parentExecutionId":"e-0","enqueued":"2026-11-28T13:05:00Z","data":{"batch":7}}}`},
		// H4
		"teams": {"/hooks/" + urlToken, `{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","contentUrl":null,
			"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","type":"AdaptiveCard","version":"1.4","msteams":{"width":"full"},"body":[
			{"type":"TextBlock","text":"Batch 7 failed","size":"large","weight":"bolder","wrap":true},
			{"type":"TextBlock","text":"Press 5 stopped.\n\nCall <maintenance> & ask.","wrap":true},
			{"type":"FactSet","facts":[{"title":"Site","value":"plant-7"},{"title":"Instance","value":"plant-7-a"},{"title":"Script","value":"press\\_5"},
			{"title":"Time","value":"2026-11-28 13:05:00 UTC"},{"title":"ID","value":"0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11"}]}]}}]}`},
		"slack": {"/hooks/" + urlToken, `{"text":"Batch 7 failed","blocks":[
			{"type":"header","text":{"type":"plain_text","text":"Batch 7 failed"}},
			{"type":"section","text":{"type":"mrkdwn","text":"Press 5 stopped.\nCall &lt;maintenance&gt; &amp; ask.","verbatim":true}},
			{"type":"context","elements":[{"type":"mrkdwn","text":"` + about + `","verbatim":true}]}]}`},
		"ntfy": {"/", `{"topic":"ops","title":"Batch 7 failed","message":"Press 5 stopped.\nCall <maintenance> & ask.\n\n` + about + `","priority":4,"tags":["warning"]}`},
		"gotify": {"/message", `{"title":"Batch 7 failed","message":"Press 5 stopped.\nCall <maintenance> & ask.\n\n` + about + `","priority":4,
			"extras":{"client::display":{"contentType":"text/plain"}}}`},
	} {
		more := object{}
		if kind == "ntfy" || kind == "gotify" {
			more["priority"] = 4
		}
		if kind == "ntfy" {
			more["tags"] = []string{"warning"}
		}
		got := send(t, kind, example(), more)
		if got.path != c.path || got.truncated {
			t.Errorf("%s: got the path %s, truncated %v", kind, got.path, got.truncated)
		}
		is(t, kind, got.body, c.want)
	}
}

// H11: while a secret is being replaced each of the two signs, so that the
// receiver can change over when it likes.
func TestWebhooksAreSignedByEachSecret(t *testing.T) {
	t.Parallel()
	var got sent
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.header = r.Header
		got.body, _ = io.ReadAll(r.Body)
	})
	s := keep(at)
	const typed = "as somebody typed it, with an é"
	s.put("old", typed+"\n")
	r := open(t, "webhook", object{"url": named("url"), "signing": []object{named("sign"), named("old")}}, s, nil)
	r.Send(t.Context(), example(), to(""), nil)
	signed := got.header.Get("Webhook-Id") + "." + got.header.Get("Webhook-Timestamp") + "." + string(got.body)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signing, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, k := range [][]byte{key, []byte(typed)} {
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte(signed))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if diff := cmp.Diff(want, strings.Fields(got.header.Get("Webhook-Signature"))); diff != "" || got.header.Get("Webhook-Id") != string(example().Key()) {
		t.Errorf("the id is %q, signatures (-want +got):\n%s", got.header.Get("Webhook-Id"), diff)
	}
}

// A target has its own secret, so that a receiver cannot pass for us at another.
func TestTargetsOfAWebhookSignOnTheirOwn(t *testing.T) {
	t.Parallel()
	signatures := map[string]string{}
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		signatures[r.URL.Path] = r.Header.Get("Webhook-Signature")
	})
	s := keep(at)
	s.put("other", strings.Repeat("other", 9))
	r := open(t, "webhook", object{"signing": []object{named("sign")}, "targets": object{
		"a": object{"url": at + "/a", "signing": []object{named("other")}}, "b": object{"url": at + "/b"}, "c": object{"url": at + "/c"},
	}}, s, nil)
	for _, address := range []string{"a", "b", "c"} { // one after another: the map is not guarded
		if got := verdict(r.Send(t.Context(), example(), to(address), nil), 0); got != "accepted" {
			t.Fatal(got)
		}
	}
	if signatures["/a"] == signatures["/b"] || len(signatures) != 3 {
		t.Errorf("got signatures %v", signatures)
	}
}

// What scripts send may be anything; what people get is whole characters, of
// which none controls how the others are shown, within what each side takes.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"ascii": "0123456789", "japanese": "通知が届きました", "emoji": "🙂", "escaped": `<&"\*_[` + "\n", "separators": "x\u2028\u2029",
		"broken": "a\xff\xc3", "controls": "\x00\x1b[31m\u202e\r",
	} {
		for _, kind := range chat.Kinds() {
			size := 40 << 10 // H2
			if kind == "webhook" {
				size = 400 << 10
			}
			n := example()
			n.Body = strings.Repeat(text, size/len(text))
			n.Subject, n.Type, n.Origin.Script = n.Body, n.Body, n.Body
			got := send(t, kind, n, nil)
			if !got.truncated {
				t.Errorf("%s, %s: nothing says that it was cut", kind, name)
			}
			map[string]func(*testing.T, string, []byte){
				"webhook": checkWebhook, "teams": checkTeams, "slack": checkSlack, "ntfy": checkNtfy, "gotify": checkGotify,
			}[kind](t, kind+", "+name, got.body)
		}
	}
}

func decode[T any](t *testing.T, what string, body []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return v
}

// shown checks a text that people see: it is within its limit and near it, cut as it says, and harmless.
func shown(t *testing.T, what, s string, length, most int) {
	t.Helper()
	if length > most || length < most-20 {
		t.Errorf("%s has %d of %d", what, length, most)
	}
	if !strings.Contains(s, "…") || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x202e || r == 0x7f }) {
		t.Errorf("%s: got %.80q", what, s)
	}
}

func checkWebhook(t *testing.T, what string, body []byte) {
	t.Helper()
	v := decode[struct {
		Data struct {
			Body      string
			Truncated bool
		}
	}](t, what, body)
	if !v.Data.Truncated {
		t.Errorf("%s: the receiver is not told that it was cut", what)
	}
	shown(t, what, v.Data.Body, len(body), 256<<10)
}

func checkTeams(t *testing.T, what string, body []byte) {
	t.Helper()
	v := decode[struct {
		Attachments []struct {
			Content struct{ Body []struct{ Text string } }
		}
	}](t, what, body)
	shown(t, what, v.Attachments[0].Content.Body[1].Text, len(body), 27<<10)
}

func checkSlack(t *testing.T, what string, body []byte) {
	t.Helper()
	v := decode[struct {
		Blocks []struct{ Text struct{ Text string } }
	}](t, what, body)
	for i, most := range []int{150, 3000} {
		text := v.Blocks[i].Text.Text
		shown(t, what, text, len(utf16.Encode([]rune(text))), most)
	}
	if text := v.Blocks[1].Text.Text; strings.Contains(strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(text), "&") || strings.ContainsAny(text, "<>") {
		t.Errorf("%s: a character is cut or not escaped in %.80q", what, text)
	}
}

func checkNtfy(t *testing.T, what string, body []byte) {
	t.Helper()
	v := decode[struct{ Title, Message string }](t, what, body)
	shown(t, what+", message", v.Message, len(v.Message), 4096)
	shown(t, what+", title", v.Title, len(v.Title), 250)
}

func checkGotify(t *testing.T, what string, body []byte) {
	t.Helper()
	v := decode[struct{ Title, Message string }](t, what, body)
	shown(t, what+", message", v.Message, len(v.Message), 32<<10)
}

// Where people see a title that was cut, what is reported says so, though the text is whole.
func TestATitleThatIsCutIsTold(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{"webhook": false, "teams": true, "slack": true, "ntfy": true, "gotify": true} {
		n := example()
		n.Subject = strings.Repeat("long ", 80)
		if got := send(t, kind, n, nil); got.truncated != want {
			t.Errorf("%s: cut: %v, want %v", kind, got.truncated, want)
		}
	}
}

// A script may leave everything out, and a clock may be anywhere.
func TestANotificationWithoutWords(t *testing.T) {
	t.Parallel()
	n := &notify.Notification{ID: "n", Origin: notify.Origin{Enqueued: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)}}
	for kind, want := range map[string]string{
		"webhook": `"type":"notification"`, "teams": `"text":"Notification"`, "slack": `"text":"Notification"`,
		"ntfy": `"message":"n"`, "gotify": `"message":"n"`,
	} {
		got := send(t, kind, n, nil)
		has(t, kind, string(got.body), want)
		if strings.Contains(string(got.body), `"text":""`) || got.truncated {
			t.Errorf("%s: got %s", kind, got.body)
		}
	}
}

// A long text alone leaves the rest as it is, and the receiver is told.
func TestALongTextIsCutForAWebhook(t *testing.T) {
	t.Parallel()
	n := example()
	n.Body = strings.Repeat("\"🙂\n", 100<<10)
	got := send(t, "webhook", n, nil)
	if len(got.body) > 256<<10 || len(got.body) < 256<<10-20 || !got.truncated {
		t.Errorf("got %d bytes, truncated %v", len(got.body), got.truncated)
	}
	has(t, "body", string(got.body), `"truncated":true`, `"data":{"batch":7}`, `"subject":"Batch 7 failed"`, `…","site"`)
}

// Half of the data is none, and what is no JSON is none either: the rest
// arrives, and says so.
func TestDataThatAWebhookCannotCarry(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"large": `"` + strings.Repeat("x", 200<<10) + `"`, "no JSON": `{"a":`, "no UTF-8": "\"\xff\""} {
		n := example()
		n.Data = json.RawMessage(data)
		got := send(t, "webhook", n, nil)
		if !got.truncated || !strings.Contains(string(got.body), `"truncated":true`) || strings.Contains(string(got.body), `"data":"`) {
			t.Errorf("%s: got %.300s", name, got.body)
		}
		has(t, name, string(got.body), "Press 5 stopped.")
	}
}

func TestLoginsOfNtfy(t *testing.T) {
	t.Parallel()
	if got := send(t, "ntfy", example(), nil).header.Get("Authorization"); got != "Bearer "+token {
		t.Errorf("got %q", got)
	}
	var got string
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got = user + " " + password
		answer(200, "{}")(w, r)
	})
	r := open(t, "ntfy", object{"url": at, "user": "bot", "password": named("token")}, keep(at), nil)
	if v := verdict(r.Send(t.Context(), example(), to("alarms"), nil), 0); v != "accepted" || got != "bot "+token {
		t.Errorf("got %q with %q", v, got)
	}
	if v := verdict(r.Send(t.Context(), example(), to(""), nil), 0); v != "refused, no_topic" {
		t.Errorf("got %q without a topic", v)
	}
}
