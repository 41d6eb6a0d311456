package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// faultyChild works on a disk that lies, and says what it was told, one line
// for each call: who reads it knows in which order things happened.
func faultyChild(db *sqlite.DB, err error, p *tap) {
	if err != nil {
		say("refused", err)
		return
	}
	p.set(nil, func(sql string) error {
		if strings.Contains(sql, "wal_checkpoint(TRUNCATE)") {
			say("checkpoint")
		}
		return nil
	})
	say("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the disk has become bad, or at once
	ctx := context.Background()
	call := func(id string, f func() error) {
		began := time.Now()
		err := f()
		if took := time.Since(began); took > 5*time.Second {
			say("slow", id, took)
		}
		if err != nil {
			say("error", id, err)
			return
		}
		say("ack", id)
	}
	for i := range 20 {
		id := holdfast.ID(fmt.Sprint("m", i))
		call(string(id), func() error {
			switch i % 4 {
			case 1:
				return db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
					_, err := tx.Enqueue(ctx, message(id))
					return err
				})
			case 2:
				_, err := db.Process(ctx, holdfast.Message{ID: id, Source: "s", Endpoint: "E"}, time.Hour,
					func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
						_, _ = tx.Enqueue(ctx, message(id)) // a handler that does not look
						return nil, nil
					})
				return err
			default:
				_, err := db.Enqueue(ctx, message(id))
				return err
			}
		})
		if i%5 == 4 {
			b, err := db.Claim(ctx, map[string]int{"a": 1})
			for _, c := range b.Claims {
				call("settle-"+string(c.Message.ID), func() error {
					_, err := db.Settle(ctx, settlement(c, holdfast.Delivered))
					return err
				})
			}
			if err != nil {
				say("claim", err)
			}
		}
	}
	if err := db.Err(); err != nil {
		select {
		case <-db.Failed():
			say("stopped", err)
		default:
			say("error", "it has stopped and does not tell")
		}
	}
	p.set(nil, nil)
	say("end")
	if err := db.Close(); err != nil {
		say("close", err)
	}
}
