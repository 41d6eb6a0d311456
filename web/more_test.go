package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/web"
)

// verifier stands in for the node's.
type verifier struct {
	mu    sync.Mutex
	asked int
	found audit.Report
	at    time.Time
}

func (v *verifier) Verified() (audit.Report, time.Time, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.found, v.at, v.asked > 0
}

func (v *verifier) Verify() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
}

// plant is a site in all that these pages show.
type plant struct {
	*site

	sites    *admintest.Sites
	tokens   *admintest.Memory
	verifier *verifier
	hub      *admin.Hub
	log      *audit.Log
}

func central(t *testing.T, may api.Grant) *plant {
	t.Helper()
	p := &plant{sites: &admintest.Sites{}, tokens: &admintest.Memory{}, verifier: &verifier{}}
	if _, err := p.sites.Add(t.Context(), `plant <4>`, "ana"); err != nil {
		t.Fatal(err)
	}
	p.site = serve(t, may, func(_ *web.Settings, s *admin.Service) {
		db, ok := s.Outbox.(*sqlite.DB)
		if !ok {
			t.Fatal("another store")
		}
		kept := nodestore.New(db, nil)
		key, err := audit.OpenKey(filepath.Join(t.TempDir(), "audit.key"))
		if err != nil {
			t.Fatal(err)
		}
		d := &audit.Describer{Site: "plant-4", Node: "n", Incarnation: kept.Audit.Incarnation, Category: func(string) holdfast.Category { return "" }}
		p.log = &audit.Log{Store: kept.Audit, Journal: db, Describe: d.Describe, Site: "plant-4", Node: "n", Key: key}
		book := fanout.NewBook(kept.Fanout, nil)
		p.hub = &admin.Hub{
			Book: book, Publisher: &fanout.Publisher{Bundles: db, Book: book, Source: "n"}, Schedule: fanout.DefaultSchedule(),
			NewSecret: func(*fanout.Subscription) (secret, public string, err error) { return "whsec_c2VjcmV0", "", nil },
			Seal:      func(*fanout.Subscription, fanout.Use, string) (string, error) { return "sealed", nil },
			Try: func(context.Context, *fanout.Subscription, *fanout.Event) (api.TestExchange, error) {
				return api.TestExchange{URL: "https://example.com", Status: 503, Response: "<b>no</b>", Error: "the subscriber answered 503"}, nil
			},
		}
		s.Records, s.AuditLog, s.Verifier, s.Hub, s.Central, s.Tokens, s.Activity, s.Calls = kept.Audit, p.log, p.verifier, p.hub, p.sites, p.tokens, kept.Activity, db
		s.AuditLag, s.AuditFailures = func(context.Context) (time.Duration, error) { return 0, nil }, func() int64 { return 0 }
		s.Keeps = []api.Kept{{What: "Messages that arrived", For: "7d", Key: "retention.delivered"}}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.log.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

// recorded waits until the audit log has all that happened, and returns the id of its newest record of a kind.
func (p *plant) recorded(t *testing.T, kind string) string {
	t.Helper()
	id := ""
	waittest.Until(t, "a record of "+kind, func() bool {
		page := body(t, p.get(t, "/ui/audit?kind="+kind))
		m := regexp.MustCompile(`/ui/audit/([0-9a-f-]{36})"`).FindStringSubmatch(page)
		if m != nil {
			id = m[1]
		}
		return m != nil
	})
	return id
}

// orders makes a topic with a subscription, and publishes an event.
func (p *plant) orders(t *testing.T) {
	t.Helper()
	_, err := p.hub.Book.Store().PutTopic(t.Context(), fanout.Topic{Name: "orders", Description: "<b>orders</b>"}, "ana")
	if err == nil {
		_, err = p.hub.Book.Store().PutSubscription(t.Context(), fanout.Subscription{ID: "shop", Topics: []string{"orders"}, Settings: fanout.Settings{URL: "https://example.com/<x>"}}, "ana")
	}
	if err == nil {
		_, err = p.hub.Publisher.Publish(t.Context(), fanout.Event{ID: "e1", Source: "n", Topic: "orders", Subject: "<img onerror=x>", Data: []byte(`{"big":9223372036854775807,"e":1e400}`)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// token takes a field of the page that shows a secret.
func shownSecret(t *testing.T, page string) string {
	t.Helper()
	_, rest, _ := strings.Cut(page, `id="secret">`)
	text, _, found := strings.Cut(rest, "<")
	if !found || text == "" {
		t.Fatalf("there is no secret in %s", page)
	}
	return text
}

// AU-05: the audit log by its filters; a refused filter is said on the page, with the form.
func TestTheAuditLogIsSearched(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	if w := p.post(t, "/ui/settings/tokens", "name=erp&role=read"); w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	id := p.recorded(t, "ApiCall")
	page := body(t, p.get(t, "/ui/audit?kind=ApiCall&actor=ana&from=1h&to=2999-01-01"))
	wants(t, page, "ApiCall", "All records were looked at", `value="ana"`, "not verified yet")
	if page := body(t, p.get(t, "/ui/audit?kind=ApiCall&actor=nobody")); !strings.Contains(page, "No record found") {
		t.Error("a filter finds what does not fit")
	}
	w := p.get(t, "/ui/audit?from=yesterday")
	if w.Code != http.StatusUnprocessableEntity {
		t.Errorf("status %d", w.Code)
	}
	wants(t, body(t, w), "Not done", "yesterday", `name="correlationId"`)
	wants(t, body(t, p.get(t, "/ui/audit/"+id)), "Chain hash", "of this actor", "Prove that it is in the log")
	if w := p.get(t, "/ui/audit/"+string(holdfast.NewID())); w.Code != http.StatusNotFound {
		t.Errorf("an unknown record: status %d", w.Code)
	}
}

// A record is proved on its page, and the proof that the page gives as a file verifies without the node.
func TestARecordIsProved(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	p.post(t, "/ui/settings/tokens", "name=erp&role=read")
	at := "/ui/audit/" + p.recorded(t, "ApiCall") + "/proof"
	wants(t, body(t, p.post(t, at, "")), "It is in the log", "hashes lead from leaf")
	w := p.post(t, at, "as=file")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, %v", w.Code, w.Header())
	}
	report, err := audit.VerifyProof([]byte(body(t, w)), audit.VerifyOptions{Keys: []audit.Public{p.log.Key.Public()}})
	if err != nil || report.Status == audit.Broken {
		t.Errorf("the proof: %v, %+v", err, report)
	}
	if w := p.get(t, at); w.Code == http.StatusOK {
		t.Error("a GET proves, which may sign a checkpoint")
	}
}

// The strip says what the last verification found, and a person may ask for one.
func TestIntegrityIsShown(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	w := p.post(t, "/ui/audit/verify", "")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/audit?done=verifying" || p.verifier.asked != 1 {
		t.Fatalf("status %d to %s", w.Code, w.Header().Get("Location"))
	}
	wants(t, body(t, p.follow(t, w)), "verifying", "All records are read")
	p.verifier.found = audit.Report{Status: audit.Broken, Logs: []audit.LogReport{
		{Origin: "plant-4/n/1", Own: true, Status: audit.Broken, Fault: "altered", Seq: 7, Size: 4711, First: 1, Witnessed: 12, Detail: "<i>it was another</i>"},
	}}
	p.verifier.at = time.Now().Add(-3 * time.Minute)
	page := body(t, p.get(t, "/ui/audit"))
	wants(t, page, "broken", "plant-4/n/1 is not what was written", "altered at record 7", "&lt;i&gt;it was another", "4\u2009711", "3 min ago")
	narrow := central(t, api.Grant{Rights: []api.Right{api.AuditRead}, Scope: api.Scope{Sites: []string{"plant-4"}}})
	if w := narrow.post(t, "/ui/audit/verify", ""); w.Code != http.StatusForbidden || narrow.verifier.asked != 0 {
		t.Errorf("narrowed: status %d", w.Code)
	}
	wants(t, body(t, narrow.get(t, "/ui/audit?site=plant-4")), "<h1>Audit</h1>", "this needs the right audit-export")
}

// AU-06: an export needs its right, is asked for by POST, and is itself on record; a filter goes with it.
func TestAnExportIsARecord(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	p.post(t, "/ui/settings/tokens", "name=erp&role=read")
	p.recorded(t, "ApiCall")
	wants(t, body(t, p.get(t, "/ui/audit/export?actor=ana")), `name="actor" value="ana"`, "The export itself is on record")
	w := p.post(t, "/ui/audit/export", "format=jsonl&actor=ana")
	text := body(t, w)
	if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != `attachment; filename="audit.jsonl"` || !strings.Contains(text, `"ana"`) {
		t.Fatalf("status %d, %v: %s", w.Code, w.Header(), text)
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	p.recorded(t, "Export")
	if w := p.post(t, "/ui/audit/export", "format=csv"); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") {
		t.Errorf("csv: status %d, %v", w.Code, w.Header())
	}
	if w := p.post(t, "/ui/audit/export", "format=xml"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("xml: status %d", w.Code)
	}
	for _, path := range []string{"/ui/audit/export"} {
		if w := central(t, api.Grant{Rights: []api.Right{api.AuditRead}}).post(t, path, "format=csv"); w.Code != http.StatusForbidden {
			t.Errorf("without the right: status %d", w.Code)
		}
	}
}

// The secret of a token is shown once, where it was made, and is kept by no cache.
func TestASecretIsShownOnce(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	w := p.post(t, "/ui/settings/tokens", "name=erp&role=&right=read&right=operate&sites=plant-4,%20plant-5&for=90d")
	page := body(t, w)
	secret := shownSecret(t, page)
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" || !api.WellFormed(secret) {
		t.Fatalf("status %d, %v, %s", w.Code, w.Header(), secret)
	}
	list := body(t, p.get(t, "/ui/settings/tokens"))
	wants(t, list, "erp", "read, operate", "sites plant-4, plant-5")
	if strings.Contains(list, secret) {
		t.Error("the list has the secret")
	}
	w = p.post(t, "/ui/settings/tokens", "name=erp&role=read&topics=orders")
	if w.Code != http.StatusConflict {
		t.Errorf("the name again: status %d", w.Code)
	}
	wants(t, body(t, w), "Not done", "is a token", `value="erp"`, `value="orders"`)
	wants(t, body(t, p.get(t, "/ui/settings/tokens/erp/delete")), "refused from now on", `action="/ui/settings/tokens/erp/delete"`)
	if w := p.post(t, "/ui/settings/tokens/erp/delete", ""); w.Code != http.StatusSeeOther {
		t.Errorf("delete: status %d", w.Code)
	}
	if strings.Contains(body(t, p.get(t, "/ui/settings/tokens")), "plant-5") {
		t.Error("the token is still there")
	}
	w = p.post(t, "/ui/sites", "name=plant-9")
	if w.Code != http.StatusOK || shownSecret(t, body(t, w)) == "" {
		t.Errorf("a site's token: status %d", w.Code)
	}
}

// Events: who got one and why not; a resend is asked for first, and twice the same form is one resend.
func TestAnEventIsExplainedAndSentAgain(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	p.orders(t)
	wants(t, body(t, p.get(t, "/ui/events?topic=orders")), "e1", "&lt;img onerror=x&gt;", "/ui/events/e1?source=n")
	wants(t, body(t, p.get(t, "/ui/topics")), "&lt;b&gt;orders", "/ui/events?topic=orders")
	wants(t, body(t, p.get(t, "/ui/events/e1?source=n")), "9223372036854775807", "1e400", "Who got it, and why not", "shop", "pending")
	if w := p.get(t, "/ui/events/none"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown event: status %d", w.Code)
	}
	form := "source=n&id=again-1"
	for range 2 {
		if w := p.post(t, "/ui/events/e1/resend", form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/events/e1?done=sent&source=n" {
			t.Fatalf("status %d to %s: %s", w.Code, w.Header().Get("Location"), body(t, w))
		}
	}
	page := body(t, p.get(t, "/ui/events/e1?source=n"))
	if n := strings.Count(page, "a resend"); n != 1 {
		t.Errorf("%d resends", n)
	}
	wants(t, body(t, p.get(t, "/ui/events/e1/resend?source=n")), "Send again", "holdfast events resend e1")
}

// A subscription is paused with a reason, tested, disabled and resumed; its new secret is shown once.
func TestASubscriptionIsOperated(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	p.orders(t)
	wants(t, body(t, p.get(t, "/ui/subscriptions")), "shop", "active", "https://example.com/&lt;x&gt;")
	for _, step := range []struct{ verb, done, says string }{{"pause", "paused", "Paused by ana"}, {"resume", "resumed", "active"}, {"disable", "disabled", "Disabled by ana"}} {
		if step.verb != "resume" {
			wants(t, body(t, p.get(t, "/ui/subscriptions/shop/"+step.verb)), `name="reason"`, "holdfast subscriptions "+step.verb+" shop")
		}
		w := p.post(t, "/ui/subscriptions/shop/"+step.verb, "reason=ticket+%3Ci%3E4711")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/subscriptions/shop?done="+step.done {
			t.Fatalf("%s: status %d to %s", step.verb, w.Code, w.Header().Get("Location"))
		}
		wants(t, body(t, p.get(t, w.Header().Get("Location"))), step.says, map[bool]string{true: "ticket &lt;i&gt;4711"}[step.verb != "resume"])
	}
	wants(t, body(t, p.post(t, "/ui/subscriptions/shop/test", "")), "It would not count as delivered", "HTTP 503", "&lt;b&gt;no&lt;/b&gt;")
	w := p.post(t, "/ui/subscriptions/shop/rotate-secret", "overlap=1h")
	if w.Code != http.StatusOK || shownSecret(t, body(t, w)) != "whsec_c2VjcmV0" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
}

// A site is asked live; what it does not answer is said to be stale. Retry and discard are relayed, with its answer.
func TestASiteIsAskedAndTold(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	there := p.sites.At("plant <4>")
	if _, err := there.Enqueue(t.Context(), holdfast.Message{ID: "call-1", Destination: "erp", Endpoint: "E", Source: "plant", Kind: holdfast.Signal, Payload: []byte(`{"n":9223372036854775807}`)}); err != nil {
		t.Fatal(err)
	}
	if err := there.Change("call-1", func(r *holdfast.Record) { r.State, r.LastError = holdfast.Parked, "<script>no" }); err != nil {
		t.Fatal(err)
	}
	const at = "/ui/sites/plant%20%3C4%3E"
	wants(t, body(t, p.get(t, "/ui/sites")), "plant &lt;4&gt;", `href="`+at+`"`)
	wants(t, body(t, p.get(t, at)), "call-1", "The site answered", "&lt;script&gt;no")
	wants(t, body(t, p.get(t, at+"/messages/call-1")), "9223372036854775807", "parked", "Retry")
	w := p.post(t, at+"/messages/call-1/discard", "")
	if w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a discard without a reason: status %d", w.Code)
	}
	w = p.post(t, at+"/messages/call-1/retry", "")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != at+"/messages/call-1?done=retried" {
		t.Fatalf("status %d to %s", w.Code, w.Header().Get("Location"))
	}
	w = p.post(t, at+"/messages/call-1/retry", "")
	if w.Code != http.StatusConflict {
		t.Errorf("retried twice: status %d", w.Code)
	}
	wants(t, body(t, w), "Not done", "only a message that is")
	if w := p.get(t, at+"?state=nonsense"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a state that is none: status %d", w.Code)
	}
	p.sites.Away("plant <4>", &link.ErrSite{Site: "plant <4>", Trouble: link.Busy})
	w = p.get(t, at)
	if w.Code != http.StatusOK {
		t.Errorf("away: status %d", w.Code)
	}
	wants(t, body(t, w), "Stale", "what it said last")
	if w := p.get(t, "/ui/sites/nowhere"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown site: status %d", w.Code)
	}
	if w := p.post(t, at+"/revoke", "name=plant"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("revoked with another name: status %d", w.Code)
	}
	if w := p.post(t, at+"/revoke", "name=plant+%3C4%3E"); w.Code != http.StatusSeeOther {
		t.Errorf("revoked: status %d", w.Code)
	}
}

// The schedule of webhooks is set by a form, against the version that was seen; health, activity and settings are shown.
func TestSettingsHealthAndActivity(t *testing.T) {
	t.Parallel()
	p := central(t, api.Everything())
	wants(t, body(t, p.get(t, "/ui/settings")), "audit-export", "retention.delivered", "If no attempt delivers")
	if w := p.post(t, "/ui/settings/schedule", "backoff=exponential&factor=10s&base=3&cap=1h&retries=9&apply=next"); w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, body(t, w))
	}
	wants(t, body(t, p.get(t, "/ui/settings")), "Set by ana", `value="10s"`, `value="9"`)
	for _, bad := range []string{"version=99&retries=3", "retries=x", "base=x"} {
		if w := p.post(t, "/ui/settings/schedule", bad); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: status %d", bad, w.Code)
		}
	}
	wants(t, body(t, p.get(t, "/ui/health")), "Nothing is degraded", "plant &lt;4&gt;", "By site")
	wants(t, body(t, p.get(t, "/ui/activity")), "Nothing found")
	for path, status := range map[string]int{"/ui/activity?kind=nonsense": 422, "/ui/activity?after=x": 422, "/ui/activity?from=soon": 422, "/ui/settings/keys": 501, "/ui/people": 501, "/ui/site-calls": 501} {
		if w := p.get(t, path); w.Code != status {
			t.Errorf("%s: status %d, want %d", path, w.Code, status)
		}
	}
}

// Who lacks a right is refused each page and each action that needs it, by hand as well, and that is on record.
func TestRightsOfTheOtherPages(t *testing.T) {
	t.Parallel()
	read := central(t, api.Grant{Rights: []api.Right{api.Read}})
	read.orders(t)
	for _, path := range []string{
		"POST /ui/subscriptions/shop/pause", "POST /ui/subscriptions/shop/resume", "POST /ui/subscriptions/shop/disable", "POST /ui/subscriptions/shop/test", "POST /ui/subscriptions/shop/rotate-secret",
		"POST /ui/events/e1/resend", "POST /ui/sites", "POST /ui/sites/a/revoke", "POST /ui/sites/a/rotate", "POST /ui/sites/a/messages/b/retry", "POST /ui/sites/a/messages/b/discard", "POST /ui/sites/a/messages/b/run",
		"POST /ui/settings/tokens", "POST /ui/settings/tokens/a/delete", "POST /ui/settings/schedule", "POST /ui/settings/keys/rotate", "POST /ui/audit/verify", "POST /ui/audit/export", "GET /ui/audit", "GET /ui/settings/tokens",
	} {
		method, at, _ := strings.Cut(path, " ")
		ask := func() int { return read.get(t, at).Code }
		if method == http.MethodPost {
			ask = func() int { return read.post(t, at, "").Code }
		}
		if code := ask(); code != http.StatusForbidden {
			t.Errorf("%s: status %d", path, code)
		}
	}
	page := body(t, read.get(t, "/ui/subscriptions/shop"))
	wants(t, page, "this needs the right operate, which ana does not have", "this needs the right admin, which ana does not have")
	if strings.Contains(page, "/pause?") || strings.Contains(page, `action="/ui/subscriptions/shop/test"`) {
		t.Error("a disabled action has a form")
	}
	narrow := central(t, api.Grant{Rights: []api.Right{api.Read, api.Operate}, Scope: api.Scope{Sites: []string{"plant-4"}, Topics: []string{"stock"}}})
	narrow.orders(t)
	for path, status := range map[string]int{
		"/ui/health": 403, "/ui/settings/keys": 403, "/ui/settings": 200, "/ui/events": 403, "/ui/events/e1?source=n": 404, "/ui/subscriptions/shop": 404, "/ui/sites/plant%20%3C4%3E": 403,
	} {
		if w := narrow.get(t, path); w.Code != status {
			t.Errorf("narrowed: %s: status %d, want %d", path, w.Code, status)
		}
	}
	if strings.Contains(body(t, narrow.get(t, "/ui/subscriptions")), fmt.Sprintf("%q", "/ui/subscriptions/shop")) {
		t.Error("narrowed: the list has a subscription of another topic")
	}
}
