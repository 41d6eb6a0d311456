package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/metrics"
	"github.com/holdfast-mq/holdfast/postgres"
)

// askEvery is how often the node asks the server about itself, for health and metrics.
const askEvery = 5 * time.Second

// shared is a PostgreSQL database that other nodes may use at the same time.
type shared struct {
	db   *postgres.DB
	seen atomic.Pointer[serverSeen] // nil: not asked yet
}

// serverSeen is the server's last answer.
type serverSeen struct {
	server postgres.ServerInfo
	nodes  []postgres.NodeInfo
	err    error // why it did not answer
}

func openPostgres(ctx context.Context, c *config.Config, o holdfast.Observer, log *slog.Logger) (store, special, error) {
	db, err := postgres.Open(ctx, c.Store.DSN(), postgres.Options{
		Source: c.Source(), Node: c.Node.ID, Lease: c.Lease, ClockHold: c.ClockHold, Observer: o, Logger: log,
	})
	if err != nil {
		return nil, special{}, ofStore(c, err)
	}
	s := &shared{db: db}
	return db, special{
		place:   c.Store.String(),
		parts:   []run.Part{{Name: "database", Run: s.watch}},
		present: func() error { return nil }, // every call to the server shows whether it is there
		checks:  s.checks, busy: s.busy, full: db.Full, away: isAway, elsewhere: s.elsewhere, measured: []metrics.Source{s.measured()}, acknowledge: db.Acknowledge, giveUp: db.GiveUp, hangs: db.Hangs,
		backUp: func(context.Context, string) (string, int64, error) {
			return "", 0, fmt.Errorf("%w: the database is PostgreSQL: back it up with its own tools, such as pg_basebackup or pg_dump", errors.ErrUnsupported)
		},
	}, nil
}

func isAway(err error) bool { return errors.Is(err, holdfast.ErrUnavailable) }

// watch asks the server every few seconds.
func (s *shared) watch(ctx context.Context) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		s.ask(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *shared) ask(ctx context.Context) {
	var is serverSeen
	if is.server, is.err = s.db.Server(ctx); is.err == nil {
		is.nodes, is.err = s.db.Nodes(ctx)
	}
	if ctx.Err() == nil {
		s.seen.Store(&is)
	}
}

// Dead rows of the queue make each claim slower; below these numbers nobody notices.
const (
	manyDead = 100_000
	heldFor  = 15 * time.Minute
	fewLeft  = 5 // connections
)

func (s *shared) checks(add addCheck) {
	is := s.seen.Load()
	if is == nil {
		return
	}
	status, detail := s.database(is)
	add(databaseCheck, status, detail)
	if g := s.db.Gap(); g != nil {
		add("history", api.Degraded, g.String()+"; have senders send again what they have sent since, with the same ids, then tell the nodes: holdfast acknowledge")
	}
	if is.err != nil {
		return
	}
	i := &is.server
	if s.db.Full() {
		add("disk", api.Degraded, "the disk of the database server is full: nothing new is accepted; free some space there, and it goes on by itself")
	}
	add("nodes", api.OK, fmt.Sprintf("alive: %s", strings.Join(is.alive(), ", ")))
	if q := i.Queue(); q.Dead > manyDead && q.Dead > 2*q.Live {
		detail := fmt.Sprintf("the queue has %d dead rows and %d live ones, so that claims become slow; ", q.Dead, q.Live)
		switch {
		case i.Oldest() > heldFor:
			detail += fmt.Sprintf("they cannot be removed because of a transaction that is open for %s: %s; end it", i.Oldest().Round(time.Second), i.Holders[0].Who)
		case i.Blind && i.Hidden > 0:
			detail += fmt.Sprintf("other roles have %d transactions open, whose age this role may not see; allow it with GRANT pg_read_all_stats TO %s", i.Hidden, i.Role)
		default:
			detail += "autovacuum does not keep up: check whether it is switched off, or give it more resources"
		}
		add("dead rows", api.Degraded, detail)
	}
	if left := i.Most - i.Connections; left < fewLeft {
		add("connections", api.Degraded, fmt.Sprintf("the server has %d of %d connections left: raise max_connections, or find who takes them", left, i.Most))
	}
}

// database judges the server: whether it answers, its commits come back, and it is the only one.
func (s *shared) database(is *serverSeen) (status, detail string) {
	if since := s.db.Stalled(); since > 0 {
		return api.Failing, fmt.Sprintf("no commit has come back for %s%s", since.Round(time.Second), is.why())
	}
	if is.err != nil {
		return api.Failing, is.err.Error()
	}
	if rivals := s.db.Primaries(); len(rivals) > 0 {
		return api.Failing, fmt.Sprintf("several servers of the address take writes: %s; end all but one; what was written to the ended ones is lost. This node follows the latest timeline of its system; if two have the same timeline, it stays on the one where it is", strings.Join(rivals, ", "))
	}
	i := &is.server
	return api.OK, fmt.Sprintf("PostgreSQL %s at %s, database %s", i.Version, i.Address, i.Database)
}

// why returns what commits wait for.
func (is *serverSeen) why() string {
	switch i := &is.server; {
	case is.err != nil:
		return ": " + is.err.Error()
	case i.Waiting > 0:
		return fmt.Sprintf(": %d wait (SyncRep) for the synchronous standbys of %s, which do not confirm them (synchronous_standby_names = '%s'): see whether those run and follow", i.Waiting, i.Address, i.SynchronousWith)
	}
	return ", though the server answers: see what its sessions wait for (pg_stat_activity)"
}

// databaseCheck is the only check that fails while the database is away. A restart of the node does not help then.
const databaseCheck = "database"

func (is *serverSeen) alive() (names []string) {
	for _, n := range is.nodes {
		if n.Left > 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

func (s *shared) busy() string {
	if s.db.Full() {
		return "disk full"
	}
	if is := s.seen.Load(); is != nil && is.err != nil {
		return "database not available"
	}
	if s.db.Stalled() > 0 {
		return "database takes no commits"
	}
	return ""
}

// elsewhere reports whether another node delivers to a destination and this one has no share of the limit.
func (s *shared) elsewhere(destination string, limit int) bool {
	is := s.seen.Load()
	return is != nil && s.db.Share(destination, limit) == 0 && slices.ContainsFunc(is.nodes, func(n postgres.NodeInfo) bool {
		return !n.Self && n.Left > 0 && slices.Contains(n.Lanes, destination)
	})
}

// measured returns the numbers of a database server, while it answers.
func (s *shared) measured() metrics.Source {
	const (
		oldest, dead   = "holdfast_postgres_oldest_transaction_seconds", "holdfast_postgres_dead_rows"
		history, nodes = "holdfast_postgres_history_unacknowledged", "holdfast_postgres_nodes"
	)
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: oldest, Help: "Age of the oldest open transaction on the PostgreSQL server that keeps dead rows from being removed."},
			{Name: dead, Help: "Rows of the queue's table in PostgreSQL that are dead and not removed yet. Claims slow down where there are many."},
			{Name: history, Help: "1 while the PostgreSQL database has a history that nobody has acknowledged, as after a failover or a restore: acknowledged messages may be gone."},
			{Name: nodes, Help: "Nodes that share the PostgreSQL database and are alive."},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			is := s.seen.Load()
			if is == nil || is.err != nil {
				return
			}
			if !is.server.Blind {
				see(oldest, int64(is.server.Oldest().Seconds()))
			}
			see(dead, is.server.Queue().Dead)
			see(nodes, int64(len(is.alive())))
			unacknowledged := int64(0)
			if s.db.Gap() != nil {
				unacknowledged = 1
			}
			see(history, unacknowledged)
		},
	}
}
