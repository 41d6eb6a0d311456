package audittest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// proof has the fields of a proof.
type proof struct {
	Version    int `json:"holdfast-audit-proof"`
	Leaf       []byte
	Index      int64
	Hashes     [][]byte
	Checkpoint string
	HandOvers  []string
	Copy       *struct {
		Log          string
		Seq          int64
		Leaf, Before []byte
		Following    [][]byte
	}
}

// Proof checks a proof by the verifier key, or one to which it has handed over.
func Proof(text []byte, vkey string) error {
	var p proof
	if err := json.Unmarshal(text, &p); err != nil || p.Version != 1 { //nolint:musttag // names differ in their case only
		return fmt.Errorf("%w: no proof: %w", ErrBroken, err)
	}
	first, err := note.NewVerifier(vkey)
	keys := []note.Verifier{first}
	for _, text := range p.HandOvers {
		if n, err := note.Open([]byte(text), note.VerifierList(keys...)); err == nil {
			last := n.Text[strings.LastIndexByte(n.Text, ' ')+1:]
			raw, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(last))
			next, _ := note.NewEd25519VerifierKey(first.Name(), raw)
			if v, err := note.NewVerifier(next); err == nil && v.KeyHash() != first.KeyHash() {
				keys = append(keys, v)
			}
		}
	}
	n, opened := note.Open([]byte(p.Checkpoint), note.VerifierList(keys...))
	if err != nil || opened != nil {
		return fmt.Errorf("%w: who has signed: %w", ErrBroken, opened)
	}
	lines := strings.Split(n.Text, "\n")
	var size int64
	if _, err := fmt.Sscan(lines[1], &size); err != nil || p.Index < 0 || p.Index >= size {
		return fmt.Errorf("%w: the size of the tree", ErrBroken)
	}
	root, rest := climb(sha256.Sum256(append([]byte{0}, p.Leaf...)), p.Index, size, p.Hashes)
	if len(rest) != 0 || root.String() != lines[2] {
		return fmt.Errorf("%w: the record is not in the tree", ErrBroken)
	}
	return batch(&p)
}

// climb hashes the way up from a leaf, with the hashes beside it from the lowest on.
func climb(h tlog.Hash, index, size int64, beside [][]byte) (tlog.Hash, [][]byte) {
	if size == 1 {
		return h, beside
	}
	k := int64(1)
	for 2*k < size {
		k *= 2
	}
	right := index >= k
	if right {
		h, beside = climb(h, index-k, size-k, beside)
	} else {
		h, beside = climb(h, index, k, beside)
	}
	if len(beside) == 0 || len(beside[0]) != len(h) {
		return h, [][]byte{nil}
	}
	if right {
		return tlog.NodeHash(tlog.Hash(beside[0]), h), beside[1:]
	}
	return tlog.NodeHash(h, tlog.Hash(beside[0])), beside[1:]
}

// batch checks that a copied record leads to the hash that the record in the tree names.
func batch(p *proof) error {
	if p.Copy == nil {
		return nil
	}
	var says struct {
		Kind  string
		Extra struct {
			Log, Hash string
			Last      int64
		}
	}
	err := json.Unmarshal(p.Leaf, &says) //nolint:musttag // the same
	leaf, head, seq := sha256.Sum256(append([]byte{0}, p.Copy.Leaf...)), p.Copy.Before, p.Copy.Seq
	for i := -1; i < len(p.Copy.Following); i++ {
		next := leaf[:]
		if i >= 0 {
			next, seq = p.Copy.Following[i], seq+1
		}
		sum := sha256.Sum256(bytes.Join([][]byte{{1}, binary.BigEndian.AppendUint64(nil, uint64(seq)), head, next}, nil))
		head = sum[:]
	}
	if err != nil || says.Kind != "Copied" || says.Extra.Log != p.Copy.Log || says.Extra.Last != seq || says.Extra.Hash != hex.EncodeToString(head) {
		return fmt.Errorf("%w: the copied record does not lead to the hash of its batch", ErrBroken)
	}
	return nil
}

// proved reports whether a proof has the record that says that what is not here was purged, and somebody has signed it.
func proved(text []byte, head *line) bool {
	var p proof
	var says struct {
		Kind  string
		Extra struct {
			Log, Hash string
			Last      int64
		}
	}
	if json.Unmarshal(text, &p) != nil || json.Unmarshal(p.Leaf, &says) != nil { //nolint:musttag // the same
		return false
	}
	_, line, _ := strings.Cut(p.Checkpoint, "\nkey ")
	raw, _ := base64.StdEncoding.DecodeString(strings.SplitN(line, "\n", 2)[0])
	vkey, err := note.NewEd25519VerifierKey(strings.SplitN(p.Checkpoint, "\n", 2)[0], raw)
	return err == nil && Proof(text, vkey) == nil && says.Kind == "Purged" &&
		says.Extra.Log == head.Origin && says.Extra.Hash == head.Before && says.Extra.Last == head.From-1
}

func unhex(text string) (h tlog.Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || copy(h[:], b) != len(b) {
		return h, fmt.Errorf("%w: a hash: %w", ErrBroken, err)
	}
	return h, nil
}

// tree is the hash of RFC 6962.
func tree(leaves []tlog.Hash) tlog.Hash {
	if len(leaves) == 0 {
		return sha256.Sum256(nil)
	}
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return tlog.NodeHash(tree(leaves[:k]), tree(leaves[k:]))
}
