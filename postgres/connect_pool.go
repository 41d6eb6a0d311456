package postgres

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout bounds one attempt to reach the server.
const connectTimeout = 5 * time.Second

// pools are the connections of a store.
type pools struct {
	// own runs the store's statements. Each of them is written for an index: a plan that was made
	// while a table was empty must not scan it when it has millions of rows.
	own *pgxpool.Pool
	// lent runs callers' transactions, with the server's own planner settings.
	lent *pgxpool.Pool
}

func openPools(ctx context.Context, dsn string, o *Options, past *past) (p pools, err error) {
	own, err := poolConfig(dsn, o)
	if err != nil {
		return p, err
	}
	lent := own.Copy()
	bound := strconv.FormatInt(o.Timeout.Milliseconds(), 10)
	maps.Copy(own.ConnConfig.RuntimeParams, map[string]string{
		"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off", "lock_timeout": "3s", "statement_timeout": bound,
		// The plans of our statements do not depend on the values, and to plan a claim costs half as much as to run it.
		"plan_cache_mode":                     "force_generic_plan",
		"idle_in_transaction_session_timeout": bound, // a node that was suspended in a transaction must not keep its locks
	})
	for _, c := range []*pgxpool.Config{own, lent} {
		c.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) { return past.holds(c), nil }
		c.BeforeClose = func(c *pgx.Conn) {
			if !past.holds(c) || past.patience.Err() != nil { // its server may never answer the goodbye, and until then the connection counts as taken
				_ = c.PgConn().Conn().Close()
			}
		}
		prepare(c, func(ctx context.Context, s server) error { return past.welcome(ctx, c.ConnConfig, s) })
	}
	if p.own, err = pgxpool.NewWithConfig(ctx, own); err != nil {
		return p, err
	}
	if p.lent, err = pgxpool.NewWithConfig(ctx, lent); err != nil {
		p.own.Close()
		return p, err
	}
	return p, nil
}

func (p *pools) close() {
	var both sync.WaitGroup
	both.Go(p.own.Close)
	both.Go(p.lent.Close)
	both.Wait()
}

func poolConfig(dsn string, o *Options) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, badAddress(dsn, err)
	}
	c.MaxConns = int32(min(o.Connections, 1000))
	c.ConnConfig.ConnectTimeout = min(connectTimeout, o.Timeout)
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	params := c.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = applicationName(o.Node)
	}
	if params["synchronous_commit"] != "remote_apply" { // remote_apply promises more than on
		params["synchronous_commit"] = "on"
	}
	maps.Copy(params, map[string]string{
		// The server must stop what its client has given up, and release its locks.
		"client_connection_check_interval":    "2s",
		"client_encoding":                     "UTF8",
		"client_min_messages":                 "warning", // prepare needs one of them
		"default_transaction_isolation":       "read committed",
		"idle_in_transaction_session_timeout": "0", // a handler may take its time
		"idle_session_timeout":                "0",
		// The locks of a node whose machine has vanished are free within a minute, not after the
		// two hours that most systems take.
		"tcp_keepalives_idle": "20", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3", "tcp_user_timeout": "50s",
	})
	return c, nil
}

// applicationName is the name that a database's operator sees. The server cuts it at 63 bytes.
func applicationName(node string) string {
	name := "holdfast " + node
	return name[:min(len(name), 63)]
}
