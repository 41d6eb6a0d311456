package node

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/link"
)

// newPeers makes the exchange of checkpoints with the other end of the link: each end is a witness of the other.
// owner returns the peer whose log it is. It is nil if this node keeps no audit log.
func (n *Node) newPeers(owner func(ctx context.Context, origin string) (string, error)) link.Witness {
	if n.audit == nil {
		return nil
	}
	n.others = &audit.Peers{Log: n.audit, Store: n.kept.Audit, Logger: n.log, Owner: owner}
	n.audit.Doubt = n.others.Doubt
	return n.others
}

// newErasing makes the exchange of erasures with the other end of the link. It is nil if this node keeps no audit log.
func (n *Node) newErasing(site bool) link.Erasing {
	if n.audit == nil {
		return nil
	}
	return &audit.Sharing{Store: n.kept.Audit, Site: site}
}

// ofCentral is the owner of all logs that a site hears of: it does not know the name of its central.
func ofCentral(context.Context, string) (string, error) { return link.Uplink, nil }

// witnesses are all that have checkpoints of this node's log, outside of its store. Nil: nobody.
func (n *Node) witnesses() audit.Notes {
	var list witnesses
	if w := n.audit.Witness; w != nil {
		list = append(list, w)
	}
	if n.others != nil {
		if vouch, _, wrong := n.others.Standing(); vouch > 0 || len(wrong) > 0 {
			list = append(list, n.others)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// witnesses have what each of them has.
type witnesses []audit.Notes

func (w witnesses) Each(yield func(note string) error) error {
	for _, one := range w {
		if err := one.Each(yield); err != nil {
			return err
		}
	}
	return nil
}

// forgetRevoked forgets what sites said that were revoked, here or at another node of central. Their names are free again.
func (n *Node) forgetRevoked(list []link.SiteInfo) {
	gone := map[string]bool{}
	for i := range list {
		was, known := gone[list[i].Name]
		gone[list[i].Name] = list[i].State == link.Revoked && (was || !known)
	}
	for name, is := range gone {
		if is && n.others != nil {
			n.others.Forget(name)
		}
	}
}

// vouched adds to the health of the audit log what other nodes say of it.
func (n *Node) vouched(status, detail string) (newStatus, newDetail string) {
	if n.others == nil {
		return status, detail
	}
	vouch, at, wrong := n.others.Standing()
	if vouch > 0 {
		detail += fmt.Sprintf("; checkpoints of it are held by %s, the last of %s", brief.Count(int64(vouch), "other node", "other nodes"), at.UTC().Format(time.RFC3339))
	}
	for _, text := range wrong {
		status = api.Degraded
		detail += "; " + text
	}
	return status, detail
}
