package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// Settings configure a Sender. The zero value is ready to use.
type Settings struct {
	Addresses []string // what may be reached: networks such as 10.0.0.0/8, addresses, and "public"; empty: public
	Proxy     string   // URL of a forward proxy, which is exempt from that; empty: none
	NoProxy   string   // hosts, domains and networks that are reached without Proxy, separated by commas, as in NO_PROXY
}

// Idle connections that are kept, for each host and in all. Many subscriptions may lead to one host, and each of
// them has several requests at a time.
const (
	idle    = 256
	idleAll = 1024
)

// Sender sends to all subscribers, which share its connections. Use New. A Sender may be used
// concurrently.
type Sender struct {
	guard   *addressguard.Guard
	proxy   string
	open    exchange.Settings
	uses    exchange.Uses
	usual   *exchange.Client              // of targets without TLS settings of their own
	clients shared[TLS, *exchange.Client] // of those with
	grants  shared[grantKey, *grant]
}

// New returns a Sender. It does not connect. Errors name the setting.
func New(s Settings) (*Sender, error) {
	guard, err := addressguard.New(s.Addresses)
	if err != nil {
		return nil, &holdfast.FieldError{Field: "addresses", Problem: err.Error()}
	}
	if guard == nil {
		guard = &addressguard.Guard{}
	}
	open := exchange.Settings{
		Guard: guard, Connect: 5 * time.Second, Idle: idle, IdleAll: idleAll,
	}
	if s.Proxy != "" {
		u, err := url.Parse(s.Proxy)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, &holdfast.FieldError{Field: "proxy", Problem: "is not the URL of a proxy: it must begin with http:// or https:// and name a host"}
		}
		open.Proxy = (&httpproxy.Config{HTTPProxy: s.Proxy, HTTPSProxy: s.Proxy, NoProxy: s.NoProxy}).ProxyFunc()
	}
	sender := &Sender{guard: guard, proxy: s.Proxy, open: open}
	sender.open.Uses = &sender.uses
	sender.usual = exchange.NewClient(sender.open)
	return sender, nil
}

// Close closes idle connections. Exchanges under way go on.
func (s *Sender) Close() {
	s.usual.Close()
	s.clients.each((*exchange.Client).Close)
}

// clientOf returns the client for a target. Targets share connections if they present the same
// certificate, and trust the same ones.
func (s *Sender) clientOf(t *Target) (*exchange.Client, error) {
	if t.TLS == (TLS{}) {
		return s.usual, nil
	}
	client, gone, err := s.clients.get(t.TLS, func() (*exchange.Client, error) {
		conf, err := t.TLS.config()
		own := s.open
		own.TLS = conf
		return exchange.NewClient(own), err
	})
	if gone != nil {
		gone.Close()
	}
	return client, err
}

// Connections returns how many connections were opened, and how many requests went over one that
// had been used before.
func (s *Sender) Connections() (opened, reused int64) {
	return s.uses.Opened.Load(), s.uses.Reused.Load()
}

// ErrGone is wrapped by the failure of a subscriber that answered 410: it wants no more. The message
// parks; whoever keeps the subscription pauses it.
var ErrGone = errors.New("the subscriber wants no more messages")

// Deliverer returns a deliverer to the target that each call of target returns, so a change and a
// new secret count from the next attempt on. If target fails, nobody is called and nothing is
// charged; its own *holdfast.Failure is kept. What a subscriber or the network does wrong is
// charged to the message, so that it keeps its schedule: use Route.OwnSchedule, and a Route.Timeout
// that is longer than that of the target.
func (s *Sender) Deliverer(target func(ctx context.Context) (Target, error)) holdfast.Deliverer {
	return holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		t, err := target(ctx)
		if err != nil {
			if f, ok := errors.AsType[*holdfast.Failure](err); ok {
				return holdfast.Receipt{}, f
			}
			return holdfast.Receipt{}, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_target", Err: fmt.Errorf("find the subscriber: %w", err)}
		}
		a := s.attempt(ctx, &t, &m)
		if a.failure != nil {
			return holdfast.Receipt{}, a.failure
		}
		r := holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Response: a.answer.text}
		if a.answer.cut {
			r.Note = fmt.Sprintf("the subscriber answered %d; only the beginning of its answer is kept", a.answer.status)
		}
		return r, nil
	})
}
