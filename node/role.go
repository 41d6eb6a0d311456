package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
)

// role is what a node of one role has beside what every node has: a list of parts,
// which standalone.go, site.go and central.go make. No other file asks which role a node
// has. What is nil there is not.
type role struct {
	name    config.Role
	parts   []run.Part                                   // that run, stopped after all that delivers
	links   []run.Part                                   // that stop as soon as the node is told to
	mounts  []httpapi.Mount                              // that other nodes ask
	operate func(s *admin.Service)                       // adds what its operators can do
	health  func(add addCheck)                           // adds to a health report
	look    func(ctx context.Context) []string           // recipients of the seed's new lists who are not reached
	sow     func(ctx context.Context, file string) error // takes over a seed
	greet   func(b *strings.Builder)                     // tells a person what the node is
	invite  func(b *strings.Builder)                     // tells what to try first
	close   func()                                       // ends what waits for other nodes, at a stop
}

// buildRole makes the role of the configuration, and with it what delivers.
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
