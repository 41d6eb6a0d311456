package main

import (
	"context"
	"fmt"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// ourProcess passes messages to the inbox, one by one or in batches, in the caller's file or in the
// store's own.
func ourProcess(batch int, inCallersFile bool) load {
	l := load{name: "holdfast attached", role: roleOurs, settings: attachedSettings}
	if !inCallersFile {
		l.name, l.settings = "holdfast, own file", "the orders are in the store's own file"
	}
	l.open = func(ctx context.Context, dir string) (loaded, error) {
		var db *sqlite.DB
		var closeAll func() error
		if inCallersFile {
			a, err := attach(ctx, modernc(), dir)
			if err != nil {
				return loaded{}, err
			}
			db, closeAll = a.db, a.Close
		} else {
			own, err := openShop(ctx, dir)
			if err != nil {
				return loaded{}, err
			}
			db, closeAll = own, own.Close
		}
		inbox := db.Inbox()
		if batch == 1 {
			return loaded{close: closeAll, do: func(ctx context.Context, n int) error {
				_, err := inbox.Process(ctx, incoming(n), bookOrder)
				return err
			}}, nil
		}
		return loaded{close: closeAll, do: func(ctx context.Context, n int) error {
			ms := make([]hf.Message, batch)
			for i := range ms {
				ms[i] = incoming(n*batch + i)
			}
			for i, r := range inbox.ProcessBatch(ctx, ms, bookOrder) {
				if r.Err != nil {
					return fmt.Errorf("message %d of a batch: %w", i, r.Err)
				}
			}
			return nil
		}}, nil
	}
	return l
}

func incoming(n int) hf.Message {
	return hf.Message{ID: hf.NewID(), Source: "sender", Endpoint: "Bench", Payload: payload(n)}
}

// bookOrder is the handler.
func bookOrder(ctx context.Context, tx *sqlite.Tx, m hf.Message) ([]byte, error) {
	n, err := payloadNumber(m.Payload)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, shopOrder, customer(n), cents(n))
	return nil, err
}
