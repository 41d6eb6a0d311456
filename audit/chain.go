package audit

import (
	"crypto/sha256"
	"encoding/binary"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a SHA-256.
type Hash = tlog.Hash

// LeafHash returns the hash of a leaf, as RFC 6962 has it.
func LeafHash(data []byte) Hash { return tlog.RecordHash(data) }

// ChainHash returns the chain hash of record seq: SHA-256 of a byte 1, seq as 8 bytes big endian, the
// chain hash of the record before it (of the first: zeros), and the hash of its leaf.
func ChainHash(seq int64, before, leaf Hash) Hash {
	var b [1 + 8 + 2*sha256.Size]byte
	b[0] = 1
	binary.BigEndian.PutUint64(b[1:], uint64(seq))
	copy(b[9:], before[:])
	copy(b[9+sha256.Size:], leaf[:])
	return sha256.Sum256(b[:])
}

// Origin returns the name of a log: of a node of a site, in one history of its store.
func Origin(site, node, incarnation string) string {
	return "holdfast/" + site + "/" + node + "/" + incarnation
}
