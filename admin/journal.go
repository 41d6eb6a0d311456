package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// JournalKeeper keeps the journal for its followers; a holdfast.Journal is one.
type JournalKeeper interface {
	Followers(ctx context.Context) ([]holdfast.FollowerInfo, error)
	Forget(ctx context.Context, follower string) error
}

// Journal offers the journal's followers.
type Journal struct{ *Service }

func noJournal() *api.Problem { return api.Unsupported.Problem("this node keeps no journal") }

// Followers returns all followers by name.
func (j Journal) Followers(ctx context.Context) (api.FollowerList, error) {
	if j.Journal == nil {
		return api.FollowerList{}, noJournal()
	}
	list := []api.Follower{}
	found, err := j.Journal.Followers(ctx)
	for _, f := range found {
		list = append(list, api.Follower{Name: f.Name, Running: f.Running, Unread: instant(f.Unread)})
	}
	if err != nil {
		return api.FollowerList{}, j.refuse(ctx, "list the followers of the journal", err)
	}
	return api.FollowerList{Followers: list}, nil
}

// Forget ends a follower. It ends one that runs in this process only with force.
func (j Journal) Forget(ctx context.Context, name string, force bool) error {
	if j.Journal == nil {
		return noJournal()
	}
	const doing = "forget the follower"
	if !force {
		list, err := j.Journal.Followers(ctx)
		if err != nil {
			return j.refuse(ctx, doing, err)
		}
		if slices.ContainsFunc(list, func(f holdfast.FollowerInfo) bool { return f.Name == name && f.Running }) {
			return api.Conflict.Problem("the follower runs in this process, and would miss what it has not read; stop it first, or say force",
				api.Fault{Field: "name", Value: api.Clip(name), Problem: "is running"})
		}
	}
	err := j.Journal.Forget(ctx, name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return api.NotFound.Problem(fmt.Sprintf("no follower of the journal is named %q", api.Clip(name)),
			api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a follower"})
	}
	if err != nil {
		return j.refuse(ctx, doing, err)
	}
	j.noted(ctx, "follower of the journal forgotten", slog.String("follower", name))
	return nil
}
