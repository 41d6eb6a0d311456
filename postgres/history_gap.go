package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Gap says that the database has another history than the one that people know
// of: a standby was promoted, or a backup restored. What was acknowledged
// between From and To may be gone.
type Gap struct {
	Was, Now string    // the histories, for people
	From     time.Time // the new history has at least what was committed until then, by the database's clock
	To       time.Time // when the old one last took a commit of a node that saw its end; zero: none has
	// Standbys are the synchronous standbys for which the server of before
	// waited at each commit: one of them lacks nothing. "": it waited for none,
	// or no node has seen its end.
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

// noted is the row gap of hf_meta: the first node that sees one writes it, since
// later the clock of the new history tells no more how far that reached. Others
// add when they have seen the end of the old one.
type noted struct {
	History  string `json:"history"`
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

// noteHistory compares this history with the one that people know of, which the
// database itself keeps, and notes what may be missing in it.
func (db *DB) noteHistory(ctx context.Context, l *look) error {
	p := db.past
	p.mu.Lock()
	system, now, ended, with, rolled := p.line.system, p.text(), p.ended, p.wasWith, p.rolled
	p.mu.Unlock()
	had := parseNoted(l.gap)
	switch {
	case system == "": // the server does not tell
		return nil
	case l.noted == "":
		return db.read(ctx, noteFirst, []any{now}, func(pgx.Rows) error { return nil })
	case l.noted == now && had.History != now && !rolled:
		p.tell(nil)
		return nil
	}
	n := had.merge(now, l.raw, ended, with)
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
	if p.tell(g) {
		attrs := []slog.Attr{slog.String("was", g.Was), slog.String("is", g.Now), slog.Time("from", g.From)}
		if !g.To.IsZero() { // nobody knows yet when the one before has ended
			attrs = append(attrs, slog.Time("to", g.To))
		}
		db.log.LogAttrs(ctx, slog.LevelWarn, "the database has another history: acknowledged messages may be gone", append(attrs, slog.String("synchronous_standbys", g.Standbys))...)
	}
	return nil
}

// parseNoted reads the row; what cannot be read is none.
func parseNoted(text string) (n noted) {
	if json.Unmarshal([]byte(text), &n) != nil {
		return noted{}
	}
	return n
}

// merge adds to what is noted what one node knows: the history that it sees, the
// clock in it, and the end and the standbys of the one before.
func (n noted) merge(now string, raw int64, ended time.Time, with string) noted {
	to := int64(0)
	if !ended.IsZero() {
		to = ended.UnixMicro()
	}
	switch n.History {
	case now:
		n.To = max(n.To, to)
		return n
	case "":
		return noted{History: now, From: raw, To: to, Standbys: with}
	}
	m := noted{History: now, From: min(raw, n.From), To: to} // nobody has acknowledged the one before
	if n.Standbys != "" {
		m.Standbys = with
	}
	return m
}

// noted says that it is in the database that the log has become shorter.
func (p *past) noted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rolled = false
}

func (n noted) gap(was string) *Gap {
	g := &Gap{Was: ofPeople(was), Now: ofPeople(n.History), From: time.UnixMicro(n.From), Standbys: n.Standbys}
	if n.To != 0 {
		g.To = time.UnixMicro(n.To)
	}
	return g
}

// inspectGap tells of a history that nobody has acknowledged, also one that no
// node has met yet.
func inspectGap(ctx context.Context, conn *pgx.Conn) (*Gap, error) {
	var l look
	if err := conn.QueryRow(ctx, readPast).Scan(&l.tables, &l.table, &l.noted, &l.gap, &l.with, &l.wal, &l.raw); err != nil {
		return nil, err
	}
	s := serverOf(conn).line()
	now := s.system + " " + s.timeline + " " + l.tables
	n := parseNoted(l.gap)
	if s.system == "" || l.noted == "" || l.noted == now && n.History != now {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if n.History != now {
		n = noted{History: now, From: l.raw}
	}
	return n.gap(l.noted), nil
}

// tell notes what people are to know, and says whether it is news.
func (p *past) tell(g *Gap) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = g != nil && (p.gap == nil || *p.gap != *g)
	p.gap = g
	return news
}

// ofPeople writes a history for people: its tables are told by their beginning.
func ofPeople(text string) string {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return text
	}
	return fmt.Sprintf("timeline %s of system %s, tables %s", number(parts[1]), parts[0], parts[2])
}

// Gap tells of a history that nobody has acknowledged; nil: there is none.
func (db *DB) Gap() *Gap {
	p := db.past
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gap
}

// Acknowledge notes that somebody knows of what Gap tells: no node tells of it
// any more. What has come after that is not acknowledged with it.
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
	db.past.tell(nil)
	return nil
}

// shown is the history of a turn, if it is the one that a gap tells of.
func (p *past) shown(turn uint64, g *Gap) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != turn || p.tables == "" || ofPeople(p.text()) != g.Now {
		return "", errStale
	}
	return p.text(), nil
}
