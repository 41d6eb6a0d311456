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

// lookEvery is how often the hosts of an address are looked at without a cause.
const lookEvery = time.Minute

// primary is a server that takes writes.
type primary struct {
	host    string
	server  server
	started string // tells two names of one server from two servers
}

// hosts are the addresses of the servers, each with all ways to reach it.
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

// watchPrimaries looks at all hosts of the address, when there is a new
// connection and each minute: the one that a call happens to get need not be
// the one from which the others go on.
func (db *DB) watchPrimaries(ctx context.Context) {
	list := hosts(db.pools.own.Config().ConnConfig)
	if len(list) < 2 {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.past.dialed:
		case <-tick.C:
		}
		db.lookAround(ctx, list)
		if pause(ctx, time.Second) != nil { // new connections come in crowds
			return
		}
	}
}

// lookAround finds the servers that take writes. The one of the latest timeline
// counts; where there are two, people are told.
func (db *DB) lookAround(ctx context.Context, list []*pgx.ConnConfig) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	found := make([]*primary, len(list))
	var all sync.WaitGroup
	for i, h := range list {
		all.Go(func() { found[i] = lookAt(ctx, h) })
	}
	all.Wait()
	var names []string
	var seen []primary
	for _, f := range found {
		if f == nil || slices.ContainsFunc(seen, func(p primary) bool { return p.started == f.started && p.server.line() == f.server.line() }) {
			continue
		}
		_ = db.past.met(f.server) // an old one is told of below
		seen = append(seen, *f)
		names = append(names, fmt.Sprintf("%s at timeline %s", f.host, number(f.server.timeline)))
	}
	if len(names) < 2 {
		names = nil
	}
	if db.past.rival(names) {
		db.log.ErrorContext(ctx, "several servers of the address take writes: end the old one", slog.String("servers", strings.Join(names, ", ")))
	}
}

// rival notes the servers that take writes beside each other, and says whether
// that is news.
func (p *past) rival(names []string) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = len(names) > 0 && !slices.Equal(names, p.rivals)
	p.rivals = names
	return news
}

// Primaries are the servers of the address that take writes beside each other,
// which must not be; none: there is one, or the address names one only.
func (db *DB) Primaries() []string {
	p := db.past
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rivals
}

const readPrimary = `SELECT pg_is_in_recovery(), extract(epoch FROM pg_postmaster_start_time())::text`

// lookAt asks one host; nil: it takes no writes, or does not answer.
func lookAt(ctx context.Context, c *pgx.ConnConfig) *primary {
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
		return identify(ctx, conn, &p.server)
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
