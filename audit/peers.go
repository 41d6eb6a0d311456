package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// Vouching is what two nodes tell one another about checkpoints.
type Vouching struct {
	// Notes are checkpoints of the sender's own log.
	Notes []string `json:"notes,omitempty"`
	// Held are the newest checkpoints that the sender keeps of the receiver's logs. So a node learns what others
	// will say of its log, also when its own store has lost that.
	Held []string `json:"held,omitempty"`
}

// mostNotes limits how many notes, and how many logs of one peer, are looked at.
const mostNotes = 4

// maxNote limits the bytes of a note of another node, and maxOrigin those of the name of its log.
const (
	maxNote   = 4 << 10
	maxOrigin = 256
)

// PeerStore keeps checkpoints of other nodes' logs, beside those of its own. Package nodestore implements it.
type PeerStore interface {
	SignedReader
	// Following returns the first checkpoint of a log that hands over to another key, of those of a size and above, or
	// else the newest of those. Nil: there is none.
	Following(ctx context.Context, origin string, size int64) (*rows.AuditCheckpoint, error)
	// Witness keeps a checkpoint of another node's log. Of those that came within a day it keeps the first and the
	// newest, and each that hands over to another key. before is the size of the newest one until now, or zero.
	Witness(ctx context.Context, c *rows.AuditCheckpoint, before int64) error
	// Contradict keeps a checkpoint of an own log that does not agree with it, unless there is one of the same size.
	Contradict(ctx context.Context, c *rows.AuditCheckpoint) error
}

// Peers exchanges checkpoints with other nodes: each keeps those of the others. It has the Notes of what they keep of the own log. Its
// methods may be called concurrently.
type Peers struct {
	Log   *Log
	Store PeerStore
	// Owner returns the peer whose log it is; "": that is not known yet.
	Owner  func(ctx context.Context, origin string) (peer string, err error)
	Logger *slog.Logger

	mu    sync.Mutex
	peers map[string]*peer
}

// peer is what a node knows of another one since it started.
type peer struct {
	peerState

	turn sync.Mutex // one Told after the other
}

type peerState struct {
	heard  bool
	ours   Checkpoint // the newest of our present log that it says it holds
	note   string
	theirs []string // names of its logs, the newest last
	wrong  string   // what does not fit; empty: everything does
	doubt  string   // the part of it that is about our log
}

var _ Notes = (*Peers)(nil)

// errPeer is what a peer and this node do not agree about.
var errPeer = errors.New("checkpoints do not fit")

// Told takes what a peer says.
func (p *Peers) Told(ctx context.Context, name string, v Vouching) {
	p.mu.Lock()
	if p.peers == nil {
		p.peers = map[string]*peer{}
	}
	who := p.peers[name]
	if who == nil {
		who = &peer{}
		p.peers[name] = who
	}
	p.mu.Unlock()
	who.turn.Lock()
	defer who.turn.Unlock()
	of := who.peerState // only a Told changes it
	of.heard, of.theirs = true, slices.Clone(of.theirs)
	wrong, doubt := "", ""
	for i, take := range []struct {
		notes []string
		one   func(ctx context.Context, name string, of *peerState, text string) error
	}{{v.Held, p.returned}, {v.Notes, p.keep}} {
		for _, text := range take.notes[:min(len(take.notes), mostNotes)] {
			if err := take.one(ctx, name, &of, text); errors.Is(err, errPeer) {
				if wrong = err.Error(); i == 0 {
					doubt = wrong
				}
			} else if err != nil && ctx.Err() == nil {
				p.Logger.WarnContext(ctx, "checkpoints not exchanged; they are exchanged again", slog.String("with", name), slog.Any("error", err))
				return
			}
		}
	}
	if wrong != of.wrong && wrong != "" {
		p.Logger.ErrorContext(ctx, "the audit log is not what another node vouches for", slog.String("node", name), slog.String("detail", wrong))
	}
	of.wrong, of.doubt = wrong, doubt
	p.mu.Lock()
	who.peerState = of
	p.mu.Unlock()
}

// returned compares what a peer holds of our log with the log.
func (p *Peers) returned(ctx context.Context, name string, of *peerState, text string) error {
	c, err := parseNote(text)
	if err != nil || p.Log.Key == nil {
		return nil //nolint:nilerr // it says nothing of our log
	}
	origin, err := p.Log.Origin(ctx)
	if err != nil || origin != c.Origin || c.Size == of.ours.Size && c.Root == of.ours.Root && slices.Equal(c.Keys, of.ours.Keys) {
		return err // a log before a restore is compared by who verifies
	}
	logs, err := p.Store.Logs(ctx)
	if err != nil {
		return err
	}
	if ours, err := p.ours(ctx, &c, logs); err != nil || !ours {
		return err // nobody else can say anything of our log
	}
	i := slices.IndexFunc(logs, func(l *rows.AuditLog) bool { return l.Origin == origin })
	switch {
	case i < 0 || c.Size > logs[i].Size:
		err = fmt.Errorf("%w: %s holds a checkpoint of %d records of this node's log, which has fewer", errPeer, name, c.Size)
	default:
		root, err2 := Root(ctx, p.Store, logs[i].Log, c.Size)
		if err2 != nil && !errors.Is(err2, ErrTree) {
			return err2
		}
		if err2 != nil || root != c.Root {
			err = fmt.Errorf("%w: the first %d records of this node's log are not those of the checkpoint that %s holds", errPeer, c.Size, name)
		}
	}
	of.note = text
	if err != nil { // so that everybody who verifies the store finds it
		return errors.Join(err, p.Store.Contradict(ctx, rowOf(&c, text)))
	}
	of.ours = c // it may be smaller than before: the peer was restored
	return nil
}

// ours reports whether a checkpoint was signed by our key, by one that has handed over to it, or by one to which it has
// handed over: another node that shares the log did that.
func (p *Peers) ours(ctx context.Context, c *Checkpoint, logs []*rows.AuditLog) (bool, error) {
	key := p.Log.Key.Public()
	if slices.Contains(c.Keys, key) {
		return true, nil
	}
	notes, err := handOvers(ctx, p.Store, logs)
	if err != nil {
		return false, err
	}
	known := believed([]Public{key}, keysOf(notes))
	return slices.ContainsFunc(c.Keys, func(k Public) bool { return known[k] }), nil
}

// keep keeps a checkpoint of a peer's log.
func (p *Peers) keep(ctx context.Context, name string, of *peerState, text string) error {
	c, err := parseNote(text)
	owner := ""
	if err == nil && len(c.Origin) <= maxOrigin {
		if owner, err = p.Owner(ctx, c.Origin); err != nil || owner == "" {
			return err // it is sent again
		}
	}
	if owner != name {
		return fmt.Errorf("%w: %s sends what is no checkpoint of its log", errPeer, name)
	}
	known := slices.Contains(of.theirs, c.Origin)
	newest, err := p.Store.Newest(ctx, c.Origin)
	if err != nil {
		return err
	}
	if !known {
		if newest == nil && len(of.theirs) >= mostNotes {
			return fmt.Errorf("%w: %s sends checkpoints of more than %d logs", errPeer, name, mostNotes)
		}
		of.theirs = append(of.theirs, c.Origin)
		of.theirs = of.theirs[max(0, len(of.theirs)-mostNotes):]
	}
	before := int64(0)
	if newest != nil {
		old, err := ParseCheckpoint(newest.Note)
		switch {
		case err != nil:
			return err
		case c.Size == old.Size && c.Root == old.Root && c.Chain == old.Chain && len(c.Keys) > 1 && len(old.Keys) == 1 && c.Keys[0] == old.Keys[0]:
			// The same, and it hands over.
		case c.Size < old.Size, c.Size == old.Size && c.Root == old.Root && c.Chain == old.Chain:
			return nil // it does not know yet what we hold
		case c.Size == old.Size:
			return fmt.Errorf("%w: %s has signed two checkpoints of %d records of %s that differ", errPeer, name, c.Size, c.Origin)
		case !slices.Contains(c.Keys, old.Keys[len(old.Keys)-1]):
			if !known {
				return nil // it will send what hands over to its key, once it has heard what we hold
			}
			return fmt.Errorf("%w: %s signs %s by another key, to which the one before has not handed over", errPeer, name, c.Origin)
		}
		before = old.Size
	}
	return p.Store.Witness(ctx, rowOf(&c, text), before)
}

func parseNote(text string) (Checkpoint, error) {
	if len(text) > maxNote {
		return Checkpoint{}, ErrCheckpoint
	}
	c, err := ParseCheckpoint(text)
	if err == nil && c.Size == 0 {
		err = ErrCheckpoint
	}
	return c, err
}

func rowOf(c *Checkpoint, text string) *rows.AuditCheckpoint {
	return &rows.AuditCheckpoint{Origin: c.Origin, Size: c.Size, Root: slices.Clone(c.Root[:]), Note: text, Seen: rows.Now}
}

// Tell returns what a peer is to be told. origins are its logs, as far as it has named them.
func (p *Peers) Tell(ctx context.Context, name string, origins ...string) (Vouching, error) {
	p.mu.Lock()
	of, heard := p.peers[name], false
	var ours Checkpoint
	if of != nil {
		heard, ours = of.heard, of.ours
		origins = append(slices.Clone(of.theirs), origins...)
	}
	p.mu.Unlock()
	var v Vouching
	slices.Sort(origins)
	for _, origin := range slices.Compact(origins) {
		owner, err := p.Owner(ctx, origin)
		if err != nil {
			return v, err
		}
		if owner != name || len(v.Held) == mostNotes {
			continue
		}
		c, err := p.Store.Newest(ctx, origin)
		if err != nil {
			return v, err
		}
		if c != nil {
			v.Held = append(v.Held, c.Note)
		}
	}
	if !heard {
		return v, nil
	}
	origin, err := p.Log.Origin(ctx)
	if err != nil {
		return v, err
	}
	from := int64(0)
	if ours.Origin == origin {
		from = ours.Size
		if len(ours.Keys) > 1 {
			from++
		}
	}
	c, err := p.Store.Following(ctx, origin, from)
	if err == nil && c != nil && (ours.Origin != origin || c.Size > ours.Size || HandsOver(c.Note)) {
		v.Notes = []string{c.Note}
	}
	return v, err
}

// Each implements Notes, with what the peers have said last.
func (p *Peers) Each(yield func(note string) error) error {
	p.mu.Lock()
	var list []string
	for _, of := range p.peers {
		if of.note != "" {
			list = append(list, of.note)
		}
	}
	p.mu.Unlock()
	for _, text := range list {
		if err := yield(text); err != nil {
			return err
		}
	}
	return nil
}

// Doubt returns what a peer holds that the log does not agree with; "": nothing. A Log can have it as its Doubt.
func (p *Peers) Doubt() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.peers {
		if of.doubt != "" {
			return of.doubt
		}
	}
	return ""
}

// Forget forgets what a peer has said, such as a site that was revoked. What it held and the log did not agree with stays in the store.
func (p *Peers) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.peers, name)
}

// Standing says how many peers vouch for the log, since when the newest checkpoint that one of them holds is true, and what does
// not fit.
func (p *Peers) Standing() (vouch int, at time.Time, wrong []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.peers {
		switch {
		case of.wrong != "":
			wrong = append(wrong, of.wrong)
		case of.ours.Size > 0:
			vouch++
			if of.ours.Time.After(at) {
				at = of.ours.Time
			}
		}
	}
	slices.Sort(wrong)
	return vouch, at, wrong
}
