package postgres_test

import (
	"errors"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// F1-124: a transaction is not tried again in another history, with numbers of the
// one before, unless it has none.
func TestATransactionBelongsToOneHistory(t *testing.T) {
	t.Parallel()
	db := opened(t, database(t), quick("n"))
	if ran, err := db.OwnAcross(t.Context(), false); ran != 1 || !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("with numbers: it ran %d times, %v", ran, err)
	}
	if ran, err := db.OwnAcross(t.Context(), true); ran != 2 || err != nil {
		t.Errorf("without: it ran %d times, %v", ran, err)
	}
}

// F1-120: that a claim is not to be found in another history proves no settlement.
func TestAbsenceProvesNothingInAnotherHistory(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, quick("n"))
	if err := db.ProveByAbsence(t.Context(), false); err != nil {
		t.Errorf("in the same history: %v", err)
	}
	goOn := db.StopBeats()
	if err := sql(t.Context(), dsn, `CREATE TABLE other (LIKE hf_meta INCLUDING ALL)`, `INSERT INTO other SELECT * FROM hf_meta`,
		`DROP TABLE hf_meta`, `ALTER TABLE other RENAME TO hf_meta`); err != nil {
		t.Fatal(err)
	}
	if err := db.ProveByAbsence(t.Context(), false); !errors.Is(err, postgres.ErrUnknown) {
		t.Errorf("in tables that were made anew: %v", err)
	}
	goOn()
	if err := db.ProveByAbsence(t.Context(), true); !errors.Is(err, postgres.ErrUnknown) {
		t.Errorf("in another one: %v", err)
	}
}

// F1-130: another history gives owner numbers again. The node takes none that it
// had, what it had in hand is no longer its own, and suspects come again.
func TestANodeTakesNoNumberTwice(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, quick("n"))
	acknowledged(t, db, 1)
	for range 3 {
		held := until(t, db, 1)
		was := db.Owner()
		if err := sql(t.Context(), dsn, `SELECT setval('hf_owner', 1)`); err != nil {
			t.Fatal(err)
		}
		db.Turn()
		waittest.Until(t, "the node enters", func() bool { return db.Owner() != was })
		if db.Owner() < was {
			t.Errorf("it was %d, and is %d", was, db.Owner())
		}
		if won := settleAll(t, db, held, holdfast.Settlement{State: holdfast.Delivered, Outcome: holdfast.Succeeded}); won != 0 {
			t.Errorf("%d of before were settled", won)
		}
	}
}

// F1-121: a server of another system is not followed while one of the present
// system takes writes at the address, so that two of them do not take turns. A look
// that does not find the present one is no proof while that one still answers.
func TestAnotherSystemIsFollowedWhenThePresentOneIsAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := server.Database(t)
	db := opened(t, dsn, quick("n"))
	if err := db.Welcome(t.Context(), dsn); !errors.Is(err, postgres.ErrReadOnly) {
		t.Errorf("beside the present one: %v", err)
	}
	const nowhere = "postgres://127.0.0.1:1/nowhere"
	if err := db.Welcome(t.Context(), nowhere); !errors.Is(err, postgres.ErrReadOnly) {
		t.Errorf("a look does not find the present one, which answers: %v", err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the other one is followed", func() bool { return db.Welcome(t.Context(), nowhere) == nil })
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the node goes back when that one is away", func() bool {
		_, err := db.Enqueue(t.Context(), simple(""))
		return err == nil
	})
}

// F1-121: a store that closes just after it has met another history enters it, so that it can give
// back what it holds there. Else its close took 5 s, and others waited for its lease to end.
func TestAStoreLeavesAHistoryThatItHasJustMet(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, quick("n"))
	given(t, db, simple("m"))
	until(t, db, 1)
	goOn := db.StopBeats()
	t.Cleanup(goOn)
	db.Turn()
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	waittest.Until(t, "the store is closing", func() bool {
		_, err := db.Enqueue(t.Context(), simple("m"))
		return errors.Is(err, holdfast.ErrClosed)
	})
	goOn()
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if n := count(t, dsn, "SELECT count(*) FROM hf_node"); n != 0 {
		t.Errorf("%d nodes are left", n)
	}
	if n := count(t, dsn, "SELECT count(*) FROM hf_queue WHERE owner IS NOT NULL"); n != 0 {
		t.Errorf("%d messages are claimed", n)
	}
}
