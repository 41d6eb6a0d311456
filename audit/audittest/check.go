// Package audittest verifies an export of an audit log a second time, written from the description of
// the format and with nothing of package audit. Tests compare the two.
package audittest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// ErrBroken means that the export is not what was once written and signed.
var ErrBroken = errors.New("broken")

// ErrUnrecorded means that nothing is broken, and that a record says that calls have none.
var ErrUnrecorded = errors.New("calls are not on record")

// line has the fields of all three kinds of line.
type line struct {
	Version                int `json:"holdfast-audit"`
	Origin, Before         string
	From, Seq              int64
	Hash, Last, Checkpoint string
	Leaf                   json.RawMessage
	Count                  *int64
	Gaps                   []gap
	Copy                   bool
	Purge                  json.RawMessage
	Values                 []struct {
		Field, Text string
		Salt        []byte
	}

	missed int64 // calls that the record says have none
}

type gap struct {
	First, Last int64
	Hash        string

	leaf, after tlog.Hash // of the record that follows: its leaf, and the chain
}

// Export checks all records of an export, its own checkpoint, and those that somebody kept elsewhere.
// They count if the verifier key has signed them. It keeps two hashes per record.
func Export(r io.Reader, vkey string, kept ...string) error {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return err
	}
	in, head, l, chain, gaps := bufio.NewReader(r), line{}, line{}, tlog.Hash{}, []gap(nil)
	if err := read(in, &head); err != nil || head.Version != 1 || head.From < 1 {
		return fmt.Errorf("%w: header: %w", ErrBroken, err)
	}
	if chain, err = unhex(head.Before); err != nil {
		return err
	}
	chains, leaves, purged := []tlog.Hash{chain}, []tlog.Hash{}, head.From == 1
	missed := int64(0)
	for next := head.From; ; next++ {
		l = line{}
		if err := read(in, &l); err != nil {
			return err
		}
		if l.Count != nil {
			break
		}
		hash := tlog.Hash(sha256.Sum256(append([]byte{0}, l.Leaf...)))
		chain = chained(next, chain, hash)
		if l.Seq > next && head.Copy { // the trailer says what its hash is made of
			if chain, err = unhex(l.Hash); err != nil {
				return err
			}
			gaps = append(gaps, gap{First: next, Last: l.Seq - 1, leaf: hash, after: chain})
			chains, next = append(chains, make([]tlog.Hash, l.Seq-next)...), l.Seq
		}
		if l.Seq != next || l.Hash != hex.EncodeToString(chain[:]) {
			return fmt.Errorf("%w: record %d does not follow record %d", ErrBroken, l.Seq, next-1)
		}
		chains, leaves = append(chains, chain), append(leaves, hash)
		cut, err := inspect(&l)
		if err != nil {
			return err
		}
		purged, missed = purged || cut == head.Before, missed+l.missed
	}
	if *l.Count != int64(len(leaves)) || l.Last != hex.EncodeToString(chain[:]) || !slices.EqualFunc(gaps, l.Gaps, fits) || !purged && !proved(l.Purge, &head) {
		return fmt.Errorf("%w: the trailer, or the purge of what is not here", ErrBroken)
	}
	if len(gaps) > 0 {
		leaves = nil
	}
	for _, text := range append(kept, l.Checkpoint) {
		n, err := note.Open([]byte(text), note.VerifierList(verifier))
		if err != nil {
			continue // there is none, or it is of another key
		}
		if err := checkpoint(n.Text, &head, chains, leaves); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%w: %d", ErrUnrecorded, missed)
	}
	return nil
}

// fits reports whether a gap that was found is one that the trailer names.
func fits(found, named gap) bool {
	before, err := unhex(named.Hash)
	return err == nil && found.First == named.First && found.Last == named.Last &&
		found.after == chained(named.Last+1, before, found.leaf)
}

// chained is the hash of the chain at a record.
func chained(seq int64, before, leaf tlog.Hash) tlog.Hash {
	return sha256.Sum256(bytes.Join([][]byte{{1}, binary.BigEndian.AppendUint64(nil, uint64(seq)), before[:], leaf[:]}, nil))
}

// read reads one line.
func read(in *bufio.Reader, l *line) error {
	text, err := in.ReadBytes('\n')
	if err = errors.Join(err, json.Unmarshal(text, l)); err != nil { //nolint:musttag // names differ in their case only
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// inspect compares values with what the leaf says of them. Of a purge it returns the hash at its end.
func inspect(l *line) (cut string, err error) {
	var says struct {
		Kind   string
		Sealed map[string]string
		Extra  json.RawMessage
	}
	var purge struct{ Hash string }
	err = json.Unmarshal(l.Leaf, &says) //nolint:musttag // the same
	if says.Kind == "Gap" {
		var gap struct{ Calls int64 }
		err = errors.Join(err, json.Unmarshal(says.Extra, &gap)) //nolint:musttag // the same
		l.missed = gap.Calls
	}
	if says.Kind == "Purged" {
		err = errors.Join(err, json.Unmarshal(says.Extra, &purge)) //nolint:musttag // the same
	}
	for _, v := range l.Values {
		sealed := fmt.Sprintf("%d:%s%d:%s%d:%s", len(v.Salt), v.Salt, len(v.Field), v.Field, len(v.Text), v.Text)
		if sum := sha256.Sum256([]byte(sealed)); says.Sealed[v.Field] != base64.RawURLEncoding.EncodeToString(sum[:]) {
			return "", fmt.Errorf("%w: %s of record %d is not what was sealed", ErrBroken, v.Field, l.Seq)
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: record %d: %w", ErrBroken, l.Seq, err)
	}
	return purge.Hash, nil
}

// checkpoint compares a signed text with the records.
func checkpoint(text string, head *line, chains, leaves []tlog.Hash) error {
	f := strings.Split(text, "\n")
	size, err := strconv.ParseInt(f[1], 10, 64)
	at := size - head.From + 1
	if err != nil || f[0] != head.Origin || at < 0 || at > 0 && at < int64(len(chains)) && chains[at] == (tlog.Hash{}) {
		return err // of another log, or of what was purged, or of a gap
	}
	if at >= int64(len(chains)) || f[3] != "chain "+chains[at].String() || head.From == 1 && leaves != nil && f[2] != tree(leaves[:at]).String() {
		return fmt.Errorf("%w: the checkpoint of %d records", ErrBroken, size)
	}
	return nil
}
