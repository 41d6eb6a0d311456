package audit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/holdfast-mq/holdfast/rows"
)

// A checkpoint is made after so much time or so many records, if there is anything new.
const (
	checkpointEvery = time.Minute
	checkpointEach  = 1000
)

// ErrCheckpoint means that a text is not a checkpoint that its key has signed.
var ErrCheckpoint = errors.New("not a signed checkpoint")

// Checkpoint says what a log contained at one size. It is signed as a note: the text has the lines of
// a C2SP checkpoint (origin, size, root) and then "chain", "time" and "key", each with a value.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash // of the tree
	Chain  Hash // of the last record
	Time   time.Time
	// Keys have signed it. Two of them: the first one hands over to the second.
	Keys []Public

	note string // as the witness has it
}

// Signer returns the verifier key of the key that signs from then on.
func (c *Checkpoint) Signer() string { return c.Keys[len(c.Keys)-1].verifier(c.Origin) }

// Sign returns the checkpoint as a note that the keys have signed.
func (c *Checkpoint) Sign(keys ...*Key) (string, error) {
	encode := base64.StdEncoding.EncodeToString
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%d\n%s\nchain %s\ntime %s\n", c.Origin, c.Size, encode(c.Root[:]), encode(c.Chain[:]), c.Time.UTC().Format(time.RFC3339))
	var signers []note.Signer
	for _, k := range keys {
		s, err := k.signer(c.Origin)
		if err != nil {
			return "", err
		}
		p := k.Public()
		fmt.Fprintf(&b, "key %s\n", encode(p[:]))
		signers = append(signers, s)
	}
	signed, err := note.Sign(&note.Note{Text: b.String()}, signers...)
	if err != nil {
		return "", fmt.Errorf("sign checkpoint %d of %s: %w", c.Size, c.Origin, err)
	}
	return string(signed), nil
}

// ParseCheckpoint reads a note. All keys that it names have signed it; whether they are to be trusted is the
// caller's question. Otherwise the error is ErrCheckpoint.
func ParseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 6 {
		return c, fmt.Errorf("%w: it has %d lines", ErrCheckpoint, len(lines))
	}
	bad := false
	hash := func(text string) (h Hash) {
		data, err := base64.StdEncoding.DecodeString(text)
		bad = bad || err != nil || len(data) != len(h)
		copy(h[:], data)
		return h
	}
	c.Origin = lines[0]
	c.Size, err = strconv.ParseInt(lines[1], 10, 64)
	bad = err != nil || c.Size < 0
	c.Root = hash(lines[2])
	var verifiers []note.Verifier
	for _, line := range lines[3:] {
		word, value, _ := strings.Cut(line, " ")
		switch word {
		case "chain":
			c.Chain = hash(value)
		case "time":
			c.Time, err = time.Parse(time.RFC3339, value)
			bad = bad || err != nil
		case "key":
			p := Public(hash(value))
			c.Keys = append(c.Keys, p)
			v, err := note.NewVerifier(p.verifier(c.Origin))
			if err != nil {
				return c, fmt.Errorf("%w: %w", ErrCheckpoint, err)
			}
			verifiers = append(verifiers, v)
		}
		if line == "" {
			break
		}
	}
	signed, err := note.Open([]byte(text), note.VerifierList(verifiers...))
	if err != nil || bad || len(c.Keys) == 0 || len(signed.Sigs) != len(c.Keys) {
		return c, fmt.Errorf("%w: %w", ErrCheckpoint, errors.Join(err, fmt.Errorf("%.80q", text)))
	}
	return c, nil
}

// Checkpoints signs checkpoints until ctx ends, and once more then. It does so on the node that
// appends. On others that share the log it gives their own witness what that one has signed.
func (l *Log) Checkpoints(ctx context.Context) error {
	l.setUp()
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	told := ""
	for {
		more := true
		select {
		case <-ctx.Done():
			more = false
		case <-tick.C:
		case <-l.ring:
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		work := ctx
		if !more {
			work = last
		}
		if leads := l.Leads() || !more; leads || l.Shared {
			once := l.Checkpoint
			if !leads {
				once = l.attend
			}
			err := once(work)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != told && err != nil {
				l.Logger.ErrorContext(ctx, "audit log not anchored", slog.Any("error", err))
			}
			told = text
			l.unsigned.Store(&text)
		}
		cancel()
		if !more {
			return nil
		}
	}
}

// Unkept returns how often the witness could not be read or written.
func (l *Log) Unkept() int64 { return l.unkept.Load() }

// Problem returns why the log could not be anchored when that was tried last; "" if it was.
func (l *Log) Problem() string {
	if p := l.unsigned.Load(); p != nil {
		return *p
	}
	return ""
}

// ErrRewritten means that a log does not contain what a checkpoint of it says.
var ErrRewritten = errors.New("the audit log is not the one that was signed before")

// ErrOutdated means that a checkpoint comes too late: its key has handed over to another one, or it hands over and a larger
// one stands.
var ErrOutdated = errors.New("another checkpoint was signed before")

// ErrEmpty means that a log has no record yet, and nothing that can be signed.
var ErrEmpty = errors.New("the audit log is empty")

// ErrWitness means that the witness could not keep a checkpoint. The store has it, and the witness gets it later.
var ErrWitness = errors.New("give checkpoint to the witness")

// Signed is Checkpoint, and returns the newest checkpoint of the log. ErrEmpty: there is none.
func (l *Log) Signed(ctx context.Context) (note string, c Checkpoint, err error) {
	if err = l.Checkpoint(ctx); err != nil {
		return "", c, err
	}
	return l.stored(ctx)
}

// stored returns the newest checkpoint of the store.
func (l *Log) stored(ctx context.Context) (note string, c Checkpoint, err error) {
	origin, err := l.Origin(ctx)
	if err != nil {
		return "", c, err
	}
	row, err := l.Store.Newest(ctx, origin)
	if err == nil && row == nil {
		err = ErrEmpty
	}
	if err != nil {
		return "", c, err
	}
	c, err = ParseCheckpoint(row.Note)
	return row.Note, c, err
}

// Checkpoint signs what the log contains, keeps that, and gives it to the witness. It signs nothing
// if the log does not continue what it has signed before (ErrRewritten), and does nothing if there is
// nothing new. A witness that cannot be read or written keeps nothing from being signed, except after a change of the key: it is
// told, and gets the newest checkpoint once that is possible.
func (l *Log) Checkpoint(ctx context.Context) error {
	l.signing.Lock()
	defer l.signing.Unlock()
	return l.sign(ctx, nil)
}

// attend gives the witness what another node has signed that shares the log, if the log is what that says.
func (l *Log) attend(ctx context.Context) error {
	l.signing.Lock()
	defer l.signing.Unlock()
	s, err := l.stands(ctx)
	if err == nil {
		err = s.away
	}
	if err != nil || s.log.Size == 0 {
		return err
	}
	if _, err = l.agrees(ctx, s.log, s.newest); err != nil {
		return err
	}
	return l.again(ctx, s.log)
}

// sign is Checkpoint. With next it hands over to that key. The caller has locked l.signing.
func (l *Log) sign(ctx context.Context, next *Key) (err error) {
	for range 3 { // another node that shares the log may hand over, or sign, at the same moment
		if err = l.signOnce(ctx, next); !errors.Is(err, ErrOutdated) {
			break
		}
	}
	return err
}

func (l *Log) signOnce(ctx context.Context, next *Key) error {
	if l.Doubt != nil {
		if why := l.Doubt(); why != "" {
			return fmt.Errorf("%w: %s", ErrRewritten, why)
		}
	}
	s, err := l.stands(ctx)
	if err != nil {
		return err
	}
	if s.log.Size == 0 {
		if next == nil {
			return nil
		}
		return ErrEmpty
	}
	if s.away != nil && next != nil { // no other checkpoint would follow until the witness is back
		return s.away
	}
	if next != nil && next.Public() == l.Key.Public() { // another node was faster
		next = nil
	}
	if s.newest != nil && s.newest.Size == s.log.Size && next == nil {
		if s.away != nil {
			return s.away
		}
		return l.again(ctx, s.log)
	}
	tree, err := l.agrees(ctx, s.log, s.newest)
	if err != nil {
		return err
	}
	c := Checkpoint{Origin: s.log.Origin, Size: s.log.Size, Chain: Hash(s.log.Head), Time: time.Now()}
	if c.Root, err = tree.root(c.Size); err != nil {
		return err
	}
	keys := []*Key{l.Key}
	if next != nil {
		keys = append(keys, next)
	}
	signed, err := c.Sign(keys...)
	if err != nil {
		return err
	}
	c.Keys = nil
	for _, k := range keys {
		c.Keys = append(c.Keys, k.Public())
	}
	if err := l.Store.Sign(ctx, rowOf(&c, signed), c.Keys[0]); err != nil {
		return err
	}
	if s.away != nil {
		return s.away
	}
	return l.witness(ctx, signed, &c)
}

// standing is what a checkpoint goes by.
type standing struct {
	newest *Checkpoint // that was signed, and the store or the witness has; nil: none
	log    *rows.AuditLog
	away   error // the witness cannot be read
}

// stands reads what was signed, and then the log, which may have grown since. It changes to the key that signs now.
func (l *Log) stands(ctx context.Context) (s standing, err error) {
	origin, err := l.Origin(ctx)
	if err != nil {
		return s, err
	}
	if s.newest, err = l.newest(ctx, origin); err != nil {
		return s, err
	}
	if s.log, err = l.Store.OpenLog(ctx, origin, true); err != nil || s.log.Size == 0 {
		return s, err
	}
	s.away = l.recall(origin)
	if s.away == nil && l.Witness != nil && (s.newest == nil || l.witnessed.Size > s.newest.Size) && l.witnessed.Size > 0 {
		s.newest = l.witnessed
	}
	return s, l.takeOver(ctx)
}

// agrees returns the tree of a log that continues what was signed of it. ErrRewritten: it does not.
func (l *Log) agrees(ctx context.Context, log *rows.AuditLog, signed *Checkpoint) (*tiles, error) {
	tree := tilesOf(ctx, l.Store, log.Log)
	if signed == nil || signed.Size == 0 {
		return tree, nil
	}
	if signed.Size > log.Size {
		return nil, fmt.Errorf("%w: it has %d records, and had %d", ErrRewritten, log.Size, signed.Size)
	}
	if before, err := tree.root(signed.Size); err != nil || before != signed.Root {
		return nil, errors.Join(fmt.Errorf("%w: its first %d records have changed", ErrRewritten, signed.Size), err)
	}
	return tree, nil
}

// witness gives a checkpoint to the witness.
func (l *Log) witness(ctx context.Context, signed string, c *Checkpoint) error {
	if l.Witness == nil {
		return nil
	}
	if err := l.Witness.Keep(ctx, signed); err != nil {
		l.unkept.Add(1)
		return fmt.Errorf("%w: %w", ErrWitness, err)
	}
	l.witnessed = c
	return nil
}

// again gives the witness the newest checkpoint of the store, if it did not get it when that was made: it was away, or
// another node that shares the log made it.
func (l *Log) again(ctx context.Context, log *rows.AuditLog) error {
	if l.Witness == nil {
		return nil
	}
	row, err := l.Store.Newest(ctx, log.Origin)
	if err != nil || row == nil || l.witnessed.Size >= row.Size {
		return err
	}
	c, err := ParseCheckpoint(row.Note)
	if err == nil {
		_, err = l.agrees(ctx, log, l.witnessed)
	}
	if err != nil {
		return err
	}
	return l.witness(ctx, row.Note, &c)
}

// newest returns the largest checkpoint of this log that the store has.
func (l *Log) newest(ctx context.Context, origin string) (*Checkpoint, error) {
	row, err := l.Store.Newest(ctx, origin)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of %s: %w", origin, err)
	}
	if row == nil {
		return nil, nil
	}
	c, err := ParseCheckpoint(row.Note)
	return &c, err
}

// recall reads what the witness has of this log, once. Until it can be read, nothing is given to it: it may have more than
// the store.
func (l *Log) recall(origin string) error {
	if l.Witness == nil || l.witnessed != nil && l.witnessed.Origin == origin {
		return nil
	}
	most, err := l.readWitness(origin)
	if err != nil {
		l.unkept.Add(1)
		return fmt.Errorf("%w: %w", ErrWitness, err)
	}
	l.witnessed = most
	return nil
}

// readWitness returns the largest checkpoint that the witness has of a log; size 0: none.
func (l *Log) readWitness(origin string) (*Checkpoint, error) {
	best, handed := map[Public]*Checkpoint{}, [][]Public(nil)
	if err := l.Witness.Each(func(text string) error {
		c, err := ParseCheckpoint(text)
		if err != nil {
			return nil //nolint:nilerr // somebody else's line
		}
		c.note = text
		if len(c.Keys) > 1 {
			handed = append(handed, c.Keys)
		}
		if k := c.Keys[0]; c.Origin == origin && (best[k] == nil || best[k].Size < c.Size) {
			best[k] = &c
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read witness: %w", err)
	}
	newest := &Checkpoint{Origin: origin}
	for k := range believed([]Public{l.Key.Public()}, handed) {
		if c := best[k]; c != nil && c.Size > newest.Size {
			newest = c
		}
	}
	return newest, nil
}
