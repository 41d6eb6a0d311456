package postgres

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Share implements holdfast.Shared: it returns this node's part of the requests that a destination
// bears. The nodes that deliver for it get equal parts. The remainder, or a limit smaller than the
// number of nodes, goes to the first nodes, in an order that starts with another node for each
// destination.
func (db *DB) Share(destination string, limit int) int {
	s := db.self
	lane := db.names.number(destination)
	s.mu.Lock()
	defer s.mu.Unlock()
	from, known := s.since[lane]
	if !known {
		return limit // until then Claim returns nothing
	}
	owners := s.others[lane]
	at := slices.Index(owners, s.number)
	switch {
	case time.Now().Before(from), at < 0 && len(owners) > 0:
		return 0
	case len(owners) <= 1:
		return limit
	}
	n := len(owners)
	h := fnv.New32a()
	_, _ = h.Write([]byte(destination)) // never fails
	rank := (at + int(h.Sum32()%uint32(n))) % n
	share := limit / n
	if rank < limit%n {
		share++
	}
	return share
}

// ready returns how long it takes until this node may take its share of a lane.
func (s *self) ready(lane int32) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, known := s.since[lane]
	if !known {
		return time.Second
	}
	return max(time.Until(from), 0)
}

// Alone implements holdfast.Shared.
func (db *DB) Alone() bool { return db.self.alone() }

// Holds implements holdfast.Shared. It reports whether a claim still belongs to this node.
func (db *DB) Holds(c holdfast.Claim) bool {
	if !db.self.isTrusted() {
		return false
	}
	db.claim.mu.Lock()
	defer db.claim.mu.Unlock()
	h, ok := db.claim.held[c.Seq]
	return ok && h.token == c.Token
}

// Leave implements holdfast.Shared.
func (db *DB) Leave(destination string) {
	db.self.leave(db.names.number(destination))
	db.self.askBeat()
}

func (s *self) leave(lane int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving[lane] {
		s.lanes = slices.DeleteFunc(s.lanes, func(l int32) bool { return l == lane })
	}
	delete(s.serving, lane)
	delete(s.since, lane)
}
