package node

import (
	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/bulk"
)

// bulkRunner makes the part that runs bulk actions. Its name is new with each start, so that no two processes
// take each other for one.
func (n *Node) bulkRunner(s *admin.Service) *bulk.Runner {
	return &bulk.Runner{Store: n.kept.Bulks, Do: admin.Bulk{Service: s}.Do, Holder: n.cfg.Node.ID + " " + string(holdfast.NewID()), Logger: n.log}
}
