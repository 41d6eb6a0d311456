package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

func begun() *past {
	p := newPast(func() {})
	_ = p.met(server{system: "1", timeline: "00000001"})
	_, _ = p.adopt(0, &look{tables: "t", table: 7, wal: 100, with: "other"})
	return p
}

// F1-121: what a look at the hosts finds is no new connection, which asks for another look.
func TestALookAtTheHostsAsksForNoOther(t *testing.T) {
	t.Parallel()
	p, s := begun(), server{system: "1", timeline: "00000002"}
	if err := p.met(s); err != nil || len(p.dialed) != 0 {
		t.Errorf("a look: %v, and %d are asked for", err, len(p.dialed))
	}
	if err := p.welcome(t.Context(), nil, s); err != nil || len(p.dialed) != 1 {
		t.Errorf("a connection: %v, and %d looks are asked for", err, len(p.dialed))
	}
	if err := p.welcome(t.Context(), nil, server{system: "1", timeline: "00000001"}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a server from which another has gone on: %v", err)
	}
	if got := p.other(server{system: "2", timeline: "00000009"}); got.system != "1" {
		t.Errorf("a server of another system: the present one is %+v", got)
	}
}

// F1-121: until a heartbeat has adopted a branch, a server of either is one of the
// history; after that only one of the same branch is.
func TestBranchesOfOneTimeline(t *testing.T) {
	t.Parallel()
	p := begun()
	for _, name := range []string{"", "x", "y"} {
		if s := (server{system: "1", timeline: "00000001", branch: name}); p.other(s) != (line{}) || p.met(s) != nil || p.line.branch != "" {
			t.Errorf("before: branch %q is another history, or is adopted", name)
		}
	}
	l := look{tables: "t", table: 7, wal: 100, branch: branch{name: "x"}}
	if turn, err := p.adopt(0, &l); turn != 0 || err != nil {
		t.Errorf("the first name begins history %d, %v", turn, err)
	}
	for name, same := range map[string]bool{"": false, "x": true, "y": false} {
		l := line{system: "1", timeline: "00000001", branch: name}
		if p.sharesLine(l) != same || p.line.leadsTo(l) != same || (p.other(server{system: "1", timeline: "00000001", branch: name}) == line{}) != same {
			t.Errorf("branch %q: want it to belong to the history: %t", name, same)
		}
	}
	l.name = "y"
	if turn, err := p.adopt(0, &l); turn != 1 || err != nil || !p.untold {
		t.Errorf("another name of the same connection: history %d, %v", turn, err)
	}
}

// F1-130: a node that cannot enter does not try at each call, and drops its connections once.
func TestARefusedEntryIsNotTriedAtOnce(t *testing.T) {
	t.Parallel()
	p := begun()
	_ = p.met(server{system: "1", timeline: "00000002"})
	turn, _ := p.is()
	if !p.drops(turn) || p.drops(turn) {
		t.Error("want the old connections dropped once")
	}
	if p.refused(turn, time.Hour); !p.pauses() {
		t.Error("the entry was refused, and is tried at once")
	}
	_ = p.met(server{system: "1", timeline: "00000003"})
	if p.refused(turn, time.Hour); p.pauses() {
		t.Error("the entry into another history waits for the one before")
	}
}

// F1-125: a log that has become shorter is another history of the same name.
func TestALogThatBecameShorterIsNoted(t *testing.T) {
	t.Parallel()
	p := begun()
	if turn, err := p.adopt(0, &look{tables: "t", wal: 99}); err != nil || turn != 1 || !p.untold {
		t.Errorf("got turn %d, %v, noted %v", turn, err, p.untold)
	}
	if p.noted(); p.untold {
		t.Error("it is told once more")
	}
}

// F1-125: what several nodes know of the end of a history, and several histories that
// nobody has acknowledged.
func TestWhatNodesKnowOfAGap(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro
	first := noted{}.merge("b", "", 100, at(150), "standby")
	for what, c := range map[string]struct{ got, want noted }{
		"the first":                         {first, noted{History: "b", From: 100, To: 150, Standbys: "standby"}},
		"one that saw a later end":          {first.merge("b", "", 300, at(170), ""), noted{History: "b", From: 100, To: 170, Standbys: "standby"}},
		"one that saw an earlier end":       {first.merge("b", "", 300, at(140), ""), first},
		"one that saw none":                 {first.merge("b", "", 300, time.Time{}, ""), first},
		"another history":                   {first.merge("c", "", 200, at(250), "more"), noted{History: "c", From: 100, To: 250, Standbys: "more"}},
		"another, whose clock is behind":    {first.merge("c", "", 50, at(250), "more"), noted{History: "c", From: 50, To: 250, Standbys: "more"}},
		"another after one without standby": {noted{}.merge("b", "", 100, at(150), "").merge("c", "", 200, at(250), "more"), noted{History: "c", From: 100, To: 250, Standbys: ""}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, c.got, c.want)
		}
	}
}

// F1-125: only what was shown is acknowledged.
func TestWhatWasShownIsAcknowledged(t *testing.T) {
	t.Parallel()
	p := begun()
	g := &Gap{Now: ofPeople(p.text())}
	if text, err := p.shown(0, g); err != nil || text != p.text() {
		t.Errorf("got %q, %v", text, err)
	}
	_ = p.met(server{system: "1", timeline: "00000002"})
	for turn := range uint64(2) {
		if text, err := p.shown(turn, g); !errors.Is(err, errStale) {
			t.Errorf("turn %d: got %q, %v", turn, text, err)
		}
	}
}

// F1-124: numbers of a history that is over are looked up once more, and no more than that.
func TestNumbersAreLookedUpOnceMore(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for _, c := range []struct {
		errs []error
		want error
		ran  int
	}{{[]error{nil}, nil, 1}, {[]error{other}, other, 1}, {[]error{errStale, nil}, nil, 2}, {[]error{errStale, errStale, nil}, errStale, 2}} {
		ran := 0
		err := anew(func() error {
			ran++
			return c.errs[ran-1]
		})
		if ran != c.ran || !errors.Is(err, c.want) {
			t.Errorf("%v: ran %d times, %v", c.errs, ran, err)
		}
	}
}

// F1-130: a claim that is under way when a history ends holds nothing in the next one.
func TestAClaimOfAnotherHistoryHoldsNothing(t *testing.T) {
	t.Parallel()
	db := &DB{}
	db.claim.drop(5)
	k := &taking{db: db, owner: 5, number: db.claim.next(), rows: []taken{{hold: hold{owner: 5, suspect: true}}}}
	k.hold()
	db.claim.forget()
	late := &taking{db: db, owner: 5, number: k.number, rows: slices.Clone(k.rows)}
	late.hold()
	db.claim.lose(5, k.number)
	if c := &db.claim; !late.late || len(c.held) != 0 || c.suspect != 0 || len(c.lost) != 0 {
		t.Errorf("in hand are %v, suspects %d, lost %v", c.held, c.suspect, c.lost)
	}
}

// F1-124: names that were looked up in another history are not used in a transaction
// of this one. A caller's own transaction is judged by its server.
func TestNumbersOfAnotherHistoryAreRefused(t *testing.T) {
	t.Parallel()
	p := &part{turn: 1}
	for turn, want := range []error{errStale, nil, errStale} {
		if err := p.still(uint64(turn)); !errors.Is(err, want) {
			t.Errorf("numbers of history %d: %v", turn, err)
		}
	}
	if err := (&part{joined: true}).still(1); err != nil {
		t.Errorf("a caller's own transaction: %v", err)
	}
}

// F1-120: a caller's transaction is refused at an old primary, and at a later
// server until the store has followed; only of the later one it has to hear.
func TestWhereACallersTransactionGoesOn(t *testing.T) {
	t.Parallel()
	for timeline, c := range map[string]struct {
		want string
		bell int
	}{
		"00000001": {"an old primary", 0},
		"00000002": {"", 0},
		"00000003": {"run the transaction again", 1},
	} {
		p := newPast(func() {})
		if err := p.goesOn(timeline, ""); err != nil {
			t.Errorf("before any server has told: %v", err)
		}
		_ = p.met(server{system: "1", timeline: "00000002"})
		for range 2 {
			err := p.goesOn(timeline, "")
			if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("at timeline %s: %v", timeline, err)
			}
		}
		if len(p.behind) != c.bell {
			t.Errorf("at timeline %s %d looks are asked for", timeline, len(p.behind))
		}
	}
}

// F1-121: a heartbeat that has read of a gap before somebody acknowledged it does not tell of it after that.
func TestAnAcknowledgedGapIsNotToldAgain(t *testing.T) {
	t.Parallel()
	p, g := begun(), &Gap{Was: "a", Now: "b"}
	_, before, _ := p.stands()
	if !p.tell(g, before) || p.gap == nil {
		t.Fatal("a gap is not told")
	}
	p.acknowledged()
	if p.tell(g, before) || p.gap != nil {
		t.Error("what was read before is told after it was acknowledged")
	}
	if _, now, _ := p.stands(); !p.tell(g, now) {
		t.Error("what is read after it is not told")
	}
}
