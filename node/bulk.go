package node

import (
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/bulk"
)

// bulkRunner makes the part that runs bulk actions.
func (n *Node) bulkRunner(s *admin.Service) *bulk.Runner {
	return &bulk.Runner{Store: n.kept.Bulks, Do: admin.Bulk{Service: s}.Do, Holder: n.cfg.Node.ID, Logger: n.log}
}
