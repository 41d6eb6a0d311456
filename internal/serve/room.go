package serve

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Room bounds what the bodies of known senders hold, from before they are read
// until they are worked off. Those who came first are let in first. It may be
// used concurrently.
type Room struct {
	all  int64
	left *semaphore.Weighted
}

// NewRoom makes a room of so many bytes.
func NewRoom(bytes int64) *Room { return &Room{bytes, semaphore.NewWeighted(bytes)} }

// Hold waits for room for a body: of so many bytes as the request says, or of
// the most that may come where it does not. What is larger than all the room
// takes all. It reports false if there is none until ctx ends, or for 5 s.
// Whoever gets true calls leave.
func (m *Room) Hold(ctx context.Context, length, most int64) (leave func(), ok bool) {
	if length < 0 || length > most {
		length = most
	}
	length = min(length, m.all)
	ctx, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	if m.left.Acquire(ctx, length) != nil {
		return nil, false
	}
	return func() { m.left.Release(length) }, true
}
