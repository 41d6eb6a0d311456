package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/metrics"
)

// addHub adds to a role what takes events and brings them to subscribers.
func (n *Node) addHub(ctx context.Context, r *role, o *office) error {
	conf := &n.cfg.Webhooks
	sender, err := webhook.New(webhook.Settings{Addresses: conf.Addresses, Proxy: conf.Proxy, NoProxy: conf.NoProxy})
	if err != nil {
		return err
	}
	book := fanout.NewBook(n.kept.Fanout, n.log)
	hub := &admin.Hub{
		Publisher: &fanout.Publisher{Bundles: n.store, Book: book, Source: n.cfg.Source()}, Book: book, Schedule: scheduleOf(conf),
		Open: n.opened,
		Seal: func(s *fanout.Subscription, use fanout.Use, secret string) (string, error) {
			return n.secrets.ring.Load().Seal(boundTo(s, use), []byte(secret))
		},
		NewSecret: n.newSecret, Unready: n.unready.of,
		Check: func(s *fanout.Subscription) error {
			t, err := n.targetOf(s)
			return errors.Join(sender.Validate(&t), unopened(err))
		},
		Try: func(ctx context.Context, s *fanout.Subscription, e *fanout.Event) (api.TestExchange, error) {
			m, err := e.Trial(n.cfg.Source())
			if err != nil {
				return api.TestExchange{}, err
			}
			t, err := n.targetOf(s)
			if err != nil {
				return api.TestExchange{}, err
			}
			return shownExchange(sender.Try(ctx, &t, &m)), nil
		},
	}
	if err := n.sowHub(ctx, hub); err != nil {
		return err
	}
	disabler := &fanout.Disabler{Book: book, After: max(conf.DisableAfter, 0), Node: n.cfg.Node.ID, Logger: n.log}
	routes := &fanout.Routes{
		Disabler: disabler, Book: book, Dispatcher: n.site.Dispatcher(), Schedule: hub.Schedule, Timeout: webhook.DefaultTimeout, Logger: n.log,
		Gone: func(err error) bool { return errors.Is(err, webhook.ErrGone) },
		Deliverer: func(ask func(ctx context.Context) (fanout.Subscription, error)) holdfast.Deliverer {
			return sender.Deliverer(func(ctx context.Context) (webhook.Target, error) {
				s, err := ask(ctx)
				if err != nil {
					return webhook.Target{}, err
				}
				t, err := n.targetOf(&s)
				if err != nil {
					return t, n.unready.wait(&s, err)
				}
				n.unready.over(s.ID)
				return t, nil
			})
		},
	}
	sweeper := &fanout.Sweeper{Store: n.kept.Fanout, Keep: conf.Retention, Logger: n.log}
	r.parts = append(r.parts, run.Part{Name: "subscriptions", Run: func(ctx context.Context) error {
		defer sender.Close()
		return routes.Run(ctx)
	}}, run.Part{Name: "schedule of subscriptions", Run: (&fanout.Planner{Book: book, Mover: n.store, Schedule: hub.Schedule, Logger: n.log}).Run}, run.Part{Name: "subscriptions that fail", Run: disabler.Run}, run.Part{Name: hubFollower, Run: n.hubNotices(o).Run}, run.Part{Name: "event sweeper", Run: sweeper.Run})
	n.sender = sender
	if err := n.addNotificaties(r, hub, sender); err != nil {
		return err
	}
	operate := r.operate
	r.operate = func(s *admin.Service) {
		operate(s)
		s.Hub = hub
		if v, ok := s.Vault.(*vault); ok {
			v.holders = append(v.holders, subscriptionSecrets{book.Store()})
		}
	}
	return nil
}

// measuredWebhooks returns the numbers of the connections to subscribers.
func (n *Node) measuredWebhooks() metrics.Source {
	const connections = "holdfast_webhook_connections_total"
	return metrics.Source{
		Metrics: []metrics.Metric{{
			Name: connections, Label: "reused", Counter: true,
			Help: "Connections to subscribers that were opened, and requests over a connection that had been used before, since the start.",
		}},
		Read: func(see func(name string, value int64, label ...string)) {
			if n.sender != nil {
				opened, reused := n.sender.Connections()
				see(connections, opened, "false")
				see(connections, reused, "true")
			}
		},
	}
}

func scheduleOf(c *config.Webhooks) fanout.Schedule {
	return fanout.Schedule{Backoff: fanout.Backoff(c.Backoff), Factor: c.Factor, Base: c.Base, Cap: c.Cap, Retries: c.Retries}
}

// targetOf returns where and how a subscription is delivered. It fails if a secret cannot be opened, since a
// subscriber that verifies would refuse what is not signed, and if a damaged file has lost the settings.
func (n *Node) targetOf(s *fanout.Subscription) (webhook.Target, error) {
	if s.URL == "" && s.Fault != "" { // its settings are lost, and its messages wait for them
		return webhook.Target{}, fmt.Errorf("subscription %s: %s", s.ID, s.Fault)
	}
	t := webhook.Target{URL: s.URL, Headers: s.Headers, Mode: webhook.Mode(s.Mode), Timeout: s.Timeout}
	if s.TLS != nil {
		t.TLS = webhook.TLS{CA: s.TLS.CA, Cert: s.TLS.Cert}
	}
	for i, secret := range s.Sealed() {
		plain, err := n.opened(s, secret)
		if err != nil {
			return t, fmt.Errorf("subscription %s: %w", s.ID, err)
		}
		switch secret.Use {
		case fanout.ForSigning:
			t.Secrets = append(t.Secrets, webhook.Secret{Value: plain, Until: s.Secrets[i].Until})
		case fanout.ForAuthorization:
			t.Auth = authOf(s.Authorization, plain)
		case fanout.ForTLS:
			t.TLS.Key = plain
		}
	}
	return t, nil
}

func authOf(a *fanout.Authorization, secret string) (out webhook.Auth) {
	switch a.Kind {
	case fanout.Bearer:
		out.Bearer = secret
	case fanout.Basic:
		out.Basic = &webhook.Basic{User: a.User, Password: secret}
	case fanout.HeaderKey:
		out.Key = &webhook.Key{Header: a.Header, Value: secret}
	case fanout.OAuth2:
		out.OAuth2 = &webhook.OAuth2{URL: a.URL, Client: a.Client, ClientSecret: secret, Scopes: a.Scopes}
	case fanout.ZGW:
		out.ZGW = &webhook.ZGW{Client: a.Client, Secret: secret}
	}
	return out
}

// unopened returns what is wrong with a subscription of which a secret cannot be opened.
func unopened(err error) error {
	if err == nil {
		return nil
	}
	return &holdfast.FieldError{Field: "secrets", Problem: "cannot be used: " + err.Error()}
}

func shownExchange(e *webhook.Exchange) api.TestExchange {
	out := api.TestExchange{
		URL: e.URL, Request: e.Header, Body: string(e.Body), Status: e.Status, Answer: e.Answer, Response: e.Text, Cut: e.Cut,
		TookMS: float64(e.Took) / float64(time.Millisecond), Delivered: e.Failure == nil,
	}
	if e.Failure != nil {
		out.Error = e.Failure.Error()
	}
	return out
}
