package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// toldOf follows for as long as it takes to read a number of entries, and says which.
func toldOf(t *testing.T, db *postgres.DB, name string, n int) (ids []string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := db.Project(ctx, holdfast.Follower{Name: name}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
		for i := range page {
			ids = append(ids, string(page[i].ID)+page[i].Subject)
		}
		if len(ids) >= n {
			time.AfterFunc(300*time.Millisecond, stop) // after the page is written
		}
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
	return ids
}

// known makes a follower that begins here.
func known(t *testing.T, db *postgres.DB, dsn, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- db.Project(ctx, holdfast.Follower{Name: name}, nil) }()
	waitFor(t, dsn, fmt.Sprintf("SELECT count(*) FROM hf_follower WHERE name = '%s'", name), 1)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// In another cluster, where a dump is restored, transactions have lower numbers: what was
// read is not told again, what was not is told, and so is what comes.
func TestAJournalFromAnotherCluster(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, quick("a"))
	known(t, db, dsn, "f")
	known(t, db, dsn, "slow")
	put(t, db, holdfast.Message{ID: "read"})
	if d := cmp.Diff(toldOf(t, db, "f", 1), []string{"read"}); d != "" {
		t.Fatal(d)
	}
	put(t, db, holdfast.Message{ID: "unread"})
	if err := db.PauseLane(t.Context(), "a", "anna"); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	const more = "(tx::text::bigint + 1000000000)::text::xid8"
	if err := sql(t.Context(), dsn, "UPDATE hf_entry SET tx = "+more, "UPDATE hf_follower SET tx = "+more); err != nil {
		t.Fatal(err)
	}
	db = opened(t, dsn, quick("b"))
	put(t, db, holdfast.Message{ID: "new"})
	if d := cmp.Diff(toldOf(t, db, "f", 3), []string{"unread", "a", "new"}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if d := cmp.Diff(toldOf(t, db, "slow", 4), []string{"read", "unread", "a", "new"}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// A follower waits while the database is away, before it is known and after.
func TestAFollowerWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := s.Database(t)
	db := open(t, dsn, postgres.Options{Timeout: time.Second})
	known(t, db, dsn, "old")
	stopped := map[string]chan error{"old": make(chan error, 1), "new": make(chan error, 1)}
	seen := map[string]chan holdfast.ID{"old": make(chan holdfast.ID, 10), "new": make(chan holdfast.ID, 10)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	follow := func(name string) {
		stopped[name] <- db.Project(ctx, holdfast.Follower{Name: name, FromStart: true}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
			for i := range page {
				seen[name] <- page[i].ID
			}
			return nil, nil
		})
	}
	go follow("old")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	go follow("new")
	began := time.Now()
	waittest.Until(t, "the outage is longer than calls wait", func() bool { return time.Since(began) > 4*time.Second })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	settled(t, db)
	for name := range stopped {
		select {
		case <-seen[name]:
		case err := <-stopped[name]:
			t.Errorf("%s ended: %v", name, err)
		case <-t.Context().Done():
		}
	}
	stop()
}

// A change whose transaction began first and that waited for another one has the higher
// Seq: it comes behind.
func TestAPageIsInTheOrderOfSeq(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, quick("a"))
	known(t, db, dsn, "f")
	ctx := t.Context()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	if err := db.PauseLane(ctx, "first", "anna"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "INSERT INTO hf_entry (kind, at, subject) VALUES (12, 0, 'second')"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(toldOf(t, db, "f", 2), []string{"first", "second"}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}
