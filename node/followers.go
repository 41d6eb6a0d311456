package node

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/audit"
)

// followersLate is how long the first start of a node waits at most for what follows the journal.
const followersLate = 5 * time.Second

// awaitFollowers waits until the journal is kept for all that follow it here. The journal keeps what succeeds only while
// something follows: what a node took before that, at its first start, would be missing in the audit log. A store that
// is away keeps nobody waiting for long: it takes nothing meanwhile.
func (n *Node) awaitFollowers(ctx context.Context) {
	var want []string
	if n.cfg.Activity {
		want = append(want, activity.Follower)
	}
	if n.audit != nil {
		want = append(want, audit.FollowerName)
	}
	bounded, cancel := context.WithTimeout(ctx, followersLate)
	defer cancel()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		list, err := n.store.Followers(bounded)
		want = slices.DeleteFunc(want, func(name string) bool {
			return slices.ContainsFunc(list, func(f holdfast.FollowerInfo) bool { return f.Name == name })
		})
		if len(want) == 0 {
			return
		}
		select {
		case <-bounded.Done():
			if ctx.Err() != nil {
				return
			}
			n.log.WarnContext(ctx, "requests are served, and the journal is not followed yet", slog.Any("followers", want), slog.Any("error", err))
			return
		case <-again.C:
		}
	}
}
