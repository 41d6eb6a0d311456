package postgres

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
)

// roomTried is how much is written, and rolled back, to find out whether there is room again. It
// must not fit into the free space of existing pages.
const roomTried = 64 << 10

// diskFull is the server's code (SQLSTATE) for a full disk.
const diskFull = "53100"

// errRoom rolls a trial write back.
var errRoom = errors.New("there is room")

// Full reports that the server's disk is full: a write has failed for lack of room, and no later
// one has found room. It notices new room within Options.Lease.
func (db *DB) Full() bool { return db.full.Load() }

// noteRoom records what an error says about the server's disk, and returns the error.
func (db *DB) noteRoom(err error) error {
	e, ours := errors.AsType[*pgconn.PgError](err) // not a caller's error about another disk
	if ours && e.Code == diskFull && !db.full.Swap(true) {
		db.log.Error("the disk of the database server is full: nothing new is accepted until it has room")
	}
	return err
}

// lookForRoom tests whether the server has room again. Senders that check readiness send nothing
// meanwhile, so no other write would find out.
func (db *DB) lookForRoom(ctx context.Context) error {
	if !db.full.Load() {
		return nil
	}
	text := make([]byte, roomTried)
	_, _ = rand.Read(text) // never fails
	err := db.own(ctx, func(tx *ownTx) error {
		if err := tx.exec(tryRoom, base64.StdEncoding.EncodeToString(text)); err != nil {
			return err
		}
		return errRoom
	})
	switch {
	case errors.Is(err, errRoom):
		db.full.Store(false)
		db.log.InfoContext(ctx, "the database server has room again")
		return nil
	case errors.Is(err, holdfast.ErrDiskFull):
		return nil // that is recorded already
	}
	return err
}
