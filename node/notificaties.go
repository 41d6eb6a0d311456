package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// addNotificaties adds to a role the Notificaties API, if the configuration names clients: nobody else could
// ask.
func (n *Node) addNotificaties(r *role, hub *admin.Hub, sender *webhook.Sender) error {
	conf := &n.cfg.Notificaties
	if len(conf.Clients) == 0 {
		return nil
	}
	var service *admin.Service
	s := &notificaties.Server{
		Book: hub.Book, Publisher: hub.Publisher, URL: conf.URL, Path: conf.Path, Leeway: conf.Leeway, Most: conf.Abonnementen, Unprotected: conf.Callbacks == config.CallbacksAny, Logger: n.log,
		StrictHosts: conf.Hosts == config.HostsDotted, PlainFaults: conf.Faults == config.FaultsPlain,
		Client: func(id string) (notificaties.Client, bool) { return clientOf(conf, id) },
		Seal: func(sub *fanout.Subscription, secret string) (string, error) {
			return hub.Seal(sub, fanout.ForAuthorization, secret)
		},
		Check: func(sub *fanout.Subscription) error {
			t, err := n.targetOf(sub)
			if err != nil { // not for clients, whatever it wraps
				return errors.New(err.Error())
			}
			return sender.Validate(&t)
		},
		Probe: func(ctx context.Context, sub *fanout.Subscription, body []byte) (int, error) {
			return n.probe(ctx, sender, sub, body)
		},
		Called: func(ctx context.Context, actor, operation, subject string, result error) {
			if p, ok := errors.AsType[*notificaties.Problem](result); ok {
				result = &api.Problem{Status: p.Status, Detail: p.Error()}
			}
			_ = service.Called(admin.As(ctx, actor, api.Grant{}), operation, subject, result) // it is logged
		},
		Room: serve.NewRoom(n.cfg.Limits.Bodies),
	}
	if a := conf.Authority; a != nil {
		s.Authority = &notificaties.Authority{URL: a.URL, ID: a.Client, Secret: string(a.Secret.Bytes()), Get: getter(exchange.Settings{}, 0), Logger: n.log}
	}
	if conf.Links {
		open, err := openTo(&n.cfg.Webhooks)
		if err != nil {
			return err
		}
		s.Fetch = getter(open, mostRedirects)
	}
	h := s.Handler()
	for _, path := range []string{"/api/", "/ref/"} {
		r.mounts = append(r.mounts, httpapi.Mount{Pattern: conf.Path + path, Handler: h, Signed: true})
	}
	operate := r.operate
	r.operate = func(s *admin.Service) {
		operate(s)
		service = s
	}
	return nil
}

func clientOf(conf *config.Notificaties, id string) (c notificaties.Client, known bool) {
	found, known := conf.Clients[id]
	c = notificaties.Client{ID: id, Secret: string(found.Secret.Bytes()), Superuser: found.Superuser}
	for _, scope := range found.Scopes {
		c.Scopes = append(c.Scopes, map[string]notificaties.Scope{config.ScopeConsume: notificaties.Consume, config.ScopePublish: notificaties.Publish}[scope])
	}
	return c, known
}

// probe posts a body to a subscriber, and returns the status of the answer.
func (n *Node) probe(ctx context.Context, sender *webhook.Sender, sub *fanout.Subscription, body []byte) (int, error) {
	t, err := n.targetOf(sub)
	if err != nil {
		return 0, err
	}
	t.Mode, t.Timeout = webhook.Plain, probeTimeout
	x := sender.Try(ctx, &t, &holdfast.Message{ID: holdfast.NewID(), Source: n.cfg.Source(), Endpoint: "test", Payload: body})
	if x.Status == 0 && x.Failure != nil {
		return 0, x.Failure
	}
	return x.Status, nil
}

const (
	probeTimeout  = 10 * time.Second
	mostRedirects = 5
	mostFetched   = 1 << 20
)

// openTo returns how to reach what subscribers' addresses may be.
func openTo(c *config.Webhooks) (open exchange.Settings, err error) {
	if open.Guard, err = addressguard.New(c.Addresses); err != nil {
		return open, err
	}
	if open.Guard == nil {
		open.Guard = &addressguard.Guard{}
	}
	if c.Proxy != "" {
		open.Proxy = (&httpproxy.Config{HTTPProxy: c.Proxy, HTTPSProxy: c.Proxy, NoProxy: c.NoProxy}).ProxyFunc()
	}
	open.Connect = probeTimeout / 2
	return open, nil
}

// getter returns what makes GET requests and follows some redirects. It keeps no connections, and clients of the
// API may read its errors.
func getter(open exchange.Settings, redirects int) notificaties.Getter {
	client := exchange.NewClient(open)
	return func(ctx context.Context, at, authorization string) (status int, body []byte, err error) {
		for i := 0; ; i++ {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
			if err != nil {
				return 0, nil, err
			}
			if authorization != "" {
				req.Header.Set("Authorization", authorization)
			}
			req.Header.Set("Accept", "application/json, */*")
			answer, failure := client.Do(req, nil)
			if failure != nil {
				return 0, nil, exchange.Outward(failure, req.URL.Host)
			}
			body, err := io.ReadAll(io.LimitReader(answer.Body, mostFetched))
			_ = answer.Body.Close() // it was read
			to := answer.Header.Get("Location")
			if answer.StatusCode/100 != 3 || to == "" || i >= redirects {
				return answer.StatusCode, body, err
			}
			next, err := url.Parse(to)
			if err != nil {
				return 0, nil, fmt.Errorf("redirect: %w", err)
			}
			at = req.URL.ResolveReference(next).String()
		}
	}
}
