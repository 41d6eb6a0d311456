package fanout

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

const (
	// freshFor is how long a book is used before the store's version is asked for. So all nodes know a change
	// within about this time.
	freshFor = time.Second
	// missingFor is how long a topic that the book lacks counts as missing: a million events for a topic
	// that does not exist must not query the store a million times.
	missingFor = 20 * time.Millisecond
	// staleAfter is when a book that could not be kept up is read anew: by then the store may have forgotten
	// a version in which something was deleted.
	staleAfter = 30 * time.Minute
	// page is how many subscriptions are read at once.
	page = 1000
)

// Book holds topics, subscriptions and the usual schedule in memory, as of one version of the store. It reads only what has
// changed since. Use NewBook. A Book may be used concurrently.
type Book struct {
	store Store
	log   *slog.Logger
	ring  chan struct{} // something may have changed

	reading sync.Mutex // held while the store is read

	mu      sync.RWMutex // guards the fields below
	version int64
	topics  map[string]Topic
	usual   Usual
	all     map[string]Subscription // with those that are gone, until it is read anew
	index   *filter.Index
	changed map[string]struct{} // since Routes has asked
	checked time.Time           // zero: nothing has been read
	edits   int                 // changes that were made through this book
	known   int                 // edits that what was read includes
}

// NewBook returns an empty book, which reads the store when it is first asked. A nil log discards.
func NewBook(s Store, log *slog.Logger) *Book {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Book{
		store: s, log: log, ring: make(chan struct{}, 1), topics: map[string]Topic{}, all: map[string]Subscription{}, index: &filter.Index{}, changed: map[string]struct{}{},
	}
}

// Renew takes over all that other nodes have changed so far. Who changes what a book says calls it before, or the change
// is refused as of an old version; and so does who shows it to somebody that may have asked another node for the change.
func (b *Book) Renew(ctx context.Context) error { return b.refresh(ctx, 0) }

// Topics returns all topics by name, at most about a second old.
func (b *Book) Topics(ctx context.Context) ([]Topic, error) {
	if err := b.refresh(ctx, freshFor); err != nil {
		return nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]Topic, 0, len(b.topics))
	for _, name := range slices.Sorted(maps.Keys(b.topics)) {
		list = append(list, b.topics[name])
	}
	return list, nil
}

// Topic returns one topic, if there is one.
func (b *Book) Topic(ctx context.Context, name string) (t Topic, found bool, err error) {
	for _, age := range []time.Duration{freshFor, missingFor} {
		if err := b.refresh(ctx, age); err != nil {
			return t, false, err
		}
		b.mu.RLock()
		t, found = b.topics[name]
		b.mu.RUnlock()
		if found {
			break
		}
	}
	return t, found, nil
}

// Subscription returns a subscription as it is now, if there is one.
func (b *Book) Subscription(ctx context.Context, id string) (s Subscription, found bool, err error) {
	for _, age := range []time.Duration{freshFor, missingFor} {
		if err := b.refresh(ctx, age); err != nil {
			return s, false, err
		}
		if s, found = b.Known(id); found {
			break
		}
	}
	return s, found, nil
}

// Subscriptions returns all subscriptions as they are now, in no order.
func (b *Book) Subscriptions(ctx context.Context) ([]Subscription, error) {
	if err := b.refresh(ctx, freshFor); err != nil {
		return nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]Subscription, 0, len(b.all))
	for _, s := range b.all {
		if !s.Gone {
			list = append(list, s)
		}
	}
	return list, nil
}

// Owned counts the subscriptions that clients have made whose id is owner.
func (b *Book) Owned(owner string) (n int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for id := range b.all {
		if s := b.all[id]; !s.Gone && s.Abonnement != nil && s.Abonnement.Owner == owner {
			n++
		}
	}
	return n
}

// Known returns a subscription as the book has it, without a look at the store.
func (b *Book) Known(id string) (s Subscription, found bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if s = b.all[id]; s.ID == "" || s.Gone {
		return Subscription{}, false
	}
	return s, true
}

// Same reports whether a subscription was there in a version: another one may have had its id.
func (b *Book) Same(ctx context.Context, s *Subscription, version int64) (bool, error) {
	if version == s.Version {
		return true, nil
	}
	then, err := b.store.SubscriptionAt(ctx, s.ID, version)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	}
	return then.Created.Equal(s.Created), err
}

// Version returns the version of which the book is.
func (b *Book) Version(ctx context.Context) (int64, error) {
	err := b.refresh(ctx, freshFor)
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.version, err
}

// match is a subscription that an event is for, in one of its versions.
type match struct {
	id      string
	version int64
}

// match returns the subscriptions that an event is for, and the version in which they are. Each of them must
// pass fits, unless that is nil.
func (b *Book) match(ctx context.Context, e *filter.Event, fits func(*Subscription) error) (list []match, version int64, err error) {
	if err := b.refresh(ctx, freshFor); err != nil {
		return nil, 0, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, id := range b.index.Match(e) {
		s := b.all[id]
		list = append(list, match{id, s.Version})
		if fits == nil {
			continue
		}
		asked := s // only a copy that is asked for is allocated
		if err := fits(&asked); err != nil {
			return nil, 0, err
		}
	}
	return list, b.version, nil
}

// fresh reports whether what was read is not older than age and includes all changes made here.
func (b *Book) fresh(age time.Duration) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return !b.checked.IsZero() && b.known == b.edits && time.Since(b.checked) < age
}

// refresh makes the book at most as old as age.
func (b *Book) refresh(ctx context.Context, age time.Duration) error {
	if b.fresh(age) {
		return nil
	}
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.fresh(age) {
		return nil
	}
	b.mu.RLock()
	after, edits, began := b.version, b.edits, time.Now()
	anew := began.Sub(b.checked) > staleAfter
	b.mu.RUnlock()
	if anew {
		after = 0
	}
	version, err := b.store.Version(ctx)
	if err != nil {
		return err
	}
	if version < after { // the store was set back
		anew, after = true, 0
	}
	var topics []Topic
	var subscriptions []Subscription
	var usual Usual
	if version > after {
		if topics, err = b.store.TopicsSince(ctx, after, version); err != nil {
			return err
		}
		if usual, err = b.store.Usual(ctx); err != nil {
			return err
		}
	}
	for from := after; from < version; {
		some, err := b.store.SubscriptionsSince(ctx, from, version, page)
		if err != nil {
			return err
		}
		if subscriptions = append(subscriptions, some...); len(some) < page {
			break
		}
		from = some[len(some)-1].Version
	}
	ready := b.compile(ctx, subscriptions)
	b.mu.Lock()
	defer b.mu.Unlock()
	if anew {
		b.clear()
	}
	b.take(topics, subscriptions, ready)
	if version > after {
		b.takeUsual(usual)
	}
	b.version, b.checked, b.known = version, began, edits
	return nil
}

// clear empties the book. The caller holds the lock.
func (b *Book) clear() {
	for id := range b.all {
		b.changed[id] = struct{}{}
	}
	b.usual = Usual{}
	clear(b.topics)
	clear(b.all)
	b.index = &filter.Index{}
}

// compile makes subscriptions ready for the index, before anybody waits for that.
func (b *Book) compile(ctx context.Context, subscriptions []Subscription) []filter.Compiled {
	ready := make([]filter.Compiled, len(subscriptions))
	for i := range subscriptions {
		var err error
		if ready[i], err = subscriptions[i].compile(); err != nil { // it alone gets nothing
			b.log.ErrorContext(ctx, "a subscription gets nothing", slog.String("subscription", subscriptions[i].ID), slog.Any("error", err))
		}
	}
	return ready
}

// take takes over changes. The caller holds the lock.
func (b *Book) take(topics []Topic, subscriptions []Subscription, ready []filter.Compiled) {
	for _, t := range topics {
		if b.topics[t.Name] = t; t.Gone {
			delete(b.topics, t.Name)
		}
	}
	for i := range subscriptions {
		s := &subscriptions[i]
		b.all[s.ID], b.changed[s.ID] = *s, struct{}{}
		b.index.Put(ready[i])
	}
}

// changes returns what has changed since it was called last: each subscription by id, and nil for one that is
// not there any more.
func (b *Book) changes(ctx context.Context) (map[string]*Subscription, error) {
	if err := b.refresh(ctx, freshFor); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make(map[string]*Subscription, len(b.changed))
	for id := range b.changed {
		if s, ok := b.all[id]; ok {
			list[id] = &s
		} else {
			list[id] = nil
		}
	}
	clear(b.changed)
	return list, nil
}

// again says that the changes of these subscriptions have not taken effect.
func (b *Book) again(list map[string]*Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range list {
		b.changed[id] = struct{}{}
	}
}

// Store returns the store behind the book. A change made through it is known to this book at once.
func (b *Book) Store() Store { return edited{b.store, b} }

// outdated makes the next reader ask for the version.
func (b *Book) outdated() {
	b.mu.Lock()
	b.edits++
	b.mu.Unlock()
	select {
	case b.ring <- struct{}{}:
	default:
	}
}

// edited is a store that tells the book of its changes.
type edited struct {
	Store

	book *Book
}

func (e edited) PutTopic(ctx context.Context, t Topic, actor string) (int64, error) {
	defer e.book.outdated()
	return e.Store.PutTopic(ctx, t, actor)
}

func (e edited) DeleteTopic(ctx context.Context, name string, version int64, actor string) error {
	defer e.book.outdated()
	return e.Store.DeleteTopic(ctx, name, version, actor)
}

func (e edited) PutSubscription(ctx context.Context, s Subscription, actor string) (int64, error) {
	defer e.book.outdated()
	return e.Store.PutSubscription(ctx, s, actor)
}

func (e edited) DeleteSubscription(ctx context.Context, id string, version int64, actor string) error {
	defer e.book.outdated()
	return e.Store.DeleteSubscription(ctx, id, version, actor)
}
