package postgres

import (
	"context"
	"strings"
)

// Own runs a statement in a transaction of the store's own.
func (db *DB) Own(ctx context.Context, statement string, args ...any) error {
	return db.own(ctx, func(tx *ownTx) error { return tx.exec(statement, args...) })
}

// Judge says what a status means between two servers: "system history".
func Judge(was, now, status string) (bool, error) {
	of := func(text string) (s server) {
		s.system, s.history, _ = strings.Cut(text, " ")
		return s
	}
	return judge(of(was), of(now), status)
}

// Facts are what a server says of itself.
type Facts struct {
	Number                              int
	Version, Encoding, Fsync, FullPages string
}

// Vet judges them.
func (f Facts) Vet() error {
	own := facts{f.Number, f.Version, f.Encoding, f.Fsync, f.FullPages}
	return own.vet(false)
}

// OwnAll runs statements in one such transaction.
func (db *DB) OwnAll(ctx context.Context, statements ...string) error {
	return db.own(ctx, func(tx *ownTx) error {
		for _, s := range statements {
			if err := tx.exec(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// Explain is explain.
func Explain(err error) error { return explain(err) }

// Blames is blames.
func Blames(err error) bool { return blames(err) }

// Processes are what a connection takes for its process of the server, and
// which that is.
func (db *DB) Processes(ctx context.Context) (taken, is uint32, err error) {
	c, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer c.Release()
	err = c.QueryRow(ctx, backend).Scan(&is)
	return serverOf(c.Conn()).pid, is, err
}
