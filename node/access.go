package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// authRequired says whether requests need a token, and fails where nobody could
// be let in. Who is served without one is not cut off for that (F1-21).
func (n *Node) authRequired(ctx context.Context) (bool, error) {
	if !n.cfg.AsksForTokens() {
		return false, nil
	}
	a, err := n.access(ctx)
	if err != nil {
		return false, err
	}
	switch what, starts := n.cfg.NoAdmin(a); {
	case !starts:
		return false, fmt.Errorf("listen on %s: %s; %s", n.cfg.Listen, what, n.cfg.FirstToken())
	case what != "":
		n.log.ErrorContext(ctx, "nobody can operate this node", slog.String("fault", what), slog.String("fix", n.cfg.FirstToken()))
	}
	return true, nil
}

// access is what the open store tells of who may use the node.
func (n *Node) access(ctx context.Context) (a config.Access, err error) {
	if err := n.store.EachToken(ctx, func(_, role string, _, _ time.Time) {
		if role == string(api.Admin) {
			a.Admins++
		}
	}); err != nil {
		return a, err
	}
	sites, err := n.store.Sites(ctx)
	for _, s := range sites {
		if !s.Enrolled.IsZero() && s.Revoked.IsZero() {
			a.Sites++
		}
	}
	counts := n.store.Counts()
	a.Waiting = counts.Pending+counts.Claimed > 0
	return a, err
}

// CheckAccess says what a start would say of tokens, by a look at the store
// that changes nothing; empty where there is nothing to say, or the store cannot
// be looked at. It must not be called by a process that has the store open.
func CheckAccess(ctx context.Context, c *config.Config) string {
	if !c.AsksForTokens() {
		return ""
	}
	var a config.Access
	if c.Store.IsZero() {
		i, err := sqlite.Inspect(ctx, database(c.Data), sqlite.InspectOptions{})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		a = config.Access{Admins: i.Admins, Sites: i.Sites, Waiting: len(i.Waiting) > 0}
	} else {
		i, err := postgres.Inspect(ctx, c.Store.DSN())
		if err != nil || i.Refused != nil {
			return ""
		}
		a = config.Access{Admins: i.Admins, Sites: i.Sites, Waiting: len(i.Waiting) > 0}
	}
	what, _ := c.NoAdmin(a)
	if what != "" {
		what += "; " + c.FirstToken()
	}
	return what
}
