package node

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/wire"
)

// buildLink makes this node's end of the link: a site's dials, central's
// listens, and a standalone node has none.
func (n *Node) buildLink() (err error) {
	switch c := n.cfg.Central; n.cfg.Role {
	case config.Site:
		n.site, err = link.NewSite(link.SiteConfig{
			URL: c.URL, File: n.cfg.CredentialFile(), Outbox: n.store, Version: n.opts.Version, Timeout: c.Timeout,
			TLS: link.Files{CA: c.CA, Cert: c.Cert, Key: c.Key}, Overdue: n.store.Overdue, Category: n.categoryOf, Heard: n.store.HearTime, Logger: n.log,
		})
	case config.CentralOfSites:
		n.central, err = link.NewCentral(link.CentralConfig{
			Store: n.store, Receiver: n.office.ingester, Destination: n.cfg.Node.ID, Own: n.cfg.Source(), MaxPayload: int(n.cfg.Limits.Payload),
			Standing: n.office.desk.Standing, ClientCerts: clientCerts(n.cfg.TLS), Limits: siteLimits(n.cfg.Sites), Logger: n.log, Refused: n.refused,
		})
	case config.Standalone:
	}
	return err
}

// siteLimits are what each site may send; nil: anything.
func siteLimits(of map[string]config.SiteLimits) func(site string) link.Limits {
	if len(of) == 0 {
		return nil
	}
	return func(site string) link.Limits {
		l, ok := of[site]
		if !ok {
			l = of[config.OtherSites]
		}
		return link.Limits(l)
	}
}

// clientCerts is what sites have to show beside their credentials.
func clientCerts(c config.TLS) link.ClientCerts {
	switch {
	case c.Clients == "":
		return link.NoCert
	case c.AnySite:
		return link.AnyCert
	}
	return link.SiteCert
}

// categoryOf is the category of a destination of this site.
func (n *Node) categoryOf(destination string) holdfast.Category {
	for _, d := range n.destinations() {
		if d.Name == destination {
			return d.Category
		}
	}
	return ""
}

// linkParts keep the link up.
func (n *Node) linkParts(stop context.Context) []run.Part {
	if n.site == nil {
		return nil
	}
	return []run.Part{{Name: "link", Run: atOnce(stop, n.site.Run)}}
}

// held is what a site keeps for a central that may come back with less. On a
// full disk what is new is worth more than what has arrived once.
func (n *Node) held() map[string]time.Duration {
	if n.special.full != nil && n.special.full() {
		return nil
	}
	return n.site.Held()
}

// peerMounts are what other nodes ask: peers with a secret, and the sites of
// central.
func (n *Node) peerMounts(receiver http.Handler) (list []httpapi.Mount) {
	if receiver != nil {
		list = append(list, httpapi.Mount{Pattern: "POST " + wire.ReceivePath, Handler: receiver, Signed: true})
	}
	if n.central == nil {
		return list
	}
	h := n.central.Handler()
	for _, path := range link.Paths() {
		list = append(list, httpapi.Mount{Pattern: "POST " + path, Handler: h, Signed: true})
	}
	return list
}

// toCentral is the lane of what a site forwards. What central takes badly for
// now is tried for as long as it takes: a full disk at central is no reason to
// keep people at each site busy. Only what can never be taken parks (SF-19,
// SF-20).
func (n *Node) toCentral() holdfast.Route {
	return holdfast.Route{
		Deliverer: n.site, Timeout: link.RouteTimeout(n.cfg.Central.Timeout, int(n.cfg.Limits.Payload)), Limit: link.AtOnce,
		Retry: holdfast.RetryPolicy{First: time.Second, Factor: 2, Max: 30 * time.Second, Jitter: time.Second, Attempts: holdfast.Unlimited},
	}
}

// notifier is where the programs of this node hand in notifications. A site's
// have the name of the configuration, which stays the same when it is enrolled
// anew, so that a repeat is the same message; central goes by the credential.
func (n *Node) notifier() admin.Notifier {
	if n.office != nil {
		return n.office.desk
	}
	return &site.Forwarder{Enqueuer: n.store, Outbox: n.store, Name: n.cfg.Source(), Ask: n.site.Standing}
}

var _ admin.Notifier = (*notify.Desk)(nil)

// linkHealth adds how the link fares.
func (n *Node) linkHealth(add addCheck) {
	if n.site == nil {
		return
	}
	switch s := n.site.Status(); {
	case s.Site == "":
		add("central", api.Degraded, "this site is not enrolled: "+s.Problem)
	case !s.Stalled.IsZero():
		add("central", api.Degraded, "messages are due, and none has got through since "+s.Stalled.UTC().Format(time.RFC3339))
	case !s.Connected && s.Problem != "":
		add("central", api.Degraded, "not reachable: "+s.Problem)
	case s.Replaying:
		add("central", api.OK, "connected; central has lost something and gets it again")
	case s.Connected:
		add("central", api.OK, "connected as "+s.Site)
	}
}
