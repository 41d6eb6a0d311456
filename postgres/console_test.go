package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A console is the test's own connection to its database, beside the store's. It
// is kept: a new process of the server costs more than most statements.
type console struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

var consoles sync.Map // *console, by the DSN of a test's database

func keepConsole(t testing.TB, dsn string) {
	k := new(console)
	consoles.Store(dsn, k)
	t.Cleanup(func() {
		consoles.Delete(dsn)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.conn != nil {
			_ = k.conn.Close(context.Background()) // the database goes with it
		}
	})
}

// onConsole does something on the database's console. Where none is kept, or it is
// in use, a connection is made for it.
func onConsole(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	kept, _ := consoles.Load(dsn)
	k, _ := kept.(*console)
	if k == nil || !k.mu.TryLock() {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		return do(c)
	}
	defer k.mu.Unlock()
	if k.conn == nil || k.conn.Ping(ctx) != nil { // a test may cut off all who are connected
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		k.conn = c
	}
	return do(k.conn)
}
