package admintest

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-mq/holdfast"
)

// Journal is an admin.JournalKeeper in memory.
type Journal struct {
	mu   sync.Mutex
	list []holdfast.FollowerInfo
}

// Add adds a follower.
func (j *Journal) Add(f holdfast.FollowerInfo) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, f)
}

// Followers implements admin.JournalKeeper.
func (j *Journal) Followers(context.Context) ([]holdfast.FollowerInfo, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.list), nil
}

// Forget implements admin.JournalKeeper.
func (j *Journal) Forget(_ context.Context, follower string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.list)
	j.list = slices.DeleteFunc(j.list, func(f holdfast.FollowerInfo) bool { return f.Name == follower })
	if len(j.list) == before {
		return holdfast.ErrNotFound
	}
	return nil
}
