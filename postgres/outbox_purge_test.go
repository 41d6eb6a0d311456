package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

// A purge that failed is made up for by the next one.
func TestPurgeThatFailedComesAgain(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	put(t, db, numbered(20, holdfast.Message{})...)
	settleAll(t, db, take(t, db, 20), done())
	put(t, db, holdfast.Message{ID: "stays"})
	pass(t, dsn, 2*time.Hour)
	if err := sql(t.Context(), dsn, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'`,
		`CREATE TRIGGER fail BEFORE DELETE ON hf_message FOR EACH ROW EXECUTE FUNCTION fail()`); err != nil {
		t.Fatal(err)
	}
	keep := holdfast.Retention{Delivered: time.Hour}
	if _, _, err := db.Purge(t.Context(), keep); err == nil {
		t.Fatal("no error")
	}
	if err := sql(t.Context(), dsn, `DROP TRIGGER fail ON hf_message`); err != nil {
		t.Fatal(err)
	}
	purged := 0
	for range 3 {
		n, _, err := db.Purge(t.Context(), keep)
		if err != nil {
			t.Fatal(err)
		}
		purged += n
	}
	if left := number(t, dsn, "SELECT count(*) FROM hf_message"); purged != 20 || left != 1 {
		t.Errorf("%d purged, %d left; want 20 and 1", purged, left)
	}
}

// What a person decides about between a purge's look and its deletion stays
// (F1-99).
func TestAPurgeSparesWhatWasDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	put(t, db, numbered(4, holdfast.Message{})...)
	settleAll(t, db, take(t, db, 4), holdfast.Settlement{State: holdfast.Parked, Outcome: holdfast.Permanent, Reason: holdfast.ReasonPermanent})
	put(t, db, holdfast.Message{ID: "newest"})
	pass(t, dsn, 2*time.Hour)
	blocker := session(t, dsn, "BEGIN", "LOCK TABLE hf_follower") // the deletion reads it, and the look does not
	purged := make(chan int, 1)
	go func() {
		n, _, err := db.Purge(t.Context(), holdfast.Retention{Parked: time.Hour, Discarded: time.Hour})
		if err != nil {
			t.Error(err)
		}
		purged <- n
	}()
	waitFor(t, dsn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'WITH old AS%'", 1)
	ids := numbered(4, holdfast.Message{})
	if _, err := db.Requeue(t.Context(), ids[0].ID, holdfast.Requeue{}); err != nil {
		t.Error(err)
	}
	if _, err := db.Discard(t.Context(), ids[1].ID, "anna"); err != nil {
		t.Error(err)
	}
	if _, err := blocker.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if n := <-purged; n != 2 {
		t.Errorf("%d purged, want the 2 that nobody touched", n)
	}
	for i, want := range []holdfast.State{holdfast.Pending, holdfast.Discarded} {
		if r, err := db.Get(t.Context(), ids[i].ID); err != nil || r.State != want {
			t.Errorf("message %d: %v, %v; want it %v", i, r.State, err, want)
		}
	}
	audit(t, db)
}

// Of several nodes one expires; the others have nothing more to do.
func TestOneNodeExpires(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	put(t, a, numbered(20, holdfast.Message{TTL: time.Minute})...)
	pass(t, dsn, time.Hour)
	total := 0
	for range 4 {
		for _, db := range []*postgres.DB{a, b} {
			n, _, err := db.Expire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	if total != 20 {
		t.Errorf("%d expired, want 20", total)
	}
}
