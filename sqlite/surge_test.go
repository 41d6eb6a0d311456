package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// The words in which a surge child acknowledges. Each stands before an id.
const (
	saidEnqueued  = "enqueued"
	saidDelivered = "delivered"
	saidParked    = "parked"
	saidProcessed = "processed"
	saidKept      = "kept"
	saidTwice     = "twice"  // a handler ran for an id that it had run for
	saidFailed    = "failed" // and an error, no id
)

// sender is whose messages the inbox of a surge child processes.
const sender = "sender"

// surge is a process that works until the power is gone: args are the path of
// its store, its durability, a prefix for its ids, and after how many pages
// its log is merged into the file. It says what is acknowledged to its
// callers, in lines, as soon as they may rely on it.
func surge(args []string) {
	db, err := sqlite.Open(context.Background(), args[0], sqlite.Options{Source: "test", Normal: args[1] == "normal"})
	must(err)
	_, err = db.SQL(context.Background(), "PRAGMA wal_autocheckpoint = "+args[3])
	must(err)
	must(makeEffects(db))
	say("ready")
	s := &surging{db: db, prefix: args[2]}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(s.until(func(i int) error { return s.enqueue(fmt.Sprintf("%s-e%d-%d", s.prefix, n, i), i) }))
	}
	all.Go(s.until(func(int) error { return s.deliver() }))
	for n := range 2 {
		all.Go(s.until(func(i int) error { return s.process(fmt.Sprintf("%s-p%d-%d", s.prefix, n, i), i) }))
	}
	all.Go(s.until(func(i int) error { return s.keep(fmt.Sprintf("%s-k-%d", s.prefix, i)) }))
	all.Wait()
	os.Exit(1) // without a word to the store: it was cut off from its disk
}

// makeEffects makes the table of what handlers do.
func makeEffects(db *sqlite.DB) error {
	return db.Do(context.Background(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL)")
		return err
	})
}

type surging struct {
	db     *sqlite.DB
	prefix string
}

// until repeats work until it fails, and says why it did.
func (s *surging) until(work func(i int) error) func() {
	return func() {
		for i := 0; ; i++ {
			if err := work(i); err != nil {
				say(saidFailed, err)
				return
			}
		}
	}
}

func (s *surging) enqueue(id string, i int) error {
	for s.db.Counts().Pending > 150 { // a closed loop
		time.Sleep(time.Millisecond)
	}
	m := holdfast.Message{ID: holdfast.ID(id), Destination: string("abc"[i%3]), Endpoint: "E", Payload: make([]byte, rand.IntN(900))}
	if i%5 == 0 {
		m.OrderingKey = fmt.Sprint("k", i%7)
	}
	if _, err := s.db.Enqueue(context.Background(), m); err != nil {
		return err
	}
	say(saidEnqueued, id)
	return nil
}

// deliver is what a dispatcher does: claim, and settle in groups.
func (s *surging) deliver() error {
	b, err := s.db.Claim(context.Background(), map[string]int{"a": 8, "b": 8, "c": 8})
	if err != nil || len(b.Claims) == 0 {
		time.Sleep(time.Millisecond)
		return err
	}
	list := make([]holdfast.Settlement, len(b.Claims))
	for i, c := range b.Claims {
		list[i] = settlement(c, holdfast.Delivered)
		switch rand.IntN(8) {
		case 0:
			list[i].State = holdfast.Parked
		case 1:
			list[i].State, list[i].RetryIn, list[i].Charged = holdfast.Pending, time.Millisecond, true
		}
	}
	won, err := s.db.Settle(context.Background(), list...)
	if err != nil {
		return err
	}
	for i, c := range b.Claims {
		switch {
		case !won[i]:
			return fmt.Errorf("settlement of %s did not take effect", c.Message.ID)
		case list[i].State == holdfast.Delivered:
			say(saidDelivered, c.Message.ID)
		case list[i].State == holdfast.Parked:
			say(saidParked, c.Message.ID)
		}
	}
	return nil
}

func (s *surging) process(id string, i int) error {
	if err := processOnce(s.db, id); err != nil {
		return err
	}
	say(saidProcessed, id)
	if i%4 != 0 {
		return nil
	}
	err := processOnce(s.db, id)
	if err == nil {
		say(saidTwice, id)
	}
	if !errors.Is(err, errKnown) {
		return err
	}
	return nil
}

// errKnown says that the inbox knew a message, and gave its response.
var errKnown = errors.New("known already")

// processOnce receives a message whose handler writes one row and enqueues a
// message that follows from it. errKnown: the handler did not run.
func processOnce(db *sqlite.DB, id string) error {
	ran := false
	m := holdfast.Message{ID: holdfast.ID(id), Source: sender, Endpoint: "E", Payload: []byte(id)}
	r, err := db.Process(context.Background(), m, time.Hour, func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
		ran = true
		if _, err := tx.ExecContext(ctx, "INSERT INTO effect VALUES (?1)", id); err != nil {
			return nil, err
		}
		_, err := tx.Enqueue(ctx, holdfast.Message{ID: holdfast.ID("of-" + id), Destination: "a", Endpoint: "E"})
		return []byte("answer " + id), err
	})
	switch {
	case err != nil:
		return err
	case string(r.Response) != "answer "+id:
		return fmt.Errorf("the response of %s is %q", id, r.Response)
	case !ran && r.Duplicate:
		return errKnown
	case ran == r.Duplicate:
		return fmt.Errorf("%s: handler ran %t, duplicate %t", id, ran, r.Duplicate)
	}
	return nil
}

func (s *surging) keep(id string) error {
	r, err := s.db.Keep(context.Background(), time.Hour, holdfast.Message{ID: holdfast.ID(id), Source: sender, Endpoint: "K", Payload: []byte(id)})
	if err != nil {
		return err
	}
	if r[0].Err != nil {
		return r[0].Err
	}
	say(saidKept, id)
	time.Sleep(2 * time.Millisecond)
	return nil
}
