package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/adapter/httpcall"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// self is the destination of a node without configured destinations: its own inbox, which keeps every
// message. It shows a newcomer a message arriving with one node and no configuration.
const self = "self"

func (n *Node) destinationNames() []string {
	if n.cfg.SelfOnly() {
		return []string{self}
	}
	return slices.Sorted(maps.Keys(n.cfg.Destinations))
}

// destinations lists what the API accepts messages for.
func (n *Node) destinations() []admin.Destination {
	names := n.destinationNames()
	if n.site.Forwarder() != nil {
		names = append(names, link.Lane)
	}
	var list []admin.Destination
	for _, name := range names {
		d, _ := n.destination(name)
		list = append(list, d)
	}
	return list
}

// destination finds one of them. Each message looks only its own up, however many there are.
func (n *Node) destination(name string) (to admin.Destination, known bool) {
	d, known := n.cfg.Destinations[name]
	switch {
	case known:
	case name == link.Lane && n.site.Forwarder() != nil:
		return admin.Destination{Name: name, Category: holdfast.CategoryNotification}, true
	case n.cfg.SelfOnly() && name == self:
		d, known = config.DefaultDestination(), true
	}
	if !known {
		return to, false
	}
	to = admin.Destination{Name: name, TTL: max(d.TTL, 0), Retry: retryPolicy(d.Retry)}
	if d.Foreign != nil {
		to.Category, to.Wait = d.Foreign.Kind().Category, foreignWait
	}
	return to, true
}

// retryPolicy converts a configured policy: the file counts retries, the
// library attempts (SF-29).
func retryPolicy(r config.Retry) holdfast.RetryPolicy {
	p := holdfast.RetryPolicy{Jitter: r.Jitter, Attempts: r.Retries + 1}
	if r.Jitter == 0 {
		p.Jitter = -1 // no jitter; zero would mean the default
	}
	if r.Retries == config.Unlimited {
		p.Attempts = holdfast.Unlimited
	}
	switch r.Policy {
	case config.Exponential:
		p.First, p.Max, p.Factor = r.Base, r.Cap, r.Factor
	case config.Fixed:
		p.First, p.Max, p.Factor = r.Interval, r.Interval, 1
	case config.List:
		p.List = r.Waits
	}
	return p
}

// buildSite makes the part that delivers and sweeps, which is a site as programs have it. central is the
// route to central, and ask asks central. A node without central leaves both empty.
func (n *Node) buildSite(ctx context.Context, central holdfast.Route, ask func(ctx context.Context, id holdfast.ID) (notify.Standing, error)) error {
	destinations, err := n.routes(ctx)
	if err != nil {
		return err
	}
	r := n.cfg.Retention
	n.site, err = site.New(site.Config{
		Store: n.store, Name: n.cfg.Source(), Node: n.cfg.Node.ID, Destinations: destinations, Central: central, Ask: ask, Alone: central.Deliverer == nil,
		Poll: n.cfg.Poll, Grace: n.grace(), Observer: n.metrics, Waiters: &n.waiters, Progress: n.progress, Summary: n.answered,
		Retention: &holdfast.Retention{Delivered: r.Delivered, Expired: r.Expired, Discarded: r.Discarded, Parked: max(r.Parked, 0)}, // Never is negative
		Past:      n.kept.Operations, Tracking: r.Tracking, Sweep: r.Sweep, Inbox: n.store, InboxRetention: r.Inbox, Logger: n.log,
	})
	return err
}

// routes returns the configured destinations.
func (n *Node) routes(ctx context.Context) (map[string]site.Destination, error) {
	all := map[string]site.Destination{}
	n.renewals = renewals{}
	for _, name := range n.destinationNames() {
		d, ok := n.cfg.Destinations[name]
		if !ok {
			local := &transport.Local{Receiver: n.endpoints, Source: n.cfg.Source()}
			all[name] = site.Destination{Category: site.Peer, Route: holdfast.Route{Deliverer: local, Retry: holdfast.DefaultRetry()}}
			continue
		}
		client, err := n.deliverer(name, d)
		if err != nil {
			return nil, fmt.Errorf("destination %s: %w", name, err)
		}
		n.clients = append(n.clients, client)
		to := site.Destination{Category: site.Peer, Route: holdfast.Route{
			Deliverer: client, Retry: retryPolicy(d.Retry).Over(holdfast.DefaultRetry()), Timeout: d.Timeout,
			Limit: d.Concurrency, ChargeAll: d.Charge == config.ChargeEveryAttempt,
			OwnSchedule: d.Schedule == config.ScheduleMessage,
		}}
		if d.Foreign != nil {
			to.Category = d.Foreign.Kind().Category
		}
		all[name] = to
		if err := n.store.ConfigureLane(ctx, name, holdfast.LaneSettings{Strict: d.Order == config.OrderStrict}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (n *Node) deliverer(name string, d config.Destination) (adapter.Deliverer, error) {
	if d.Foreign != nil {
		return foreign(n.renewals, name, d, n.cfg)
	}
	peer, err := renewable(n.renewals, name, d, func(d config.Destination) (*transport.Client, error) { return n.client(name, d) })
	return renewedPeer{peer}, err
}

func (n *Node) client(name string, d config.Destination) (*transport.Client, error) {
	secret, err := wire.NewSecret(d.Secret.Bytes())
	if err != nil {
		return nil, err
	}
	conf := transport.ClientConfig{
		URL: d.URL, Source: n.cfg.Source(), Secrets: []*wire.Secret{secret}, V1: d.HMAC == config.HMACv1, To: d.To,
		Concurrency: d.Concurrency, Logger: n.log.With(slog.String("destination", name)),
	}
	if d.CA != "" {
		if conf.CA, err = namedfile.PEM(d.CA); err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
	}
	return transport.NewClient(conf)
}

func (n *Node) buildEndpoints() (*holdfast.Endpoints, error) {
	e := &holdfast.Endpoints{
		Log: n.store, Map: map[string]holdfast.Endpoint{}, Retention: n.cfg.Retention.Inbox, Observer: n.metrics, Logger: n.log,
	}
	if n.cfg.SelfOnly() {
		e.Other = &holdfast.Endpoint{Keep: true}
	}
	for name, c := range n.cfg.Receive.Endpoints {
		to := holdfast.Endpoint{Keep: c.Keep, Timeout: c.Timeout}
		if !c.Keep {
			caller, err := httpcall.New(httpcall.Config{URL: c.Forward})
			if err != nil {
				return nil, fmt.Errorf("endpoint %s: %w", name, err)
			}
			to.Forward = caller
		}
		e.Map[name] = to
	}
	return e, nil
}

// buildReceiver makes the routes for messages of peers. It makes none if no peer has a secret: then nobody
// could sign, and nothing is there to be asked.
func (n *Node) buildReceiver() ([]httpapi.Mount, error) {
	if len(n.cfg.Receive.Sources) == 0 {
		return nil, nil
	}
	if err := n.admit(n.cfg.Receive.Sources); err != nil {
		return nil, err
	}
	h, err := transport.NewServer(transport.ServerConfig{
		Receiver: n.endpoints, Destination: n.cfg.Node.ID, Names: slices.Compact([]string{n.cfg.Node.ID, n.cfg.Source()}), MaxPayload: int(n.cfg.Limits.Payload), Logger: n.log,
		// The endpoints have their own bounds; this one limits memory.
		Concurrency: 512, Timeout: n.patience(), Refused: n.refused, Heard: n.store.HearTime,
		Peer: func(source string) (transport.Peer, bool) {
			p, ok := (*n.peers.Load())[source]
			return p, ok
		},
	})
	return []httpapi.Mount{{Pattern: "POST " + wire.ReceivePath, Handler: h, Signed: true}}, err
}

// admit sets the sources that may send, each with its secrets.
func (n *Node) admit(sources map[string]config.Source) error {
	peers := map[string]transport.Peer{}
	for name, s := range sources {
		p := transport.Peer{V1: s.HMAC == config.HMACv1}
		for _, key := range s.Secrets {
			secret, err := wire.NewSecret(key.Bytes())
			if err != nil {
				return fmt.Errorf("secret of source %s: %w", name, err)
			}
			p.Secrets = append(p.Secrets, secret)
		}
		peers[name] = p
	}
	n.peers.Store(&peers)
	return nil
}

// refused counts messages that did not reach the inbox.
func (n *Node) refused(r transport.Refused) { n.metrics.ObserveRefused(r.Code) }
