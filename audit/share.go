package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/rows"
)

// MostShared is how many values one end of a link tells the other of at once.
const MostShared = 500

// Gone is values of one log that are erased at one end of a link.
type Gone struct {
	Origin string  `json:"log"`
	Reason string  `json:"reason,omitempty"`
	Places []Place `json:"places"`
}

// Erasures is what one end of a link says to the other about erased values.
type Erasures struct {
	Erase []Gone `json:"erase,omitempty"` // the other end erases these, too
	Done  []Gone `json:"done,omitempty"`  // these were asked for, and are erased, or were never here
}

// Unconfirmed is what the other end of a link has not confirmed yet.
type Unconfirmed struct {
	Site   string // empty: central
	Values int64
	Since  time.Time // the oldest of them was erased here
}

// SharedStore is what Sharing needs of a store. site is that of copies, or empty for the store's own logs.
type SharedStore interface {
	Eraser
	// Unconfirmed counts what the other ends have not confirmed.
	Unconfirmed(ctx context.Context) ([]Unconfirmed, error)
	// Unshared returns values of which a site, or central, has not confirmed that they are erased there, in order: at most
	// limit, without the first skip.
	Unshared(ctx context.Context, site string, skip, limit int) ([]Gone, error)
	// Confirm forgets values that a site, or central, has erased. It does not know the logs of others.
	Confirm(ctx context.Context, site string, list []Gone) error
}

// Sharing carries erasures to the other end of a link, and does those of the other end. Each value is told of until the
// other end has confirmed it, however often that takes and however long it is away; to erase again changes nothing.
type Sharing struct {
	Store SharedStore
	// Site says that this is the end of the site: it shares its own logs. Otherwise these are copies.
	Site bool

	mu   sync.Mutex
	skip map[string]int // by peer: what it was told of and has not confirmed, such as what a hold keeps
}

// Tell returns what a peer is to erase: a site, or central if this is a site. It goes on behind what it told of before, and
// from the end to the begin, so that what the peer cannot erase yet holds nothing up.
func (s *Sharing) Tell(ctx context.Context, peer string) ([]Gone, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.Store.Unshared(ctx, s.of(peer), s.skip[peer], MostShared)
	if n := Places(list); err == nil && n == MostShared {
		s.behind(peer, n)
	} else if err == nil {
		delete(s.skip, peer)
	}
	return list, err
}

// behind moves the place from which a peer is told by n. The caller holds the lock.
func (s *Sharing) behind(peer string, n int) {
	if s.skip == nil {
		s.skip = map[string]int{}
	}
	s.skip[peer] = max(s.skip[peer]+n, 0)
}

// Places returns of how many places a list is.
func Places(list []Gone) (n int) {
	for i := range list {
		n += len(list[i].Places)
	}
	return n
}

// of returns whose logs a peer shares.
func (s *Sharing) of(peer string) string {
	if s.Site {
		return ""
	}
	return peer
}

// Told takes what a peer says, and returns what is done of what it asks. What a hold keeps, and a record that has not come yet,
// is not done: the peer asks again. ErrInvalid: it says more at once than is allowed.
func (s *Sharing) Told(ctx context.Context, peer string, in *Erasures) (done []Gone, err error) {
	n := 0
	for _, g := range slices.Concat(in.Erase, in.Done) {
		n += len(g.Places) + 1
	}
	if n > 4*MostShared {
		return nil, fmt.Errorf("%d erasures at once: %w", n, holdfast.ErrInvalid)
	}
	if len(in.Done) > 0 {
		if err := s.Store.Confirm(ctx, s.of(peer), in.Done); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.behind(peer, -Places(in.Done))
		s.mu.Unlock()
	}
	if len(in.Erase) == 0 {
		return nil, nil
	}
	logs, err := s.Store.Logs(ctx)
	if err != nil {
		return nil, err
	}
	holds, err := s.Store.Holds(ctx)
	if err != nil {
		return nil, err
	}
	for i := range in.Erase {
		g := &in.Erase[i]
		at := slices.IndexFunc(logs, func(l *rows.AuditLog) bool {
			return l.Origin == g.Origin && l.Own == s.Site && (s.Site || l.Site == peer)
		})
		switch {
		case at >= 0:
			some, err := s.erase(ctx, logs[at], g, holds, peer)
			if len(some) > 0 {
				done = append(done, Gone{Origin: g.Origin, Places: some})
			}
			if err != nil {
				return done, err
			}
		case s.Site: // a log of a history that this store does not have any more
			done = append(done, Gone{Origin: g.Origin, Places: g.Places})
		}
	}
	return done, nil
}

// erase erases values of one log that a peer has named, and returns which of them are not here now.
func (s *Sharing) erase(ctx context.Context, log *rows.AuditLog, g *Gone, holds []Hold, peer string) (done []Place, err error) {
	var goes []Place
	for _, p := range g.Places {
		switch {
		case p.Seq <= log.Cut:
			done = append(done, p)
			continue
		case p.Seq > log.Size:
			continue
		}
		var values []Value
		if err := s.Store.Values(ctx, log.Log, p.Seq, p.Seq, func(_ int64, v Value) error {
			values = append(values, v)
			return nil
		}); err != nil {
			return done, err
		}
		here, held, err := heldRecord(ctx, s.Store, log, p.Seq, values, holds)
		if err != nil {
			return done, err
		}
		if here && (!held || !slices.ContainsFunc(values, func(v Value) bool { return v.Field == p.Field })) {
			goes = append(goes, p)
		}
	}
	for part := range slices.Chunk(goes, eraseStep) {
		step := Step{Places: part, Newest: newestOf(holds), Reason: shown.Line(g.Reason, MaxText-len("…")), Actor: peer}
		if _, err := s.Store.EraseValues(ctx, log, &step); errors.Is(err, ErrHeld) {
			return done, nil // the peer asks again
		} else if err != nil {
			return done, err
		}
		done = append(done, part...)
	}
	return done, nil
}
