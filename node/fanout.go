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
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/run"
)

// addHub adds to a role what takes events and brings them to subscribers.
func (n *Node) addHub(ctx context.Context, r *role) error {
	conf := &n.cfg.Webhooks
	sender, err := webhook.New(webhook.Settings{Addresses: conf.Addresses, Proxy: conf.Proxy, NoProxy: conf.NoProxy})
	if err != nil {
		return err
	}
	book := fanout.NewBook(n.kept.Fanout, n.log)
	hub := &admin.Hub{
		Publisher: &fanout.Publisher{Bundles: n.store, Book: book, Source: n.cfg.Source()}, Book: book, Schedule: scheduleOf(conf),
		Seal: func(subscription, secret string) (string, error) {
			return n.secrets.ring.Load().Seal(signing(subscription), []byte(secret))
		},
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
	routes := &fanout.Routes{
		Book: book, Dispatcher: n.site.Dispatcher(), Schedule: hub.Schedule, Timeout: webhook.DefaultTimeout, Logger: n.log,
		Gone: func(err error) bool { return errors.Is(err, webhook.ErrGone) },
		Deliverer: func(ask func(ctx context.Context) (fanout.Subscription, error)) holdfast.Deliverer {
			return sender.Deliverer(func(ctx context.Context) (webhook.Target, error) {
				s, err := ask(ctx)
				if err != nil {
					return webhook.Target{}, err
				}
				return n.targetOf(&s)
			})
		},
	}
	sweeper := &fanout.Sweeper{Store: n.kept.Fanout, Keep: conf.Retention, Logger: n.log}
	r.parts = append(r.parts, run.Part{Name: "subscriptions", Run: func(ctx context.Context) error {
		defer sender.Close()
		return routes.Run(ctx)
	}}, run.Part{Name: "event sweeper", Run: sweeper.Run})
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

func scheduleOf(c *config.Webhooks) fanout.Schedule {
	return fanout.Schedule{Backoff: fanout.Backoff(c.Backoff), Factor: c.Factor, Base: c.Base, Cap: c.Cap, Retries: c.Retries}
}

// targetOf returns where and how a subscription is delivered. It fails if a secret cannot be opened: a
// subscriber that verifies would refuse what is not signed.
func (n *Node) targetOf(s *fanout.Subscription) (webhook.Target, error) {
	t := webhook.Target{URL: s.URL, Headers: s.Headers, Mode: webhook.Mode(s.Mode), Timeout: s.Timeout}
	for _, secret := range s.Secrets {
		plain, err := n.secrets.ring.Load().Open(signing(s.ID), secret.Sealed)
		if err != nil {
			return t, fmt.Errorf("secret %s of subscription %s: %w", keyring.Mark(secret.Sealed), s.ID, err)
		}
		t.Secrets = append(t.Secrets, webhook.Secret{Value: string(plain), Until: secret.Until})
	}
	return t, nil
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
