package postgres

import (
	"context"

	"github.com/holdfast-mq/holdfast"
)

func (tx *ownTx) notices(seqs []int64, state holdfast.State) error { return nil }
func (db *DB) NotifyEnded(ctx context.Context, parked, expired bool) (waiting bool, err error) {
	return false, nil
}
