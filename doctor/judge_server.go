package doctor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/postgres"
)

// Bounds of what a database server is expected to have.
const (
	openLong = 15 * time.Minute
	manyDead = 100_000
	fewLeft  = 10 // connections
)

// judgeServer judges a PostgreSQL database that replaces the data folder.
func judgeServer(f *Findings) []Check {
	const g = in("PostgreSQL")
	s := f.Server
	if s.Err != nil {
		return []Check{g.failing("connection", s.Err.Error(), "check whether the server runs, and check the address "+s.Address)}
	}
	i := &s.Server
	if errors.Is(s.Refused, postgres.ErrPooler) {
		return []Check{g.failing("connection", s.Refused.Error(), "use pool_mode = session, or the server's own address")}
	}
	how := "no TLS"
	if s.SSLMode != "" {
		how = "sslmode=" + s.SSLMode
	}
	checks := []Check{g.ok("connection", fmt.Sprintf("%s: database %s as role %s at %s, %s", s.Address, i.Database, i.Role, i.Address, how))}
	if s.Remote && s.SSLMode != "verify-full" {
		checks[0] = g.warning("connection", checks[0].Detail+": nothing makes sure who answers", "use sslmode=verify-full, with sslrootcert if its CA is your own")
	}
	checks = append(checks, judgeRelease(g, f), judgeTables(g, s), judgeCommits(g, i))
	if i.Pooled {
		checks = append(checks, g.ok("pooler", "something in between keeps sessions: the server process is not the one that the address promises"))
	} else {
		checks = append(checks, g.ok("pooler", "none"))
	}
	return append(checks, judgeConnections(g, i), judgeServerClock(g, i), judgeHolders(g, i), judgeDead(g, i), judgeHistory(g, s), judgeNodes(g, s))
}

// judgeRelease judges the age of the release. A major release appears in autumn, and gets its last fixes in
// November five years later. Release 14 appeared in 2021.
func judgeRelease(g in, f *Findings) Check {
	version := f.Server.Server.Version
	if errors.Is(f.Server.Refused, postgres.ErrTooOld) {
		return g.failing("version", f.Server.Refused.Error(), "upgrade the server; nothing was changed")
	}
	digits, _, _ := strings.Cut(version, ".")
	major, err := strconv.Atoi(digits)
	if last := time.Date(2012+major, time.November, 15, 0, 0, 0, 0, time.UTC); err == nil && f.Now.After(last) {
		return g.warning("version", "PostgreSQL "+version+" has had no fixes since "+last.Format("January 2006"), "upgrade the server to a release that is supported")
	}
	return g.ok("version", "PostgreSQL "+version)
}

func judgeTables(g in, s *ServerFound) Check {
	const name = "tables"
	switch {
	case errors.Is(s.Refused, postgres.ErrTooOld):
		return g.skipped(name, "not looked at")
	case errors.Is(s.Refused, postgres.ErrRights):
		return g.failing(name, s.Refused.Error(), "grant that right, or make the tables with a role that has it: holdfast migrate up")
	case s.Refused != nil:
		return g.failing(name, s.Refused.Error(), "a node does not start with it; nothing was changed")
	case s.Schema == 0:
		return g.ok(name, fmt.Sprintf("none yet; the first start makes those of schema %d", s.Newest))
	case s.Schema < s.Newest:
		return g.ok(name, fmt.Sprintf("schema %d; the next start of this release, or holdfast migrate up, brings it to %d", s.Schema, s.Newest))
	}
	return g.ok(name, fmt.Sprintf("schema %d, that of this release; all rights are given; %s", s.Schema, size(s.Server.Size))).with("bytes", float64(s.Server.Size))
}

func judgeCommits(g in, i *postgres.ServerInfo) Check {
	const name = "commits"
	detail := fmt.Sprintf("synchronous_commit=%s, fsync=%s, full_page_writes=%s", i.SynchronousCommit, onOff(i.Fsync), onOff(i.FullPageWrites))
	switch {
	case !i.Fsync || !i.FullPageWrites:
		return g.failing(name, detail+": a crash of the server may lose or damage what it has acknowledged, so a node does not start",
			"set fsync and full_page_writes to on in postgresql.conf")
	case i.SynchronousCommit != "on" && i.SynchronousCommit != "remote_apply":
		return g.failing(name, detail+": a commit is acknowledged before it is on the disk", "find out whether this role, the database or a pooler sets synchronous_commit")
	case i.SynchronousWith == "":
		return g.ok(name, detail+"; no commit waits for a standby: a failover may lose the last moments")
	}
	return g.ok(name, detail+"; commits wait for "+i.SynchronousWith)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func judgeConnections(g in, i *postgres.ServerInfo) Check {
	c := g.ok("connections", fmt.Sprintf("%d of %d are in use", i.Connections, i.Most))
	if i.Most-i.Connections < fewLeft {
		c = g.warning(c.Name, c.Detail, "raise max_connections, or find who uses them; a node uses up to 17")
	}
	return c.with("taken", float64(i.Connections)).with("most", float64(i.Most))
}

func judgeServerClock(g in, i *postgres.ServerInfo) Check {
	c := g.ok("clock of the server", fmt.Sprintf("within %s of this machine's", span(max(i.ClockAhead.Abs(), i.ClockDoubt, time.Millisecond))))
	if off := i.ClockAhead.Abs() - i.ClockDoubt; off > clockOff {
		side := "ahead of"
		if i.ClockAhead < 0 {
			side = "behind"
		}
		c = g.warning(c.Name, fmt.Sprintf("%s %s this machine's: the server's decides what is due and who is alive, this machine's decides about signatures", span(off), side),
			"keep both with NTP")
	}
	return c.with("aheadSeconds", i.ClockAhead.Seconds())
}

func judgeHolders(g in, i *postgres.ServerInfo) Check {
	var items []string
	for _, h := range i.Holders {
		items = append(items, fmt.Sprintf("%s %s, %s, %s behind", h.Kind, h.Who, span(h.Age), brief.Count(h.Back, "transaction", "transactions")))
	}
	c := g.ok("oldest transaction", "no transaction is open for long")
	if i.Hidden > 0 {
		c.Detail += fmt.Sprintf("; the age of %d of other roles is not visible (GRANT pg_read_all_stats)", i.Hidden)
	}
	if i.Oldest() > openLong {
		c = g.warning(c.Name, fmt.Sprintf("open for %s: meanwhile no dead row is removed, and claims become slower", span(i.Oldest())), "end it").listing(items)
	}
	return c.with("seconds", i.Oldest().Seconds())
}

func judgeDead(g in, i *postgres.ServerInfo) Check {
	q := i.Queue()
	c := g.ok("dead rows", fmt.Sprintf("the queue has %d, and %d live ones", q.Dead, q.Live))
	if q.Dead > manyDead && q.Dead > 2*q.Live {
		c = g.warning(c.Name, c.Detail, "end the oldest transaction if there is one; else check whether autovacuum is on and keeps up")
	}
	return c.with("dead", float64(q.Dead)).with("live", float64(q.Live))
}

func judgeHistory(g in, s *ServerFound) Check {
	if s.Gap == nil {
		return g.ok("history", "acknowledged")
	}
	return g.warning("history", s.Gap.String(), "have senders send again what they have sent since, with the same ids; then holdfast acknowledge")
}

func judgeNodes(g in, s *ServerFound) Check {
	var items []string
	alive := 0
	for _, n := range s.Nodes {
		state := "its lease is over, and others take over"
		if n.Left > 0 {
			state = "alive, heard of " + span(n.Heard) + " ago"
			alive++
		}
		items = append(items, fmt.Sprintf("%s: %s, %s", n.Name, n.About, state))
	}
	return g.ok("nodes", fmt.Sprintf("%d alive", alive)).listing(items).with("alive", float64(alive))
}
