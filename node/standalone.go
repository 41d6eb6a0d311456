package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/run"
)

// asStandalone makes the role of a node that works alone: it brings notifications to people, and has no link.
func (n *Node) asStandalone(ctx context.Context) (role, error) {
	if err := n.buildSite(ctx, holdfast.Route{}, nil); err != nil {
		return role{}, err
	}
	o, err := n.newOffice(ctx)
	if err != nil {
		return role{}, err
	}
	r := n.withOffice(o)
	if err := n.addHub(ctx, &r, o); err != nil {
		return role{}, err
	}
	r.name = config.Standalone
	r.greet = func(b *strings.Builder) {
		if len(n.destinationNames()) == 0 {
			b.WriteString("  sends to    nobody: the configuration names no destinations\n")
		}
	}
	r.invite = func(b *strings.Builder) {
		if n.cfg.SelfOnly() {
			fmt.Fprintf(b, "\nand see it arrive in this node's own inbox:\n\n  %s/v1/inbox\n", n.curl())
		}
	}
	return r, nil
}

// withOffice is the role of every node that brings notifications to people.
func (n *Node) withOffice(o *office) role {
	return role{
		parts: []run.Part{{Name: "notifications", Run: o.channels.Run}, {Name: "notification sweeper", Run: o.sweeper.Run}},
		operate: func(s *admin.Service) {
			s.Notifier, s.Notify, s.Directory, s.Channels = o.desk, n.store, o.books.Store(), o.channels
			s.Vault = &vault{folder: n.secrets, holders: []keyring.Holder{channelSecrets{n.secrets, o.books.Store()}, factors{n.secrets, n.kept.People}}}
		},
		look: o.look,
		sow:  func(ctx context.Context, file string) error { return n.sow(ctx, o, file) },
	}
}
