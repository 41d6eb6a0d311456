package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lookEvery is how often the hosts of an address are checked without a cause.
const lookEvery = time.Minute

// primary is a server that takes writes.
type primary struct {
	host    string
	server  server
	started string // distinguishes two names of one server from two servers
}

// hosts returns the addresses of the servers, each with all ways to reach it.
func hosts(c *pgx.ConnConfig) (list []*pgx.ConnConfig) {
	ways := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	for _, w := range ways {
		i := slices.IndexFunc(list, func(h *pgx.ConnConfig) bool { return h.Host == w.Host && h.Port == w.Port })
		if i >= 0 {
			list[i].Fallbacks = append(list[i].Fallbacks, w)
			continue
		}
		h := c.Copy()
		h.Host, h.Port, h.TLSConfig, h.Fallbacks = w.Host, w.Port, w.TLSConfig, nil
		list = append(list, h)
	}
	return list
}

// watchPrimaries checks all hosts of the address every minute and after each new connection, since
// the server that a call happens to reach may not be the one that the others continue from. It also
// checks, even a single host, while no commit is answered: commits that hang at an old primary
// never end, and no new connection meets the server that continues. It also checks when a caller's
// transaction ran on a later server.
func (db *DB) watchPrimaries(ctx context.Context) {
	list, looked := hosts(db.pools.own.Config().ConnConfig), time.Now()
	tick := time.NewTicker(db.beatEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.past.dialed:
			if len(list) < 2 {
				continue // the new connection has met the only host
			}
		case <-db.past.behind:
		case <-tick.C:
			if !db.past.quiet(2*db.beatEvery()) && (len(list) < 2 || time.Since(looked) < lookEvery) {
				continue
			}
		}
		db.lookAround(ctx, list)
		looked = time.Now()
		if pause(ctx, time.Second) != nil { // new connections come in bursts
			return
		}
	}
}

// welcome checks the server of each new connection. It refuses a server of another system, or of
// another branch, while a server of the present one takes writes at the address. A look that finds
// none does not prove that there is none, because a slow server or a cut connection looks the same:
// the present one must also have been silent for a while.
func (p *past) welcome(ctx context.Context, c *pgx.ConnConfig, s server) error {
	if l := p.other(s); l != (line{}) {
		if since, away := p.silent(); !away {
			return fmt.Errorf("%w: the one that the store is on answered %s ago", besides(s, l), since.Round(time.Millisecond))
		}
		ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout/2)
		defer cancel()
		if len(lookAtAll(ctx, hosts(c), l)) > 0 {
			return besides(s, l)
		}
	}
	if err := p.met(s); err != nil {
		return err
	}
	ring(p.dialed)
	return nil
}

// ring puts a value into a bell, unless it has one.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// lookAtAll finds the servers that take writes, each once.
func lookAtAll(ctx context.Context, list []*pgx.ConnConfig, of line) (seen []*primary) {
	found := make([]*primary, len(list))
	var all sync.WaitGroup
	for i, h := range list {
		all.Go(func() { found[i] = lookAt(ctx, h, of) })
	}
	all.Wait()
	for _, f := range found {
		if f != nil && !slices.ContainsFunc(seen, func(p *primary) bool { return p.started == f.started && p.server.line() == f.server.line() }) {
			seen = append(seen, f)
		}
	}
	return seen
}

// lookAround finds the servers that take writes. The one with the latest timeline of the store's
// system counts; of two with the same timeline, the one that the store is on. If there are two,
// operators are told.
func (db *DB) lookAround(ctx context.Context, list []*pgx.ConnConfig) {
	db.past.looks.Lock()
	defer db.past.looks.Unlock()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var names []string
	for _, f := range lookAtAll(ctx, list, line{}) {
		if db.past.other(f.server) == (line{}) {
			_ = db.past.met(f.server) // an old server is reported below
		}
		names = append(names, fmt.Sprintf("%s at timeline %s of system %s", f.host, number(f.server.timeline), f.server.system))
	}
	if len(names) < 2 {
		names = nil
	}
	if db.past.rival(names) {
		db.log.ErrorContext(ctx, "several servers of the address take writes: stop the old one", slog.String("servers", strings.Join(names, ", ")))
	}
}

// rival records the servers that take writes at the same time, and reports whether that is news.
func (p *past) rival(names []string) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = len(names) > 0 && !slices.Equal(names, p.rivals)
	p.rivals = names
	return news
}

// Primaries returns the servers of the address that take writes at the same time, which must not
// happen. It is empty if there is one such server, or if the address names one host.
func (db *DB) Primaries() []string {
	p := db.past
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rivals
}

const readPrimary = `SELECT pg_is_in_recovery(), extract(epoch FROM pg_postmaster_start_time())::text`

// lookAt asks one host for a server that the given line leads to, or for any if the line is zero. It
// returns nil if the host takes no writes or does not answer.
func lookAt(ctx context.Context, c *pgx.ConnConfig, of line) *primary {
	p := &primary{host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	standby := true
	c = c.Copy()
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, readPrimary).ReadAll()
		if err != nil || len(results[0].Rows) != 1 {
			return err
		}
		row := results[0].Rows[0]
		standby, p.started = string(row[0]) == "t", string(row[1])
		if standby {
			return nil
		}
		err = identify(ctx, conn, &p.server)
		if err == nil && of != (line{}) && !of.leadsTo(p.server.line()) {
			err = ErrReadOnly // another address of the host may belong to it
		}
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil
	}
	_ = conn.Close(ctx)
	if standby || p.server.system == "" {
		return nil
	}
	return p
}
