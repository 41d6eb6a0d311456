package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Gap means that the database has another history than the last one that was acknowledged: a
// standby was promoted, or a backup was restored. What the store acknowledged between From and To
// may be gone.
type Gap struct {
	Was, Now string    // the histories, for people
	From     time.Time // the new history has at least what was committed until then, by the database's clock
	To       time.Time // the last commit in the old history, of a node that saw its end; zero: no node did
	// Standbys are the synchronous standbys for which the old server waited at each commit; one of
	// them lacks nothing. Empty means that it waited for none, or that no node has seen its end.
	Standbys string
}

func (g *Gap) String() string {
	to := "the end of the old history"
	if !g.To.IsZero() {
		to = g.To.UTC().Format(time.RFC3339)
	}
	what := fmt.Sprintf("the database has another history: it was %s and is %s, as after a failover or a restore", g.Was, g.Now)
	if g.Was == g.Now {
		what = fmt.Sprintf("the database was put back within its history (%s), as by a snapshot of its disk", g.Now)
	}
	text := fmt.Sprintf("%s; what was acknowledged between %s and %s may be gone", what, g.From.UTC().Format(time.RFC3339), to)
	if g.Standbys != "" {
		text += fmt.Sprintf(", unless the new server is one of the synchronous standbys that commits waited for (%s)", g.Standbys)
	}
	return text
}

// noted is the row "gap" of hf_meta. The first node that sees a gap writes it, because later the
// clock of the new history no longer tells how far that history reached. Nodes that have seen the
// end of the old history add to it.
type noted struct {
	History  string `json:"history"`
	Was      string `json:"was,omitempty"` // the history before, if it is not the row "history"
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	Standbys string `json:"standbys"`
}

const (
	noteFirst = `INSERT INTO hf_meta (key, value) VALUES ('history', $1) ON CONFLICT (key) DO NOTHING`
	noteGap   = `INSERT INTO hf_meta (key, value) VALUES ('gap', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE hf_meta.value = $2`
	noteAgain = `INSERT INTO hf_meta (key, value) VALUES ('history', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	dropGap   = `DELETE FROM hf_meta WHERE key = 'gap'`
)

// noteHistory compares this history with the acknowledged one, which the database itself keeps, and
// records what may be missing.
func (db *DB) noteHistory(ctx context.Context, l *look) error {
	p := db.past
	p.mu.Lock()
	system, now, before, ended, with, untold := p.line.system, p.text(), p.before, p.ended, p.wasWith, p.untold
	p.mu.Unlock()
	had := parseNoted(l.gap)
	switch {
	case system == "": // the server does not identify itself
		return nil
	case l.noted == "":
		return db.read(ctx, noteFirst, []any{now}, func(pgx.Rows) error { return nil })
	case l.noted == now && had.History != now && !untold:
		p.tell(nil, l.acks)
		return nil
	}
	from, was := l.raw, ""
	if untold && forked(before, now) {
		from, was = min(from, l.start), before
	}
	n := had.merge(now, was, from, ended, with)
	if n != had {
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if err := db.read(ctx, noteGap, []any{string(text), l.gap}, func(pgx.Rows) error { return nil }); err != nil {
			return fmt.Errorf("note another history: %w", err)
		}
	}
	p.noted()
	g := n.gap(l.noted)
	if p.tell(g, l.acks) {
		attrs := []slog.Attr{slog.String("was", g.Was), slog.String("is", g.Now), slog.Time("from", g.From)}
		if !g.To.IsZero() { // nobody knows yet when the old history has ended
			attrs = append(attrs, slog.Time("to", g.To))
		}
		db.log.LogAttrs(ctx, slog.LevelWarn, "the database has another history: acknowledged messages may be gone", append(attrs, slog.String("synchronous_standbys", g.Standbys))...)
	}
	return nil
}

// parseNoted reads the row. It treats an unreadable row as empty.
func parseNoted(text string) (n noted) {
	if json.Unmarshal([]byte(text), &n) != nil {
		return noted{}
	}
	return n
}

// merge adds the knowledge of one node: the history that it sees, the one before if the database
// does not tell it, the instant until which the two agree, and the end and the standbys of the
// history before.
func (n noted) merge(now, was string, from int64, ended time.Time, with string) noted {
	to := int64(0)
	if !ended.IsZero() {
		to = ended.UnixMicro()
	}
	switch n.History {
	case now:
		n.From, n.To = min(n.From, from), max(n.To, to)
		return n
	case "":
		return noted{History: now, Was: was, From: from, To: to, Standbys: with}
	}
	m := noted{History: now, Was: n.Was, From: min(from, n.From), To: to} // nobody has acknowledged the history before
	if n.Standbys != "" {
		m.Standbys = with
	}
	return m
}

// noted means that the database now records the change.
func (p *past) noted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.untold = false
}

func (n noted) gap(was string) *Gap {
	g := &Gap{Was: ofPeople(cmp.Or(n.Was, was)), Now: ofPeople(n.History), From: time.UnixMicro(n.From), Standbys: n.Standbys}
	if n.To != 0 {
		g.To = time.UnixMicro(n.To)
	}
	return g
}

// inspectGap finds a history that nobody has acknowledged, even one that no node has met yet.
func inspectGap(ctx context.Context, conn *pgx.Conn) (*Gap, error) {
	var l look
	if err := l.scan(conn.QueryRow(ctx, readPast)); err != nil {
		return nil, err
	}
	s := serverOf(conn).line()
	now := s.text(l.tables)
	n := parseNoted(l.gap)
	if s.system == "" || l.noted == "" || l.noted == now && n.History != now {
		return nil, nil //nolint:nilnil // no gap, which is not an error
	}
	if n.History != now {
		n = noted{History: now, From: l.raw}
	}
	return n.gap(l.noted), nil
}

// acknowledged records that operators know of the gap.
func (p *past) acknowledged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acks++
	p.gap = nil
}

// tell records what operators need to know, and reports whether it is news. What was read before
// somebody acknowledged a gap says nothing.
func (p *past) tell(g *Gap, acks uint64) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acks != acks {
		return false
	}
	news = g != nil && (p.gap == nil || *p.gap != *g)
	p.gap = g
	return news
}

// ofPeople writes a history for people.
func ofPeople(text string) string {
	parts, i := strings.SplitN(text, " ", 3), strings.LastIndexByte(text, ' ')
	if len(parts) != 3 || i < len(text)-len(parts[2]) {
		return text
	}
	return fmt.Sprintf("timeline %s (branch %s) of system %s, tables %s", number(parts[1]), text[i+1:], parts[0], text[len(text)-len(parts[2]):i])
}

// Gap returns the change of history that nobody has acknowledged, or nil.
func (db *DB) Gap() *Gap {
	p := db.past
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gap
}

// Acknowledge records that an operator knows about the Gap. After that no node reports it. It does
// not acknowledge a later Gap.
func (db *DB) Acknowledge(ctx context.Context) error {
	if err := db.usable(ctx); err != nil {
		return fmt.Errorf("acknowledge the history: %w", err)
	}
	g := db.Gap()
	if g == nil {
		return nil
	}
	if err := db.own(ctx, func(tx *ownTx) error {
		now, err := db.past.shown(tx.turn, g)
		if err != nil {
			return err
		}
		if err := tx.exec(noteAgain, now); err != nil {
			return err
		}
		return tx.exec(dropGap)
	}); err != nil {
		return fmt.Errorf("acknowledge the history: %w", err)
	}
	db.past.acknowledged()
	return nil
}

// shown returns the history of a turn, if it is the one that a gap is about.
func (p *past) shown(turn uint64, g *Gap) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != turn || p.tables == "" || ofPeople(p.text()) != g.Now {
		return "", errStale
	}
	return p.text(), nil
}
