package serve

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Room bounds the bytes of the bodies of known senders, from before a body is read until it is worked off.
// Requests are let in in the order in which they come. It is safe for concurrent use.
type Room struct {
	all  int64
	left *semaphore.Weighted
}

// NewRoom makes a room of the given number of bytes.
func NewRoom(bytes int64) *Room { return &Room{bytes, semaphore.NewWeighted(bytes)} }

// Hold waits for room for a body. length is what the request says; if it is negative or more than most, most
// counts. A body larger than the whole room takes all of it. ok is false if there is no room until ctx ends,
// or for 5 s. If ok is true, the caller must call leave.
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
