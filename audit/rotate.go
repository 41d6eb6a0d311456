package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// ErrOtherKey means that a key does not sign the log, and has not handed over to the one that does.
var ErrOtherKey = errors.New("another key signs the audit log")

// KeyChanged is the Extra of a record of the kind KeyChange.
type KeyChanged struct {
	From   string `json:"from"` // verifier keys
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// Rotate hands over to another key: that of the file beside the key's, with .new at its end, or a new one. It puts that on
// record, signs what the log then has with both keys, and gives that to the witness; only then does the new key take
// the file and the place of the old one. Whoever believes the old key believes the new one by that checkpoint.
//
// If the process dies before the checkpoint, nothing has happened, and the next call takes the same new key. After it,
// the next checkpoint of any node finishes what is left.
//
// With from, that key hands over. If it has done so already, as when a call is repeated whose answer was lost, nothing
// changes, and the checkpoint of then is returned. ErrOtherKey: another key signs, and from has not handed over.
func (l *Log) Rotate(ctx context.Context, from *Public, reason, actor string) (note string, c Checkpoint, err error) {
	l.setUp()
	l.rotating.Lock()
	defer l.rotating.Unlock()
	if from != nil {
		if note, c, err = l.handedOver(ctx, *from); err != nil || note != "" {
			return note, c, err
		}
	}
	next, err := l.Key.next()
	if err != nil {
		return "", c, err
	}
	origin, err := l.Origin(ctx)
	if err != nil {
		return "", c, err
	}
	to := next.VerifierKey(origin)
	detail, err := json.Marshal(KeyChanged{l.Key.VerifierKey(origin), to, reason})
	if err != nil {
		return "", c, err
	}
	e := holdfast.Entry{Kind: holdfast.Called, Code: CodeKey, Subject: origin, Actor: actor, Outcome: holdfast.Succeeded, Detail: detail}
	if err := l.record(ctx, []holdfast.Entry{e}, func(r *Record) bool {
		var k KeyChanged
		return r.Kind == KeyChange && json.Unmarshal(r.Extra, &k) == nil && k.To == to
	}); err != nil {
		return "", c, err
	}
	return l.handOver(ctx, next)
}

// handOver signs with both keys, and changes to the next one.
func (l *Log) handOver(ctx context.Context, next *Key) (note string, c Checkpoint, err error) {
	l.signing.Lock()
	defer l.signing.Unlock()
	if err := l.sign(ctx, next); err != nil {
		return "", c, fmt.Errorf("hand over to another key: %w", err)
	}
	if next.Public() != l.Key.Public() {
		if err := l.Key.become(next); err != nil {
			return "", c, err
		}
	}
	return l.stored(ctx)
}

// handedOver returns the checkpoint by which a key has handed over, after it has finished what is left of that. note
// empty: the key signs still.
func (l *Log) handedOver(ctx context.Context, from Public) (note string, c Checkpoint, err error) {
	l.signing.Lock()
	defer l.signing.Unlock()
	if err := l.takeOver(ctx); err != nil || l.Key.Public() == from {
		return "", c, err
	}
	logs, err := l.Store.Logs(ctx)
	if err != nil {
		return "", c, err
	}
	notes, err := handOvers(ctx, l.Store, logs)
	if err != nil {
		return "", c, err
	}
	if _, passed := Heir(notes, from); len(passed) > 0 {
		c, err = ParseCheckpoint(passed[0])
		return passed[0], c, err
	}
	return "", c, ErrOtherKey
}

// takeOver changes to the key to which this one has handed over: this node did, and died; or another node did that
// shares the log.
func (l *Log) takeOver(ctx context.Context) error {
	logs, err := l.Store.Logs(ctx)
	if err != nil {
		return err
	}
	notes, err := handOvers(ctx, l.Store, logs)
	if err != nil {
		return err
	}
	last, passed := Heir(notes, l.Key.Public())
	if last == l.Key.Public() {
		return nil
	}
	if l.Witness != nil { // it may not have them, and no other would be believed
		for _, note := range passed {
			if err := l.Witness.Keep(ctx, note); err != nil {
				return fmt.Errorf("%w: %w", ErrWitness, err)
			}
		}
	}
	next, err := l.Key.find(last)
	if err != nil {
		return err
	}
	return l.Key.become(next)
}

// Heir returns the key that signs now instead of another one, and the checkpoints by which that has handed over, of those
// that are given, the oldest first. A key that has not handed over is its own heir.
func Heir(handOvers []string, key Public) (heir Public, passed []string) {
	heir = key
	for _, note := range handOvers {
		if c, err := ParseCheckpoint(note); err == nil && len(c.Keys) > 1 && c.Keys[0] == heir {
			heir, passed = c.Keys[len(c.Keys)-1], append(passed, note)
		}
	}
	return heir, passed
}

// HandsOver reports whether a note names two keys, the first of which hands over to the second. It does not check it.
func HandsOver(note string) bool { return strings.Count(note, "\nkey ") > 1 }

// keysOf returns the keys of checkpoints that both have signed. Others are left out.
func keysOf(handOvers []string) (list [][]Public) {
	for _, text := range handOvers {
		if c, err := ParseCheckpoint(text); err == nil && len(c.Keys) > 1 {
			list = append(list, c.Keys)
		}
	}
	return list
}

// believed returns the keys, those to which one of them has handed over, and those that have handed over to one.
func believed(keys []Public, handed [][]Public) map[Public]bool {
	all := map[Public]bool{}
	for _, k := range keys {
		all[k] = true
	}
	for before := -1; before != len(all); {
		before = len(all)
		for _, both := range handed {
			for _, k := range both {
				if all[k] {
					for _, other := range both {
						all[other] = true
					}
				}
			}
		}
	}
	return all
}

// Times of waiting for a record.
const (
	recordWait = time.Minute
	recordLook = 100 * time.Millisecond
)

// record appends entries, and returns when all has said that the records are there.
func (l *Log) record(ctx context.Context, entries []holdfast.Entry, all func(r *Record) bool) error {
	ctx, cancel := context.WithTimeout(ctx, recordWait)
	defer cancel()
	origin, err := l.Origin(ctx)
	if err != nil {
		return err
	}
	own, err := l.Store.OpenLog(ctx, origin, true)
	if err != nil {
		return err
	}
	for i := 0; i < len(entries); i += holdfast.MaxEntries {
		if err := l.Journal.Append(ctx, entries[i:min(i+holdfast.MaxEntries, len(entries))]...); err != nil {
			return err
		}
	}
	for after, done := own.Size, false; ; {
		if err := l.Store.Records(ctx, own.Log, after, verifyPage, func(s *Stored) error {
			after = s.Seq
			r, err := Read(s.Leaf, nil)
			done = done || err == nil && all(&r)
			return err
		}); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("what is to be on record is not in the log yet"), ctx.Err())
		case <-time.After(recordLook):
		}
	}
}
