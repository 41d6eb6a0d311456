package node_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// subscriber keeps what it is sent, and answers what it is told to.
type subscriber struct {
	node   string // that calls it
	mu     sync.Mutex
	got    []string // bodies
	ids    []string // webhook-id of each
	answer int
}

func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got, s.ids = append(s.got, string(body)), append(s.ids, r.Header.Get("Webhook-Id"))
	w.WriteHeader(max(s.answer, 200))
}

func (s *subscriber) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *subscriber) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = status
}

// hooked is a node with a topic and a subscriber.
func hooked(t *testing.T, id string) (*client.Client, *subscriber) {
	t.Helper()
	return hookedAs(t, id, "factor: 1s")
}

func hookedAs(t *testing.T, id, webhooks string) (*client.Client, *subscriber) {
	t.Helper()
	s := &subscriber{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.node = serve(t, parse(t, "webhooks: {addresses: [127.0.0.0/8], "+webhooks+"}"))
	c, err := client.New(s.node, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Topics().Put(t.Context(), "orders", api.TopicSpec{Description: "What happens to orders"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subscriptions().Put(t.Context(), id, api.SubscriptionSpec{
		Topics: []string{"orders"}, Filter: json.RawMessage(`{"types":["order.*"]}`), URL: server.URL + "/hooks", Concurrency: 1, Timeout: "5s",
	}); err != nil {
		t.Fatal(err)
	}
	return c, s
}

func publish(t *testing.T, c *client.Client, e api.NewEvent) api.EventAccepted {
	t.Helper()
	taken, err := c.Events().Publish(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// An event reaches the subscriber as it was published, and can be explained (WH-01, WH-06).
func TestAnEventReachesItsSubscriber(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "shop")
	taken := publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid", Subject: "o-7", Data: json.RawMessage(`{"total": 12.50}`)})
	if taken.Matched != 1 || taken.Duplicate {
		t.Errorf("accepted: %+v", taken)
	}
	waittest.Until(t, "the subscriber has it", func() bool { return len(s.bodies()) == 1 })
	if got := s.bodies()[0]; got != `{"total": 12.50}` {
		t.Errorf("it got %s", got)
	}
	var detail api.EventDetail
	waittest.Until(t, "the event says so", func() bool {
		var err error
		detail, err = c.Events().Get(t.Context(), "", taken.ID, "")
		return err == nil && len(detail.Deliveries) == 1 && detail.Deliveries[0].State == "delivered"
	})
	if detail.Deliveries[0].Message != s.ids[0] || string(detail.Data) != `{"total": 12.50}` {
		t.Errorf("shown as %+v, sent as %q", detail, s.ids)
	}
	other := publish(t, c, api.NewEvent{Topic: "orders", Type: "invoice.sent"})
	x, err := c.Events().Explain(t.Context(), "", other.ID, "", 10)
	if err != nil || other.Matched != 0 || len(x.Subscriptions) != 1 || x.Subscriptions[0].Matched || x.Subscriptions[0].Why == "" {
		t.Errorf("what is for nobody: %+v, %+v, %v", other, x, err)
	}
	try, err := c.Subscriptions().Test(t.Context(), "shop", api.NewEvent{Topic: "orders", Data: json.RawMessage(`"test"`)})
	if err != nil || !try.Delivered || try.Status != 200 || try.Body != `"test"` {
		t.Errorf("a test: %+v, %v", try, err)
	}
	if _, text := ask(t, "GET", s.node+"/metrics", ""); !strings.Contains(text, `holdfast_webhook_connections_total{reused="false"} 1`) || !strings.Contains(text, `holdfast_webhook_connections_total{reused="true"} 1`) {
		t.Errorf("an attempt and a test over one connection:\n%s", text)
	}
	page, err := c.Events().List(t.Context(), "orders", "", 10)
	if err != nil || len(page.Events) != 2 || page.Events[0].ID != other.ID {
		t.Errorf("listed: %+v, %v", page, err)
	}
}

// A secret signs, is kept sealed and never shown, and two of them sign while one takes over from the other.
func TestASecretOfASubscription(t *testing.T) {
	t.Parallel()
	type request struct {
		header http.Header
		body   []byte
	}
	got := make(chan request, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Header, body}
	}))
	defer server.Close()
	conf := parse(t, "webhooks: {addresses: [127.0.0.0/8]}")
	conf.Secrets.Key = config.NewSecret(bytes.Repeat([]byte{1}, keyring.KeySize))
	c, err := client.New(serve(t, conf), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Topics().Put(t.Context(), "orders", api.TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	const first, second = "whsec_bm90IGEgc2VjcmV0LCBvbmx5IGFuIGV4YW1wbGU=", "whsec_YW5vdGhlciBzZWNyZXQgdGhhdCBpcyBub25l"
	made, err := c.Subscriptions().Put(t.Context(), "shop", api.SubscriptionSpec{Topics: []string{"*"}, URL: server.URL, Secrets: []api.SigningSecret{{Value: first}}})
	if err != nil || len(made.Secrets) != 1 || made.Secrets[0].Mark == "" || made.Secrets[0].Value != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	made.Secrets = append(made.Secrets, api.SigningSecret{Value: second})
	if made, err = c.Subscriptions().Put(t.Context(), "shop", api.SubscriptionSpec(made)); err != nil || len(made.Secrets) != 2 {
		t.Fatalf("%+v, %v", made, err)
	}
	publish(t, c, api.NewEvent{Topic: "orders", Data: json.RawMessage(`{"a": 1}`)})
	r := <-got
	for _, secret := range []string{first, second} {
		v, err := standardwebhooks.NewVerifier(secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := standardwebhooks.Verify(r.header, r.body, time.Now(), time.Minute, v); err != nil {
			t.Errorf("%.9s: %v", secret, err)
		}
	}
	if _, err := c.Subscriptions().Put(t.Context(), "shop", api.SubscriptionSpec{Topics: []string{"*"}, URL: server.URL, Secrets: []api.SigningSecret{{Mark: "made.up"}}}); err == nil {
		t.Error("a mark that is none was taken")
	}
}

// A token that is narrowed to topics sees of an event only what goes to subscriptions in its scope: what others
// have answered is not for it.
func TestAnEventShowsOnlyDeliveriesInTheScope(t *testing.T) {
	t.Parallel()
	conf := parse(t, "webhooks: {addresses: [127.0.0.0/8]}")
	at := serve(t, conf)
	c, err := client.New(at, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Topics().Put(t.Context(), "orders", api.TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	for id, topics := range map[string][]string{"own": {"orders"}, "of-all": {"*"}, "of-payroll": {"orders", "payroll"}} {
		if _, err := c.Subscriptions().Put(t.Context(), id, api.SubscriptionSpec{Topics: topics, URL: "http://127.0.0.1:9"}); err != nil {
			t.Fatal(err)
		}
	}
	taken := publish(t, c, api.NewEvent{Topic: "orders"})
	boss, err := c.Tokens().Create(t.Context(), api.NewToken{Name: "boss", Role: api.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = client.New(at, boss.Secret); err != nil {
		t.Fatal(err)
	}
	narrow, err := c.Tokens().Create(t.Context(), api.NewToken{Name: "narrow", Role: api.RoleRead, Topics: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{boss.Secret: 3, narrow.Secret: 1} {
		c, err := client.New(at, token)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Events().Get(t.Context(), "", taken.ID, "")
		if err != nil || len(d.Deliveries) != want {
			t.Errorf("%+v, %v, want %d deliveries", d, err, want)
		}
	}
}

// A secret that does not open shows in the health of the node, and lets no unchecked target pass.
func TestASecretThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	conf := parse(t, "webhooks: {addresses: [127.0.0.0/8]}")
	conf.Secrets.Key = config.NewSecret(bytes.Repeat([]byte{1}, keyring.KeySize))
	spec := api.SubscriptionSpec{Topics: []string{"*"}, URL: "http://127.0.0.1:9", Secrets: []api.SigningSecret{{Value: "whsec_bm90IGEgc2VjcmV0LCBvbmx5IGFuIGV4YW1wbGU="}}}
	t.Run("stored", func(t *testing.T) {
		c, err := client.New(serve(t, conf), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Topics().Put(t.Context(), "orders", api.TopicSpec{}); err != nil {
			t.Fatal(err)
		}
		made, err := c.Subscriptions().Put(t.Context(), "shop", spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Secrets = made.Secrets
	})
	conf.Secrets.Key = config.NewSecret(bytes.Repeat([]byte{2}, keyring.KeySize)) // another key
	c, err := client.New(serve(t, conf), "")
	if err != nil {
		t.Fatal(err)
	}
	spec.URL = "http://169.254.169.254"
	_, err = c.Subscriptions().Put(t.Context(), "shop", spec)
	if p, refused := errors.AsType[*api.Problem](err); !refused || !slices.ContainsFunc(p.Errors, func(f api.Fault) bool { return f.Field == "url" }) {
		t.Errorf("a forbidden address beside it: %v", err)
	}
	publish(t, c, api.NewEvent{Topic: "orders"})
	waittest.Until(t, "the health tells", func() bool {
		h, err := c.Health(t.Context())
		return err == nil && slices.ContainsFunc(h.Checks, func(c api.Check) bool {
			return c.Name == "subscriptions" && c.Status == api.Degraded && strings.Contains(c.Detail, "shop: ")
		})
	})
	var message api.Message
	waittest.Until(t, "the message waits", func() bool {
		page, err := c.Messages().List(t.Context(), client.MessageQuery{States: []string{"pending"}})
		if err != nil || len(page.Messages) != 1 {
			return false
		}
		message = page.Messages[0]
		return true
	})
	if message.Tries != 0 { // WH-03: its schedule has not begun
		t.Errorf("%+v", message)
	}
	m, err := c.Messages().Get(t.Context(), message.ID)
	if err != nil || !strings.HasPrefix(m.WaitsFor, "nobody is called: ") {
		t.Errorf("it waits for %q, %v", m.WaitsFor, err)
	}
}

// A paused subscription goes on getting messages, and gets them in their order (WH-02).
func TestAPausedSubscriptionGetsItsMessagesInOrder(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "shop")
	paused, err := c.Subscriptions().Pause(t.Context(), "shop", "maintenance")
	if err != nil || paused.State != "paused" || paused.Why != "maintenance" || paused.Actor != "local" {
		t.Fatalf("%+v, %v", paused, err)
	}
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint(i))
		publish(t, c, api.NewEvent{ID: fmt.Sprint("e", i), Topic: "orders", Type: "order.paid", Data: json.RawMessage(want[i])})
	}
	waittest.Until(t, "they wait for it", func() bool {
		one, err := c.Subscriptions().Get(t.Context(), "shop")
		return err == nil && *one.Pending == 5
	})
	detail, err := c.Events().Get(t.Context(), "", "e0", "")
	if err != nil || len(detail.Deliveries) != 1 || !strings.HasPrefix(detail.Deliveries[0].WaitsFor, "subscription shop is paused since 20") ||
		!strings.HasSuffix(detail.Deliveries[0].WaitsFor, "Z (maintenance); when it may go on: holdfast subscriptions resume shop") {
		t.Errorf("%+v, %v", detail, err)
	}
	if got := s.bodies(); len(got) != 0 {
		t.Errorf("while it is paused it got %q", got)
	}
	if _, err := c.Subscriptions().Resume(t.Context(), "shop", ""); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it has all", func() bool { return len(s.bodies()) == len(want) })
	if d := cmp.Diff(s.bodies(), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// Who answers 410 is not asked again: the message parks, and the subscription is paused in its name.
func TestASubscriberThatWantsNoMore(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "shop")
	s.answers(http.StatusGone)
	taken := publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"})
	waittest.Until(t, "its subscription is paused", func() bool {
		one, err := c.Subscriptions().Get(t.Context(), "shop")
		return err == nil && one.State == "paused" && one.Actor == "subscriber" && *one.Parked == 1
	})
	second := publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"})
	waittest.Until(t, "the next one waits", func() bool {
		d, err := c.Events().Get(t.Context(), "", second.ID, "")
		return err == nil && len(d.Deliveries) == 1 && d.Deliveries[0].State == "pending"
	})
	if err := c.Subscriptions().Delete(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "what waits for a deleted one parks", func() bool {
		d, err := c.Events().Get(t.Context(), "", second.ID, "")
		return err == nil && len(d.Deliveries) == 1 && d.Deliveries[0].State == "parked"
	})
	if got := len(s.bodies()); got != 1 {
		t.Errorf("it was asked %d times", got)
	}
	x, err := c.Events().Explain(t.Context(), "", taken.ID, "", 10)
	if err != nil || len(x.Subscriptions) != 1 || !x.Subscriptions[0].Matched || x.Subscriptions[0].State != "active" {
		t.Errorf("explained after it was deleted: %+v, %v", x, err)
	}
	anew := api.SubscriptionSpec{Topics: []string{"orders"}, URL: "https://other.example"}
	_, err = c.Subscriptions().Put(t.Context(), "shop", anew)
	if p, refused := errors.AsType[*api.Problem](err); !refused || p.Status != http.StatusConflict {
		t.Errorf("another one gets what was for the deleted one: %v", err)
	}
	for _, id := range []string{taken.ID, second.ID} {
		d, err := c.Events().Get(t.Context(), "", id, "")
		if err == nil {
			_, err = c.Messages().Discard(t.Context(), d.Deliveries[0].Message)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Subscriptions().Put(t.Context(), "shop", anew); err != nil {
		t.Errorf("after they were discarded: %v", err)
	}
}

// A subscriber that is away is tried by its schedule, and holds up nobody.
func TestASubscriberThatIsAway(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "away")
	s.answers(http.StatusInternalServerError)
	well := &subscriber{}
	server := httptest.NewServer(well)
	defer server.Close()
	if _, err := c.Subscriptions().Create(t.Context(), api.SubscriptionSpec{Topics: []string{"*"}, URL: server.URL}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		publish(t, c, api.NewEvent{ID: fmt.Sprint("e", i), Topic: "orders", Type: "order.paid"})
	}
	waittest.Until(t, "the other one has all", func() bool { return len(well.bodies()) == 10 })
	waittest.Until(t, "all have failed, and wait", func() bool {
		d, err := c.Events().Get(t.Context(), "", "e9", "")
		return err == nil && slices.ContainsFunc(d.Deliveries, func(d api.EventDelivery) bool { return d.Subscription == "away" && d.Attempts > 0 && d.Next != nil })
	})
	s.answers(http.StatusNoContent)
	waittest.Until(t, "it has all", func() bool {
		one, err := c.Subscriptions().Get(t.Context(), "away")
		return err == nil && *one.Pending == 0
	})
}

// A seed makes what does not exist, and leaves alone what people have changed. A fault refuses the start, with its place.
func TestASeedOfTopicsAndSubscriptions(t *testing.T) {
	t.Parallel()
	conf := withKeys(t, *parse(t, "webhooks: {addresses: [127.0.0.0/8]}"), 1)
	conf.Webhooks.Seed = filepath.Join(t.TempDir(), "webhooks.yaml")
	sow := func(text string) {
		if err := os.WriteFile(conf.Webhooks.Seed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const topics = "topics: {orders: {description: Orders}}\n"
	sow(topics + "subscriptions:\n  shop: {topics: [orders], filter: {types: [order.*]}, url: ftp://shop.example, timeout: 5s}\n")
	if err := node.Serve(t.Context(), conf, node.Options{}); err == nil || !strings.Contains(err.Error(), "webhooks.yaml:3") || !strings.Contains(err.Error(), "subscriptions.shop.url") {
		t.Fatalf("with a fault: %v", err)
	}
	sow(topics + "subscriptions:\n  shop: {topics: [orders], filter: {types: [order.*]}, url: https://shop.example, timeout: 5s, authorization: {kind: bearer, secret: {value: hunter2}}}\n")
	for range 2 {
		t.Run("start", func(t *testing.T) {
			c, err := client.New(serve(t, conf), "")
			if err != nil {
				t.Fatal(err)
			}
			one, err := c.Subscriptions().Get(t.Context(), "shop")
			if err != nil || one.URL == "" || string(one.Filter) != `{"types":["order.*"]}` || one.Timeout != "5s" || one.Authorization == nil || one.Authorization.Secret.Mark == "" {
				t.Errorf("%+v, %v", one, err)
			}
			if one.URL == "https://shop.example" {
				one.URL = "https://shop.example/hooks"
				if _, err := c.Subscriptions().Put(t.Context(), "shop", api.SubscriptionSpec(one)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	c, err := client.New(serve(t, conf), "")
	if err != nil {
		t.Fatal(err)
	}
	if one, err := c.Subscriptions().Get(t.Context(), "shop"); err != nil || one.URL != "https://shop.example/hooks" {
		t.Errorf("a seed has undone a change: %+v, %v", one, err)
	}
}
