package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// line is the log of one server, or of several that each continued where the one before ended. A
// promotion, and a restore to a point in time, begin another timeline. Two standbys of one primary
// that are both promoted give their timelines the same number. Their branches tell them apart.
type line struct{ system, timeline, branch string }

// before reports whether a server of o has continued from a server of l.
func (l line) before(o line) bool { return l.system == o.system && l.timeline < o.timeline }

// leadsTo reports whether a server of o is one of l, or has continued from it.
func (l line) leadsTo(o line) bool {
	return l.before(o) || l.unnamed() == o.unnamed() && (l.branch == "" || l.branch == o.branch)
}

// unnamed returns the line without its branch, which is adopted by a heartbeat only.
func (l line) unnamed() line { return line{system: l.system, timeline: l.timeline} }

func (l line) text(tables string) string {
	return l.system + " " + l.timeline + " " + tables + " " + l.branch
}

// number formats a timeline for people.
func number(timeline string) string { return strings.TrimLeft(timeline, "0") }

func (s server) line() line { return line{s.system, s.timeline, s.branch} }

// branch is the row "branch" of hf_meta: "system timeline name start". The first node on a timeline
// writes it. A standby takes over the row of its primary, which names an earlier timeline, so each
// promoted standby gets a name of its own.
type branch struct {
	of    line // unnamed: what the name is valid for
	name  string
	start int64 // the last time, by the database's clock, that a node wrote before the timeline began
}

const (
	findBranch = `coalesce((SELECT value FROM hf_meta WHERE key = 'branch'), '')`
	readBranch = `SELECT ` + findBranch
	// nameBranch: a server that answers in the meantime may be at another timeline.
	nameBranch = `INSERT INTO hf_meta (key, value) SELECT 'branch', $1::text || ' ' || $2::text || ' ' || $3::text || ' ' || raw
		FROM hf_clock WHERE left(pg_walfile_name(pg_current_wal_lsn()), 8) = $2
		ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE NOT starts_with(hf_meta.value, $1 || ' ' || $2 || ' ')`
)

// parseBranch reads the row. It treats an unreadable row as none.
func parseBranch(text string) (b branch) {
	parts := strings.Fields(text)
	if len(parts) != 4 {
		return b
	}
	start, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return b
	}
	return branch{line{system: parts[0], timeline: parts[1]}, parts[2], start}
}

// nameBranch names the branch, unless another node has.
func (db *DB) nameBranch(ctx context.Context, on line) error {
	name := strings.ToLower(rand.Text()[:10])
	if err := db.read(ctx, nameBranch, []any{on.system, on.timeline, name}, func(pgx.Rows) error { return nil }); err != nil {
		return fmt.Errorf("name the branch of the database: %w", err)
	}
	return nil
}

// stands returns the number of this history, how often it was acknowledged, and its line without the branch.
func (p *past) stands() (turn, acks uint64, on line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.acks, p.line.unnamed()
}

// sharesLine reports whether a server belongs to this history. Until a heartbeat has adopted a
// branch, each of the timeline does. It is called with the lock held.
func (p *past) sharesLine(now line) bool {
	return now == p.line || p.line.branch == "" && now.unnamed() == p.line
}

// other returns the line of this history if the server belongs to another one, and its timeline
// does not tell which of the two counts. Otherwise it returns the zero line.
func (p *past) other(s server) line {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.line()
	if now.system == "" || p.line.system == "" || now.system == p.line.system && now.timeline != p.line.timeline || p.sharesLine(now) {
		return line{}
	}
	return p.line
}

// silent returns for how long no server of this history has answered, and whether that is long
// enough to follow another one.
func (p *past) silent() (since time.Duration, away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since = time.Since(p.heard)
	return since, since > p.away
}

// besides explains why a server is refused while the server of l takes writes.
func besides(s server, l line) error {
	if s.system != l.system {
		return fmt.Errorf("%w: the server is of system %s, and the store is on system %s, which also takes writes; name only one of them in the address", ErrReadOnly, s.system, l.system)
	}
	return fmt.Errorf("%w: the server and the one that the store is on were both promoted to timeline %s, and both take writes; stop one of them", ErrReadOnly, number(l.timeline))
}

// forked reports whether two histories differ in their branch only.
func forked(was, now string) bool {
	i, j := strings.LastIndexByte(was, ' '), strings.LastIndexByte(now, ' ')
	return i > 0 && j > 0 && was[:i] == now[:j] && was != now
}

// goesOn refuses a transaction on a server of another timeline or branch. An old primary has the
// same tables, but what it stores is lost. Otherwise the store may not have heard of that server
// yet: it looks for it now, because its own connections may stay at an old primary that still
// answers.
func (p *past) goesOn(timeline, text string) error {
	b := parseBranch(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.line.timeline == "":
		return nil
	case timeline < p.line.timeline:
		return fmt.Errorf("%w: the transaction is on an old primary, at timeline %s, and the store on a server at timeline %s", holdfast.ErrUnavailable, number(timeline), number(p.line.timeline))
	case timeline > p.line.timeline:
		ring(p.behind)
		return fmt.Errorf("%w: the transaction is on a server at timeline %s, and the store still on one at timeline %s; it looks at its address now: run the transaction again", holdfast.ErrUnavailable, number(timeline), number(p.line.timeline))
	case p.line.branch != "" && (b.of != p.line.unnamed() || b.name != p.line.branch):
		ring(p.behind)
		return fmt.Errorf("%w: the transaction and the store are on two servers that were both promoted to timeline %s; stop one of them, and run the transaction again", holdfast.ErrUnavailable, number(timeline))
	}
	return nil
}
