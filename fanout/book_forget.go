package fanout

import (
	"context"
	"time"
)

// forgetEvery is how often a book looks for deleted subscriptions that it need not know any more.
const forgetEvery = time.Hour

// forget drops the deleted subscriptions that the store has dropped, whose messages and events are all purged.
// Otherwise a book, the routes and what they keep of each would grow with every subscription that ever was.
func (b *Book) forget(ctx context.Context) error {
	gone := map[string]int64{}
	b.mu.RLock()
	for id := range b.all {
		if s := b.all[id]; s.Gone {
			gone[id] = s.Version
		}
	}
	b.mu.RUnlock()
	for id, version := range gone {
		kept, err := b.store.SubscriptionsSince(ctx, version-1, version, 1)
		if err != nil {
			return err
		}
		if len(kept) > 0 {
			continue
		}
		b.mu.Lock()
		if s := b.all[id]; s.Gone && s.Version == version {
			delete(b.all, id)
			b.changed[id] = struct{}{}
		}
		b.mu.Unlock()
	}
	return nil
}
