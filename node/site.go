package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/link"
)

// asSite makes the role of a node that forwards notifications to central, and dials it.
func (n *Node) asSite(ctx context.Context) (role, error) {
	c := n.cfg.Central
	central, err := link.NewSite(link.SiteConfig{
		URL: c.URL, File: n.cfg.CredentialFile(), Outbox: n.store, Version: n.opts.Version, Timeout: c.Timeout,
		TLS: link.Files{CA: c.CA, Cert: c.Cert, Key: c.Key}, Overdue: n.store.Overdue, Category: n.categoryOf, Report: n.report, Telemetry: n.kept.Telemetry, Witness: n.newPeers(ofCentral), Erasing: n.newErasing(true), Call: n.siteCall, Heard: n.store.HearTime, Logger: n.log,
	})
	if err != nil {
		return role{}, err
	}
	n.clients = append(n.clients, central)
	if n.audit != nil {
		n.audit.Held = central.Shipped
	}
	if err := n.buildSite(ctx, n.forward(central), central.Standing); err != nil {
		return role{}, err
	}
	return role{
		name:  config.Site,
		links: []run.Part{{Name: "link", Run: central.Run}},
		// Its notifications have the name from the configuration. That name stays when the site enrolls
		// again, so a repeat is the same message. Central goes by the credential.
		operate: func(s *admin.Service) {
			s.Notifier = n.site.Forwarder()
			s.Shipping = shipping(central)
		},
		shipping: shipping(central),
		health:   func(add addCheck) { linkHealth(central.Status(), add) },
		greet: func(b *strings.Builder) {
			fmt.Fprintf(b, "  central     %s\n", c.URL)
			if central.Status().Site == "" {
				fmt.Fprintf(b, "              not enrolled: %s\n", n.cfg.EnrollCommand())
			}
		},
		invite: func(b *strings.Builder) {
			fmt.Fprintf(b, "\nTell people:\n\n  %s/v1/notifications -H 'Content-Type: application/json' \\\n    -d '{\"list\": \"operators\", \"subject\": \"Tank 4 is full\"}'\n", n.curl())
		},
	}, nil
}

// forward is the route of what a site forwards. It retries without limit while central cannot take a message:
// a full disk at central is no reason for work at each site. Only a message that can never be taken parks
// (SF-19, SF-20).
func (n *Node) forward(central *link.Site) holdfast.Route {
	return holdfast.Route{
		Deliverer: forwards{central, n.special.full}, Timeout: link.RouteTimeout(n.cfg.Central.Timeout, int(n.cfg.Limits.Payload)), Limit: link.AtOnce,
		Retry: holdfast.RetryPolicy{First: time.Second, Factor: 2, Max: 30 * time.Second, Jitter: time.Second, Attempts: holdfast.Unlimited},
	}
}

// forwards delivers to central from a node with a disk.
type forwards struct {
	*link.Site
	full func() bool // nil: unknown
}

var _ holdfast.BatchDeliverer = forwards{}

// Held says how long a site keeps delivered messages for a central that may come back with less. If the disk
// is full, new messages are worth more than those that have arrived once.
func (f forwards) Held() map[string]time.Duration {
	if f.full != nil && f.full() {
		return nil
	}
	return f.Site.Held()
}

// categoryOf returns the category of a destination of this node.
func (n *Node) categoryOf(destination string) holdfast.Category {
	d, _ := n.destination(destination)
	return d.Category
}

// linkHealth reports how the link of a node fares.
func linkHealth(s link.Status, add addCheck) {
	switch {
	case s.Site == "":
		add("central", api.Degraded, "this site is not enrolled: "+s.Problem)
	case !s.Stalled.IsZero():
		add("central", api.Degraded, "messages are due, and none has got through since "+s.Stalled.UTC().Format(time.RFC3339))
	case !s.Connected && s.Problem != "":
		add("central", api.Degraded, "not reachable: "+s.Problem)
	case s.Telemetry.Problem != "":
		add("central", api.Degraded, fmt.Sprintf("connected as %s; %s: %s", s.Site, unsent(s.Telemetry.Backlog, s.Telemetry.Lasts()), s.Telemetry.Problem))
	case s.Replaying:
		add("central", api.OK, "connected; central has lost something and gets it again")
	case s.Connected && s.Telemetry.Lasts() > unsentLate:
		add("central", api.OK, fmt.Sprintf("connected as %s; %s", s.Site, unsent(s.Telemetry.Backlog, s.Telemetry.Lasts())))
	case s.Connected:
		add("central", api.OK, "connected as "+s.Site)
	}
}
