package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/people"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// keeper is a store as far as it knows who may use the node.
type keeper interface {
	side.Base
	Counts() holdfast.Counts
}

// authRequired reports whether requests need a token. It fails if nobody could be let in. It does not stop a
// node that serves without tokens for that reason (F1-21).
func authRequired(ctx context.Context, c *config.Config, in keeper, log *slog.Logger) (bool, error) {
	if !c.AsksForTokens() {
		return false, nil
	}
	a, err := access(ctx, in)
	if err != nil {
		return false, err
	}
	switch what, starts := c.NoAdmin(a); {
	case !starts:
		return false, fmt.Errorf("listen on %s: %s; %s", c.Listen, what, c.FirstToken())
	case what != "":
		log.ErrorContext(ctx, "nobody can operate this node", slog.String("fault", what), slog.String("fix", c.FirstToken()))
	}
	return true, nil
}

// access returns what the open store knows about who may use the node.
func access(ctx context.Context, in keeper) (a config.Access, err error) {
	kept := nodestore.New(in, nil)
	if err := kept.Tokens.EachToken(ctx, func(_, rights string, _, _, until time.Time, _ bool) {
		if rights == string(api.RoleAdmin) && until.IsZero() {
			a.Admins++
		}
	}); err != nil {
		return a, err
	}
	if err := kept.People.EachPerson(ctx, func(p *people.Person) {
		if p.Administers() {
			a.Admins++
		}
	}); err != nil {
		return a, err
	}
	sites, err := kept.Sites.Sites(ctx)
	for _, s := range sites {
		if !s.Enrolled.IsZero() && s.Revoked.IsZero() {
			a.Sites++
		}
	}
	counts := in.Counts()
	a.Waiting = counts.Pending+counts.Claimed > 0
	return a, err
}

// CheckAccess returns what a start would say about tokens. It reads the store and changes nothing. It returns
// an empty text if there is nothing to say or the store cannot be read. A process that has the store open
// must not call it.
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
