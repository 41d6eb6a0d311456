package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// Each call ends by Options.Timeout while the server is stalled with its
// connections open, also for a caller who sets no limit.
func TestEveryCallEndsWhileTheServerStalls(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	s := pgtest.Start(t, pgtest.Options{NoSync: true})
	db := open(t, s.Database(t), postgres.Options{Timeout: timeout})
	ctx := t.Context()
	m := func(id holdfast.ID) holdfast.Message {
		return holdfast.Message{ID: id, Source: "s", Destination: "a", Endpoint: "e", Kind: holdfast.Command, Payload: []byte("x")}
	}
	if _, err := db.Enqueue(ctx, m(""), m("")); err != nil {
		t.Fatal(err)
	}
	b, err := db.Claim(ctx, map[string]int{"a": 1})
	if err != nil || len(b.Claims) != 1 {
		t.Fatalf("Claim = %+v, %v", b, err)
	}
	handler := func(context.Context, *postgres.Tx, holdfast.Message) ([]byte, error) { return nil, nil }
	if _, err := db.Process(ctx, m("first"), time.Hour, handler); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Enqueue": func() error { _, err := db.Enqueue(ctx, m("")); return err },
		"Enqueue with a new name": func() error {
			_, err := db.Enqueue(ctx, holdfast.Message{Destination: "b", Endpoint: "e", Kind: holdfast.Command})
			return err
		},
		"Claim": func() error { _, err := db.Claim(ctx, map[string]int{"a": 1}); return err },
		"Settle": func() error {
			_, err := db.Settle(ctx, holdfast.Settlement{Seq: b.Claims[0].Seq, Token: b.Claims[0].Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded})
			return err
		},
		"Do":         func() error { return db.Do(ctx, func(context.Context, *postgres.Tx) error { return nil }) },
		"Process":    func() error { _, err := db.Process(ctx, m("second"), time.Hour, handler); return err },
		"Keep":       func() error { _, err := db.Keep(ctx, time.Hour, m("third")); return err },
		"SweepInbox": func() error { _, _, err := db.SweepInbox(ctx, time.Hour); return err },
		"Kept":       func() error { _, err := db.Kept(ctx, holdfast.KeptQuery{}); return err },
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var all sync.WaitGroup
	for what, call := range calls {
		all.Go(func() {
			most := timeout + time.Second
			if what == "Settle" { // its one statement is its commit, whose outcome is looked for twice as long
				most += 2 * timeout
			}
			done := make(chan error, 1)
			go func() { done <- call() }()
			select {
			case err := <-done:
				if took := time.Since(began); err == nil || took > most {
					t.Errorf("%s ended after %v with %v", what, took.Round(time.Millisecond), err)
				}
			case <-time.After(most + 2*timeout):
				t.Errorf("%s does not end", what)
			}
		})
	}
	all.Wait()
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	settled(t, db)
	for what, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the stall: %v", what, err)
		}
	}
	shut(t, db)
}
