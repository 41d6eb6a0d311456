package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectTimeout bounds one try to reach the server.
const connectTimeout = 5 * time.Second

// pools are the connections of a store.
type pools struct {
	// own runs the store's statements, each of which is meant for an index: a
	// plan that was made while a table was empty must not read all of it when
	// there are millions.
	own *pgxpool.Pool
	// lent runs transactions of callers, with the server's own settings.
	lent *pgxpool.Pool
}

func openPools(ctx context.Context, dsn string, o *Options) (p pools, err error) {
	own, err := poolConfig(dsn, o)
	if err != nil {
		return p, err
	}
	lent := own.Copy()
	for name, value := range map[string]string{"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off", "lock_timeout": "3s"} {
		own.ConnConfig.RuntimeParams[name] = value
	}
	own.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(o.Timeout.Milliseconds(), 10)
	own.MinConns = 1
	prepare(own)
	prepare(lent)
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
	p.own.Close()
	p.lent.Close()
}

func poolConfig(dsn string, o *Options) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, badAddress(dsn, err)
	}
	c.MaxConns = int32(min(o.Connections, 1000)) //nolint:gosec // bounded
	c.ConnConfig.ConnectTimeout = connectTimeout
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	params := c.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = applicationName(o.Node)
	}
	params["synchronous_commit"] = "on"
	params["client_encoding"] = "UTF8"
	params["default_transaction_isolation"] = "read committed"
	params["idle_in_transaction_session_timeout"] = "0" // a handler may take its time; the store's own are bounded by statement
	return c, nil
}

// applicationName is what a database's operator sees; the server cuts it at 63 bytes.
func applicationName(node string) string {
	name := "holdfast " + node
	return name[:min(len(name), 63)]
}
