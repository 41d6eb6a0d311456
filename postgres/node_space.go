package postgres

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
)

// roomTried is how much is written, and taken back, to find out whether there is
// room again: too much for what is free in pages that stand already.
const roomTried = 64 << 10

// diskFull is the server's code (SQLSTATE) of a disk without room.
const diskFull = "53100"

// errRoom takes a trial write back.
var errRoom = errors.New("there is room")

// Full says that the server's disk has no room for what is new: a write has
// found that out, and none has found room since. Options.Lease bounds how long
// that takes.
func (db *DB) Full() bool { return db.full.Load() }

// noteRoom notes what an error, which it returns, says of the server's disk.
func (db *DB) noteRoom(err error) error {
	e, ours := errors.AsType[*pgconn.PgError](err) // not an error of a caller's that tells of another disk
	if ours && e.Code == diskFull && !db.full.Swap(true) {
		db.log.Error("the disk of the database server is full: nothing new is accepted until it has room")
	}
	return err
}

// lookForRoom tries whether the server has room again. Whoever asks for
// readiness sends nothing meanwhile, so no other write would find it out.
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
		return nil // it is noted
	}
	return err
}
