package postgres_test

import (
	"context"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/storetest"
)

var transaction = storetest.Transaction[*postgres.Tx]{
	Of: func(s storetest.Full) holdfast.InboxStore[*postgres.Tx] { return s.(*store).DB },
	Enqueue: func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) error {
		_, err := tx.Enqueue(ctx, m)
		return err
	},
}

func TestInbox(t *testing.T) {
	t.Parallel()
	t.Run("log", func(t *testing.T) { storetest.InboxLog(t, maker) })
	t.Run("handlers", func(t *testing.T) { storetest.InboxStore(t, maker, transaction) })
	t.Run("batches", func(t *testing.T) { storetest.InboxBatch(t, maker, transaction) })
}
