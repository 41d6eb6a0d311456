package node_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// portal is a node with the subscriptions shop and other, and a client with a token for shop alone.
type portal struct {
	operator, shop *client.Client
	url            string
	subscriber     *subscriber
	hooks          string
}

func newPortal(t *testing.T, rights ...api.Right) *portal {
	t.Helper()
	p := &portal{subscriber: &subscriber{}}
	server := httptest.NewServer(p.subscriber)
	t.Cleanup(server.Close)
	conf := parse(t, "webhooks: {addresses: [127.0.0.0/8], factor: 1h}")
	conf.Secrets.Key = config.NewSecret(bytes.Repeat([]byte{1}, keyring.KeySize))
	p.url, p.hooks = serve(t, conf), server.URL
	var err error
	if p.operator, err = client.New(p.url, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.operator.Topics().Put(t.Context(), "orders", api.TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	p.subscribe(t, "shop")
	p.subscribe(t, "other")
	p.shop = p.token(t, "shop-anna", "shop", rights...)
	return p
}

func (p *portal) subscribe(t *testing.T, id string) {
	t.Helper()
	if _, err := p.operator.Subscriptions().Put(t.Context(), id, api.SubscriptionSpec{Topics: []string{"orders"}, URL: p.hooks + "/" + id}); err != nil {
		t.Fatal(err)
	}
}

// token returns a client of the subscriber of a subscription.
func (p *portal) token(t *testing.T, name, subscription string, rights ...api.Right) *client.Client {
	t.Helper()
	made, err := p.operator.Tokens().Create(t.Context(), api.NewToken{Name: name, Rights: append(rights, api.Portal), Destinations: []string{"subscription:" + subscription}})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*made.Until); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it ends in %s", left)
	}
	c, err := client.New(p.url, made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Issue 15: a subscriber sees its subscription and what it was sent, and nothing of others.
func TestASubscriberSeesItsOwn(t *testing.T) {
	t.Parallel()
	p := newPortal(t)
	p.subscriber.answers(500)
	taken := publish(t, p.operator, api.NewEvent{Topic: "orders", Data: json.RawMessage(`{"total":1}`)})
	var list []api.Message
	waittest.Until(t, "both were tried", func() bool {
		page, err := p.operator.Messages().List(t.Context(), client.MessageQuery{})
		list = page.Messages
		return err == nil && len(list) == 2 && list[0].Tries == 1 && list[1].Tries == 1
	})
	all, err := p.shop.Subscriptions().List(t.Context(), "", 0)
	if err != nil || len(all.Subscriptions) != 1 || all.Subscriptions[0].ID != "shop" || all.Next != "" {
		t.Errorf("subscriptions: %+v, %v", all, err)
	}
	page, err := p.shop.Messages().List(t.Context(), client.MessageQuery{})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].Destination != "subscription:shop" {
		t.Fatalf("messages: %+v, %v", page, err)
	}
	own, err := p.shop.Messages().Get(t.Context(), page.Messages[0].ID)
	if err != nil || string(own.Payload) != `{"total":1}` || own.Headers["ce-id"] != taken.ID {
		t.Errorf("a message: %+v, %v", own, err)
	}
	if n := len(own.History); n == 0 || own.History[n-1].HTTPStatus != 500 {
		t.Errorf("its attempts: %+v", own.History)
	}
	for _, m := range list {
		if _, err := p.shop.Messages().Get(t.Context(), m.ID); m.Destination != "subscription:shop" && status(err) != 404 {
			t.Errorf("a message of another: %v", err)
		}
	}
	if _, err := p.shop.Subscriptions().Get(t.Context(), "other"); status(err) != 404 {
		t.Errorf("another subscription: %v", err)
	}
	if _, err := p.shop.Messages().List(t.Context(), client.MessageQuery{Destination: "subscription:other"}); status(err) != 403 {
		t.Errorf("messages of another: %v", err)
	}
	if _, err := p.shop.Subscriptions().Test(t.Context(), "other", api.NewEvent{}); status(err) != 404 {
		t.Errorf("a test of another: %v", err)
	}
	if x, err := p.shop.Subscriptions().Test(t.Context(), "shop", api.NewEvent{}); err != nil || x.Status != 500 {
		t.Errorf("a test: %+v, %v", x, err)
	}
	for what, err := range map[string]error{
		"the event": func() error { _, err := p.shop.Events().Get(t.Context(), "", taken.ID, ""); return err }(),
		"a retry":   func() error { _, err := p.shop.Messages().Retry(t.Context(), own.ID, api.RetryRequest{}); return err }(),
		"a pause":   func() error { _, err := p.shop.Subscriptions().Pause(t.Context(), "shop", ""); return err }(),
		"the end":   p.shop.Subscriptions().Delete(t.Context(), "shop"),
	} {
		if status(err) != 403 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A subscriber gets again what it got, and nothing that it did not get.
func TestASubscriberHasAnEventSentAgain(t *testing.T) {
	t.Parallel()
	p := newPortal(t)
	taken := publish(t, p.operator, api.NewEvent{Topic: "orders"})
	deliveries(t, p.operator, taken.ID, 2)
	p.subscribe(t, "late")
	late := p.token(t, "late-ben", "late")
	r, err := p.shop.Events().Resend(t.Context(), "", taken.ID, api.ResendRequest{Subscription: "shop"})
	if err != nil || len(r.Messages) != 1 || r.Messages[0].Subscription != "shop" {
		t.Errorf("%+v, %v", r, err)
	}
	list := deliveries(t, p.operator, taken.ID, 3)
	if d := list[2]; d.Actor != "shop-anna" || d.Subscription != "shop" {
		t.Errorf("it is %+v", d)
	}
	for what, c := range map[string]struct {
		by   *client.Client
		req  api.ResendRequest
		want int
	}{
		"to another":             {p.shop, api.ResendRequest{Subscription: "other"}, 404},
		"to all":                 {p.shop, api.ResendRequest{}, 422},
		"matched now":            {late, api.ResendRequest{Subscription: "late", MatchNow: true}, 422},
		"that it never got":      {late, api.ResendRequest{Subscription: "late"}, 404},
		"to one that is not its": {late, api.ResendRequest{Subscription: "shop"}, 404},
	} {
		if r, err := c.by.Events().Resend(t.Context(), "", taken.ID, c.req); status(err) != c.want {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

// A subscriber ends what it began, and not what an operator did.
func TestASubscriberPauses(t *testing.T) {
	t.Parallel()
	p := newPortal(t, api.PortalPause)
	is := func(s api.Subscription, err error) string {
		return s.State + " by " + s.Actor + " " + http.StatusText(status(err))
	}
	both := p.operator.Subscriptions()
	own := p.shop.Subscriptions()
	got := []string{
		is(own.Pause(t.Context(), "shop", "we move")), is(both.Get(t.Context(), "shop")), is(own.Resume(t.Context(), "shop", "")),
		is(both.Pause(t.Context(), "shop", "")), is(own.Get(t.Context(), "shop")), is(own.Resume(t.Context(), "shop", "")),
		is(both.Disable(t.Context(), "shop", "")), is(own.Pause(t.Context(), "shop", "")), is(own.Disable(t.Context(), "shop", "")),
		is(own.Pause(t.Context(), "other", "")),
	}
	if d := cmp.Diff(got, []string{
		"paused by subscriber ", "paused by subscriber ", "active by subscriber ",
		"paused by local ", "paused by operator ", " by  Conflict",
		"disabled by local ", " by  Conflict", " by  Forbidden",
		" by  Not Found",
	}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// A new secret is of the kind of the last one. The former ones sign for a while, also those of which the answer
// was lost.
func TestASecretIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPortal(t)
	own := p.shop.Subscriptions()
	first, err := own.RotateSecret(t.Context(), "shop", "")
	if err != nil || len(first.Subscription.Secrets) != 1 || first.Subscription.Secrets[0].Until != nil || first.Public != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := own.RotateSecret(t.Context(), "shop", "1h")
	if err != nil || second.Secret == first.Secret || len(second.Subscription.Secrets) != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	if left := time.Until(*second.Subscription.Secrets[0].Until); left > time.Hour || left < 59*time.Minute {
		t.Errorf("the former one signs for %s", left)
	}
	x, err := own.Test(t.Context(), "shop", api.NewEvent{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{first.Secret, second.Secret} {
		v, err := standardwebhooks.NewVerifier(secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := standardwebhooks.Verify(http.Header(x.Request), []byte(x.Body), time.Now(), time.Minute, v); err != nil {
			t.Errorf("%v", err)
		}
	}
	for range 6 {
		if _, err := own.RotateSecret(t.Context(), "shop", ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := own.RotateSecret(t.Context(), "shop", ""); status(err) != 409 {
		t.Errorf("the ninth: %v", err)
	}
	if last, err := own.RotateSecret(t.Context(), "shop", "0s"); err != nil || len(last.Subscription.Secrets) != 1 {
		t.Errorf("at once: %+v, %v", last, err)
	}
	for overlap, want := range map[string]int{"8d": 422, "-1s": 422, "soon": 422} {
		if _, err := own.RotateSecret(t.Context(), "shop", overlap); status(err) != want {
			t.Errorf("%s: %v", overlap, err)
		}
	}
	if _, err := own.RotateSecret(t.Context(), "other", ""); status(err) != 404 {
		t.Errorf("of another: %v", err)
	}
	pair := standardwebhooks.NewSecret("whsk_")
	if _, err := p.operator.Subscriptions().Put(t.Context(), "other", api.SubscriptionSpec{Topics: []string{"orders"}, URL: p.hooks, Secrets: []api.SigningSecret{{Value: pair}}}); err != nil {
		t.Fatal(err)
	}
	if k, err := p.operator.Subscriptions().RotateSecret(t.Context(), "other", ""); err != nil || k.Secret != "" || k.Public == "" {
		t.Errorf("of a pair: %+v, %v", k, err)
	}
}

// A token is for the subscription that there was, and for no other that has its id later.
func TestASubscriberAndAnotherOfItsID(t *testing.T) {
	t.Parallel()
	p := newPortal(t)
	taken := publish(t, p.operator, api.NewEvent{Topic: "orders"})
	was := deliveries(t, p.operator, taken.ID, 2)
	page, err := p.shop.Messages().List(t.Context(), client.MessageQuery{})
	if err != nil || len(page.Messages) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if err := p.operator.Subscriptions().Delete(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.shop.Tokens().Self(t.Context()); status(err) != 401 {
		t.Errorf("its token: %v", err)
	}
	p.subscribe(t, "shop")
	later := p.token(t, "shop-ben", "shop")
	if page, err := later.Messages().List(t.Context(), client.MessageQuery{}); err != nil || len(page.Messages) != 0 || page.Next != "" {
		t.Errorf("messages of the former one: %+v, %v", page, err)
	}
	for _, d := range was {
		if _, err := later.Messages().Get(t.Context(), d.Message); status(err) != 404 {
			t.Errorf("a message of the former one: %v", err)
		}
	}
	if _, err := later.Events().Resend(t.Context(), "", taken.ID, api.ResendRequest{Subscription: "shop"}); status(err) != 404 {
		t.Errorf("an event of the former one: %v", err)
	}
	for what, req := range map[string]api.NewToken{
		"of no subscription": {Name: "x", Rights: []api.Right{api.Portal}, Destinations: []string{"subscription:none"}},
		"for long":           {Name: "x", Rights: []api.Right{api.Portal}, Destinations: []string{"subscription:shop"}, For: "25h"},
	} {
		if _, err := p.operator.Tokens().Create(t.Context(), req); status(err) != 422 {
			t.Errorf("a token %s: %v", what, err)
		}
	}
}

// What a deleted subscription did not get does not go to another one of its id, though somebody retries it.
func TestARetryDoesNotGoToAnotherOfAnID(t *testing.T) {
	t.Parallel()
	p := newPortal(t)
	p.subscriber.answers(500)
	publish(t, p.operator, api.NewEvent{Topic: "orders"})
	var list []api.Message
	waittest.Until(t, "it was tried", func() bool {
		page, err := p.operator.Messages().List(t.Context(), client.MessageQuery{Destination: "subscription:shop"})
		list = page.Messages
		return err == nil && len(list) == 1 && list[0].Tries == 1 && list[0].State == "pending"
	})
	if err := p.operator.Subscriptions().Delete(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.operator.Messages().Discard(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "its id is free", func() bool {
		_, err := p.operator.Subscriptions().Put(t.Context(), "shop", api.SubscriptionSpec{Topics: []string{"orders"}, URL: p.hooks})
		return err == nil
	})
	if _, err := p.operator.Messages().Retry(t.Context(), list[0].ID, api.RetryRequest{}); status(err) != 409 {
		t.Errorf("retried: %v", err)
	}
}

// What a subscriber has paused, an operator can pause as well: then only an operator resumes it.
func TestAnOperatorTakesOverAPause(t *testing.T) {
	t.Parallel()
	p := newPortal(t, api.PortalPause)
	if _, err := p.shop.Subscriptions().Pause(t.Context(), "shop", "we move"); err != nil {
		t.Fatal(err)
	}
	if s, err := p.operator.Subscriptions().Pause(t.Context(), "shop", "not paid"); err != nil || s.Actor == "subscriber" || s.Why != "not paid" {
		t.Errorf("the operator's pause: %+v, %v", s, err)
	}
	if _, err := p.shop.Subscriptions().Pause(t.Context(), "shop", ""); err != nil {
		t.Errorf("the subscriber's pause: %v", err)
	}
	if _, err := p.shop.Subscriptions().Resume(t.Context(), "shop", ""); status(err) != 409 {
		t.Errorf("the subscriber resumes what the operator has paused: %v", err)
	}
	if _, err := p.operator.Tokens().Create(t.Context(), api.NewToken{Name: "subscriber", Role: "operate"}); status(err) != 422 {
		t.Errorf("an operator by the name of subscriber: %v", err)
	}
}
