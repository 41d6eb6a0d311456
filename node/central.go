package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/link"
)

// asCentral makes the role of a node that brings its sites' notifications to people, and listens to the sites.
func (n *Node) asCentral(ctx context.Context) (role, error) {
	if err := n.buildSite(ctx, holdfast.Route{}, nil); err != nil {
		return role{}, err
	}
	o, err := n.newOffice(ctx)
	if err != nil {
		return role{}, err
	}
	sites, err := link.NewCentral(link.CentralConfig{
		Store: n.kept.Sites, Copies: n.kept.Telemetry, Witness: n.newPeers(n.kept.Audit.Owner), Erasing: n.newErasing(false), Receiver: o.ingester, Destination: n.cfg.Node.ID, Own: n.cfg.Source(), MaxPayload: int(n.cfg.Limits.Payload),
		Standing: o.desk.Standing, ClientCerts: clientCerts(n.cfg.TLS), Limits: siteLimits(n.cfg.Sites), Logger: n.log, Refused: n.refused,
	})
	if err != nil {
		return role{}, err
	}
	r := n.withOffice(o)
	if err := n.addHub(ctx, &r, o); err != nil {
		return role{}, err
	}
	r.name, r.close, r.sites = config.CentralOfSites, sites.Close, sites.Sites
	h := sites.Handler()
	for _, path := range link.Paths() {
		r.mounts = append(r.mounts, httpapi.Mount{Pattern: "POST " + path, Handler: h, Signed: true})
	}
	operate := r.operate
	r.operate = func(s *admin.Service) {
		operate(s)
		s.Central, s.Mirror = sites, n.kept.SiteCalls
	}
	r.parts = append(r.parts, run.Part{Name: "calls of sites", Run: n.purgeCalls})
	r.greet = func(b *strings.Builder) {
		fmt.Fprintf(b, "  role        central: let a site in with holdfast sites add NAME%s\n", n.asked())
	}
	return r, nil
}

// siteLimits returns what each site may send. Nil: no limits.
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

// clientCerts returns what sites must show in addition to their credentials.
func clientCerts(c config.TLS) link.ClientCerts {
	switch {
	case c.Clients == "":
		return link.NoCert
	case c.AnySite:
		return link.AnyCert
	}
	return link.SiteCert
}
