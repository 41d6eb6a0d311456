package notify

import (
	"context"
	"sync"
	"time"
)

const (
	// freshFor is how long a directory is used before its version is checked. So all nodes see a change
	// of lists or channels within about this time.
	freshFor = time.Second
	// missingFor is how long ingest treats a name that the directory lacks as missing: a million
	// notifications to a missing list must not query the store a million times. Each delivery
	// checks again.
	missingFor = 20 * time.Millisecond
)

// DirectoryCache holds the directory in memory, so that ingest and delivery need not read all lists for each
// notification. It may be used concurrently.
type DirectoryCache struct {
	store DirectoryStore

	mu      sync.Mutex
	book    Directory
	known   bool
	checked time.Time
}

// NewDirectoryCache returns the cache of a store.
func NewDirectoryCache(s DirectoryStore) *DirectoryCache { return &DirectoryCache{store: s} }

// Get returns all channels and lists, at most about a second old. Its maps
// must not be changed.
func (b *DirectoryCache) Get(ctx context.Context) (Directory, error) { return b.read(ctx, freshFor) }

// Latest returns the current directory. Use it for a name that an older directory lacks.
func (b *DirectoryCache) Latest(ctx context.Context) (Directory, error) { return b.read(ctx, 0) }

func (b *DirectoryCache) read(ctx context.Context, age time.Duration) (Directory, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known && time.Since(b.checked) < age {
		return b.book, nil
	}
	if b.known {
		v, err := b.store.DirectoryVersion(ctx)
		if err != nil {
			return Directory{}, err
		}
		if v == b.book.Version {
			b.checked = time.Now()
			return b.book, nil
		}
	}
	book, err := b.store.Directory(ctx)
	if err != nil {
		return Directory{}, err
	}
	b.book, b.known, b.checked = book, true, time.Now()
	return book, nil
}

// Store returns the store behind the cache. A change made through it takes effect in this cache at
// once, not only within a second. So a node that makes a list can notify it at once.
func (b *DirectoryCache) Store() DirectoryStore { return edited{b.store, b} }

// outdated makes the next reader check the directory's version.
func (b *DirectoryCache) outdated() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked = time.Time{}
}

// edited is a store that reports its changes to the cache.
type edited struct {
	DirectoryStore

	books *DirectoryCache
}

func (e edited) PutChannel(ctx context.Context, c Channel, actor string) error {
	defer e.books.outdated()
	return e.DirectoryStore.PutChannel(ctx, c, actor)
}

func (e edited) DeleteChannel(ctx context.Context, name string, version int64, actor string) error {
	defer e.books.outdated()
	return e.DirectoryStore.DeleteChannel(ctx, name, version, actor)
}

func (e edited) PutList(ctx context.Context, l List, actor string) error {
	defer e.books.outdated()
	return e.DirectoryStore.PutList(ctx, l, actor)
}

func (e edited) DeleteList(ctx context.Context, name string, version int64, actor string) error {
	defer e.books.outdated()
	return e.DirectoryStore.DeleteList(ctx, name, version, actor)
}
