package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
)

// foreignLog is a log of another node.
const foreignLog = "holdfast/plant/n/1"

// foreign signs a checkpoint of foreignLog.
func (k *kit) foreign(key *audit.Key, size int64, root byte) string {
	k.t.Helper()
	c := audit.Checkpoint{Origin: foreignLog, Size: size, Root: audit.Hash{root}, Chain: audit.Hash{root}, Time: k.now()}
	note, err := c.Sign(key)
	k.ok(err)
	return note
}

func (k *kit) key() *audit.Key {
	k.t.Helper()
	key, err := audit.OpenKey(filepath.Join(k.t.TempDir(), "audit.key"))
	k.ok(err)
	return key
}

// exchanges makes peers of a log.
func (k *kit) exchanges(l *audit.Log) *audit.Peers {
	return &audit.Peers{
		Log: l, Store: nodestore.New(k.Full, nil).Audit, Logger: slog.New(slog.DiscardHandler),
		Owner: func(_ context.Context, origin string) (string, error) {
			if origin != foreignLog {
				return "", nil // not known yet
			}
			return "plant", nil
		},
	}
}

// wrong fails unless what does not fit is said with these words; none: everything fits.
func (k *kit) wrong(p *audit.Peers, words ...string) {
	k.t.Helper()
	_, _, wrong := p.Standing()
	text := strings.Join(wrong, "; ")
	if (len(words) == 0) != (text == "") {
		k.t.Errorf("what does not fit is %q", text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			k.t.Errorf("what does not fit is %q, want %q in it", text, w)
		}
	}
}

// checkpointsOfOthers keeps what a peer signs: the newest, one a day, and what hands over to another key. What contradicts
// that is refused and told.
func checkpointsOfOthers(k *kit) {
	key, other := k.key(), k.key()
	l := &audit.Log{Store: nodestore.New(k.Full, nil).Audit, Site: "site", Node: "node", Key: k.key()}
	p := k.exchanges(l)
	told := func(notes ...string) { p.Told(k.ctx(), "plant", audit.Vouching{Notes: notes}) }
	has := func(want ...int64) {
		k.t.Helper()
		var got []int64
		k.ok(l.Store.Checkpoints(k.ctx(), foreignLog, 0, 100, func(c *rows.AuditCheckpoint) error { got = append(got, c.Size); return nil }))
		equal(k, "checkpoints of the other", fmt.Sprint(got), fmt.Sprint(want))
	}
	for size := int64(1); size <= 5; size++ {
		told(k.foreign(key, size, byte(size)))
		k.pass(time.Minute)
	}
	has(1, 5)
	k.pass(25 * time.Hour)
	told(k.foreign(key, 6, 6))
	told(k.foreign(key, 7, 7))
	told(k.foreign(key, 8, 8))
	has(1, 5, 6, 8)
	told(k.foreign(key, 7, 7), k.foreign(key, 8, 8))
	k.wrong(p)
	v, err := p.Tell(k.ctx(), "plant")
	k.ok(err)
	equal(k, "what it is told that we hold", strings.Join(v.Held, ""), k.newestNote(foreignLog))
	told(k.foreign(key, 8, 9))
	k.wrong(p, "two checkpoints of 8 records")
	told(k.foreign(other, 9, 9))
	k.wrong(p, "another key")
	p.Told(k.ctx(), "elsewhere", audit.Vouching{Notes: []string{k.foreign(key, 10, 10)}})
	k.wrong(p, "no checkpoint of its log")
	p.Forget("elsewhere")
	k.wrong(p, "another key")
	p.Forget("plant")
	k.wrong(p)
	unknown := audit.Checkpoint{Origin: "holdfast/plant/n/2", Size: 1, Time: k.now()} // nothing has come of that log yet
	note, err := unknown.Sign(key)
	k.ok(err)
	told(note)
	k.wrong(p)
	has(1, 5, 6, 8)
	told(k.foreign(key, 11, 11))
	has(1, 5, 6, 11)
}

func (k *kit) newestNote(origin string) string {
	k.t.Helper()
	c, err := nodestore.New(k.Full, nil).Audit.Newest(k.ctx(), origin)
	k.ok(err)
	return c.Note
}

// checkpointsReturned compares what a peer holds of the own log with the log. A log that goes on after its end and its
// checkpoints were deleted is found by that.
func checkpointsReturned(k *kit) {
	a := k.purger()
	p := k.exchanges(a.Log)
	k.call(k.Full, "first", 30)
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	origin, err := a.Origin(k.ctx())
	k.ok(err)
	held := k.newestNote(origin)
	told := func(notes ...string) { p.Told(k.ctx(), "plant", audit.Vouching{Held: notes}) }
	told()
	v, err := p.Tell(k.ctx(), "plant")
	k.ok(err)
	equal(k, "what the peer is told first", strings.Join(v.Notes, ""), held)
	told(held)
	if vouch, at, _ := p.Standing(); vouch != 1 || at.IsZero() {
		k.t.Errorf("%d vouch, of %v", vouch, at)
	}
	if v, err := p.Tell(k.ctx(), "plant"); err != nil || len(v.Notes) != 0 {
		k.t.Errorf("it is told again what it has: %v, %v", v, err)
	}
	kept := 0
	k.ok(p.Each(func(string) error { kept++; return nil }))
	equal(k, "notes of others", kept, 1)

	c, err := audit.ParseCheckpoint(held)
	k.ok(err)
	doubtedLogRests(k, a, p, &c, told)
	for words, change := range map[string]func(c *audit.Checkpoint){
		"has fewer":     func(c *audit.Checkpoint) { c.Size = 1000 },
		"are not those": func(c *audit.Checkpoint) { c.Size, c.Root = 20, audit.Hash{1} },
	} {
		forged := c
		change(&forged)
		note, err := forged.Sign(a.Key)
		k.ok(err)
		told(note)
		k.wrong(p, words)
	}
	stranger := c
	stranger.Size = 2000
	note, err := stranger.Sign(k.key())
	k.ok(err)
	told(note) // nobody else signs for us
	k.wrong(p)
	r, err := audit.Verify(k.ctx(), a.Store, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	if err != nil || r.Status != audit.Broken {
		k.t.Errorf("who verifies the store finds %+v, %v", r, err)
	}
	a.stop()
	waittest.Until(k.t, "it does not append", func() bool { return !a.Leads() })
}

// doubtedLogRests signs nothing while a peer holds a checkpoint that the log does not agree with, also if the store has larger ones.
func doubtedLogRests(k *kit, a *appender, p *audit.Peers, c *audit.Checkpoint, told func(notes ...string)) {
	a.Doubt = p.Doubt
	held, err := c.Sign(a.Key)
	k.ok(err)
	forged := *c
	forged.Size, forged.Root = 10, audit.Hash{1}
	note, err := forged.Sign(a.Key)
	k.ok(err)
	told(note)
	k.call(k.Full, "second", 2)
	k.audited()
	if err := a.Checkpoint(k.ctx()); !errors.Is(err, audit.ErrRewritten) {
		k.t.Errorf("a log that a peer doubts was signed: %v", err)
	}
	told(held)
	k.ok(a.Checkpoint(k.ctx()))
}

// handOversExchanged changes keys on both sides. The witness gets the hand-over, also if the nodes were restarted before, if it was
// restored to before that, and if it has what the old key signed of the same size.
func handOversExchanged(k *kit) {
	a := k.purger()
	k.call(k.Full, "first", 30)
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	origin, err := a.Origin(k.ctx())
	k.ok(err)
	before := k.newestNote(origin)
	handed, _, err := a.Rotate(k.ctx(), nil, "yearly", "anna")
	k.ok(err)
	k.call(k.Full, "more", 3)
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	newest := k.newestNote(origin)
	p := k.exchanges(a.Log) // it has restarted
	next := func(held, want string) {
		k.t.Helper()
		p.Told(k.ctx(), "plant", audit.Vouching{Held: []string{held}})
		k.wrong(p)
		v, err := p.Tell(k.ctx(), "plant")
		k.ok(err)
		equal(k, "what the peer is told", strings.Join(v.Notes, ""), want)
	}
	next(before, handed)
	next(handed, newest)
	next(newest, "")
	next(before, handed) // the peer was restored
	if vouch, _, _ := p.Standing(); vouch != 1 {
		k.t.Errorf("%d vouch", vouch)
	}

	// The old key signed the same size a moment before.
	c, err := audit.ParseCheckpoint(newest)
	k.ok(err)
	same, err := c.Sign(a.Key, k.key())
	k.ok(err)
	k.ok(a.Store.Sign(k.ctx(), &rows.AuditCheckpoint{Origin: origin, Size: c.Size, Root: c.Root[:], Note: same, Seen: rows.Now}, a.Key.Public()))
	next(newest, same)
	next(same, "")

	// The peer's key changes.
	key, other := k.key(), k.key()
	theirs := audit.Checkpoint{Origin: foreignLog, Size: 5, Root: audit.Hash{5}, Chain: audit.Hash{5}, Time: k.now()}
	both, err := theirs.Sign(key, other)
	k.ok(err)
	for _, note := range []string{k.foreign(key, 5, 5), both, k.foreign(other, 6, 6)} {
		p.Told(k.ctx(), "plant", audit.Vouching{Notes: []string{note}})
		k.wrong(p)
		equal(k, "what is kept", k.newestNote(foreignLog), note)
	}
	notes, err := nodestore.New(k.Full, nil).Audit.HandOvers(k.ctx(), foreignLog)
	k.ok(err)
	equal(k, "hand-overs that are kept", strings.Join(notes, ""), both)
	a.stop()
	waittest.Until(k.t, "it does not append", func() bool { return !a.Leads() })
}
