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
	To       time.Time // when the old one last took a commit of this node; zero: no node has seen its end
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
	text := fmt.Sprintf("the database has another history: it was %s and is %s, as after a failover or a restore; what was acknowledged between %s and %s may be gone",
		g.Was, g.Now, g.From.UTC().Format(time.RFC3339), to)
	if g.Standbys != "" {
		text += fmt.Sprintf(", unless the new server is one of the synchronous standbys that commits waited for (%s)", g.Standbys)
	}
	return text
}

// noted is the row gap of hf_meta: the first node that sees one writes it, since
// later the clock of the new history tells no more how far that reached.
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
	system, now, to, with := p.line.system, p.text(), p.last, p.wasWith
	p.mu.Unlock()
	switch {
	case system == "": // the server does not tell
		return nil
	case l.noted == now:
		p.tell(nil)
		return nil
	case l.noted == "":
		return db.read(ctx, noteFirst, []any{now}, func(pgx.Rows) error { return nil })
	}
	var n noted
	if json.Unmarshal([]byte(l.gap), &n) != nil || n.History != now {
		from := l.raw
		if n.From > 0 { // nobody has acknowledged the one before
			from = min(from, n.From)
		}
		n = noted{History: now, From: from, Standbys: with}
		if !to.IsZero() {
			n.To = to.UnixMicro()
		}
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if err := db.read(ctx, noteGap, []any{string(text), l.gap}, func(pgx.Rows) error { return nil }); err != nil {
			return fmt.Errorf("note another history: %w", err)
		}
	}
	g := n.gap(l.noted)
	if p.tell(g) {
		db.log.WarnContext(ctx, "the database has another history: acknowledged messages may be gone", slog.String("was", g.Was), slog.String("is", g.Now),
			slog.Time("from", g.From), slog.Time("to", g.To), slog.String("synchronous_standbys", g.Standbys))
	}
	return nil
}

func (n *noted) gap(was string) *Gap {
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
	if s.system == "" || l.noted == "" || l.noted == now {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	var n noted
	if json.Unmarshal([]byte(l.gap), &n) != nil || n.History != now {
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

// Acknowledge notes that somebody knows of the present history: no node tells of
// it any more.
func (db *DB) Acknowledge(ctx context.Context) error {
	if err := db.usable(ctx); err != nil {
		return fmt.Errorf("acknowledge the history: %w", err)
	}
	p := db.past
	p.mu.Lock()
	now, turn := p.text(), p.turn
	p.mu.Unlock()
	if err := db.own(ctx, func(tx *ownTx) error {
		if err := tx.still(turn); err != nil {
			return err
		}
		if err := tx.exec(noteAgain, now); err != nil {
			return err
		}
		return tx.exec(dropGap)
	}); err != nil {
		return fmt.Errorf("acknowledge the history: %w", err)
	}
	p.tell(nil)
	return nil
}
