package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/storetest"
)

// Ten nodes that start together on an empty database make its tables once.
func TestTenNodesStartAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			db, err := postgres.Open(t.Context(), dsn, postgres.Options{Connections: 2}.Relaxed())
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			if err := db.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	all.Wait()
	have, want, err := postgres.SchemaStatus(t.Context(), dsn)
	if err != nil || have != want || want < 1 {
		t.Errorf("SchemaStatus = %d, %d, %v", have, want, err)
	}
}

// A pooler that gives each transaction another connection is refused, one that
// keeps it for the session is as good as the server.
func TestPooler(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	dsn := s.Database(t)
	if _, err := postgres.Open(t.Context(), pgtest.Bouncer(t, s, pgtest.Transaction).Through(t, dsn), postgres.Options{}.Relaxed()); !errors.Is(err, postgres.ErrPooler) {
		t.Errorf("Open through transaction mode: %v, want ErrPooler", err)
	}
	if have, _, err := postgres.SchemaStatus(t.Context(), dsn); have != 0 || err != nil {
		t.Errorf("SchemaStatus = %d, %v; a refused Open has changed something", have, err)
	}
	db, err := postgres.Open(t.Context(), pgtest.Bouncer(t, s, pgtest.Session).Through(t, dsn), postgres.Options{}.Relaxed())
	if err != nil {
		t.Fatalf("Open through session mode: %v", err)
	}
	other, err := postgres.Open(t.Context(), pgtest.Bouncer(t, s, pgtest.Session).Through(t, dsn), postgres.Options{}.Relaxed())
	if err != nil {
		t.Fatalf("Open a second time: %v", err)
	}
	wake := db.Wake()
	defer wake.Stop()
	woken := false
	for began := time.Now(); !woken; { // listening begins a little later
		if time.Since(began) > time.Minute {
			t.Fatal("another node's message wakes nobody")
		}
		for empty := false; !empty; {
			select {
			case <-wake.C:
			default:
				empty = true
			}
		}
		if _, err := other.Enqueue(t.Context(), holdfast.Message{Destination: "a", Endpoint: "e", Kind: holdfast.Command}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-wake.C:
			woken = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	if err := other.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A stop in the moment of the start hangs nowhere, loses nothing, and keeps nobody's name.
func TestAStopMayMeetTheStart(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	storetest.Opening(t, func(ctx context.Context) (storetest.Full, error) {
		db, err := postgres.Open(ctx, dsn, postgres.Options{Source: "s", Node: "n"}.Relaxed())
		if n := number(t, dsn, `SELECT count(*) FROM hf_node`); err != nil && n != 0 {
			t.Errorf("its lease has to end before the next start of a node that stopped with %v", err)
		}
		return db, err
	})
}
