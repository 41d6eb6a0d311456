package notify

import (
	"context"
	"sync"
	"time"
)

const (
	// freshFor is how long a book is used before its version is checked. So all nodes see a change
	// of lists or channels within about this time.
	freshFor = time.Second
	// missingFor is how long ingest treats a name that the book lacks as missing: a million
	// notifications to a missing list must not query the store a million times. Each delivery
	// checks again.
	missingFor = 20 * time.Millisecond
)

// Books holds the book in memory, so that ingest and delivery need not read all lists for each
// notification. It may be used concurrently.
type Books struct {
	store BookStore

	mu      sync.Mutex
	book    Book
	known   bool
	checked time.Time
}

// NewBooks returns the books of a store.
func NewBooks(s BookStore) *Books { return &Books{store: s} }

// Book returns all channels and lists, at most about a second old. Its maps
// must not be changed.
func (b *Books) Book(ctx context.Context) (Book, error) { return b.read(ctx, freshFor) }

// Latest returns the current book. Use it for a name that an older book lacks.
func (b *Books) Latest(ctx context.Context) (Book, error) { return b.read(ctx, 0) }

func (b *Books) read(ctx context.Context, age time.Duration) (Book, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known && time.Since(b.checked) < age {
		return b.book, nil
	}
	if b.known {
		v, err := b.store.BookVersion(ctx)
		if err != nil {
			return Book{}, err
		}
		if v == b.book.Version {
			b.checked = time.Now()
			return b.book, nil
		}
	}
	book, err := b.store.Book(ctx)
	if err != nil {
		return Book{}, err
	}
	b.book, b.known, b.checked = book, true, time.Now()
	return book, nil
}

// Store returns the store of the books. A change made through it takes effect in these books at
// once, not only within a second. So a node that makes a list can notify it at once.
func (b *Books) Store() BookStore { return edited{b.store, b} }

// outdated makes the next reader check the book's version.
func (b *Books) outdated() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked = time.Time{}
}

// edited is a store that reports its changes to the books.
type edited struct {
	BookStore

	books *Books
}

func (e edited) PutChannel(ctx context.Context, c Channel, actor string) error {
	defer e.books.outdated()
	return e.BookStore.PutChannel(ctx, c, actor)
}

func (e edited) DeleteChannel(ctx context.Context, name string, version int64, actor string) error {
	defer e.books.outdated()
	return e.BookStore.DeleteChannel(ctx, name, version, actor)
}

func (e edited) PutList(ctx context.Context, l List, actor string) error {
	defer e.books.outdated()
	return e.BookStore.PutList(ctx, l, actor)
}

func (e edited) DeleteList(ctx context.Context, name string, version int64, actor string) error {
	defer e.books.outdated()
	return e.BookStore.DeleteList(ctx, name, version, actor)
}
