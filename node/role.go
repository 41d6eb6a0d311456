package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/link"
)

// role is what a node of one role has in addition to what every node has. standalone.go, site.go and
// central.go make it. No other file asks for the role of a node. Each field may be nil.
type role struct {
	name     config.Role
	parts    []run.Part                                         // parts that stop after everything that delivers
	links    []run.Part                                         // parts that stop as soon as the node is told to
	mounts   []httpapi.Mount                                    // routes that other nodes use
	operate  func(s *admin.Service)                             // adds what its operators can do
	sites    func(ctx context.Context) ([]link.SiteInfo, error) // lists the sites of a central
	shipping func() link.Telemetry                              // how the audit log of a site gets to central
	health   func(add addCheck)                                 // adds to a health report
	look     func(ctx context.Context) []string                 // recipients of the seed's new lists who cannot be reached
	sow      func(ctx context.Context, file string) error       // takes over a seed
	greet    func(b *strings.Builder)                           // tells a person what the node is
	invite   func(b *strings.Builder)                           // tells a person what to try first
	close    func()                                             // ends what waits for other nodes, at a stop
}

// buildRole makes the configured role, and the part that delivers.
func (n *Node) buildRole(ctx context.Context) (err error) {
	switch n.cfg.Role {
	case config.Site:
		n.role, err = n.asSite(ctx)
	case config.CentralOfSites:
		n.role, err = n.asCentral(ctx)
	case config.Standalone:
		n.role, err = n.asStandalone(ctx)
	default:
		err = fmt.Errorf("there is no role %q", n.cfg.Role)
	}
	return err
}
