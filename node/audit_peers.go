package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/link"
)

// newPeers makes the exchange of checkpoints with the other end of the link: each end is a witness of the other. of
// is the prefix of the names of a peer's logs. It is nil if this node keeps no audit log.
func (n *Node) newPeers(of func(peer string) string) link.Witness {
	if n.audit == nil {
		return nil
	}
	n.others = &audit.Peers{
		Log: n.audit, Store: n.kept.Audit, Logger: n.log,
		Of: func(peer, origin string) bool { return len(origin) <= 256 && strings.HasPrefix(origin, of(peer)) },
	}
	return n.others
}

// ofSite is the beginning of the names of a site's logs.
func ofSite(site string) string { return strings.TrimSuffix(audit.Origin(site, "", ""), "/") }

// ofAnybody is the beginning of the names of all logs: a site does not know the name of its central.
func ofAnybody(string) string { return "holdfast/" }

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
