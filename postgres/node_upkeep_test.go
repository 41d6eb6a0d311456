package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

func parkIt() holdfast.Settlement {
	return holdfast.Settlement{State: holdfast.Parked, Outcome: holdfast.Permanent, Reason: holdfast.ReasonPermanent}
}

// session is a connection of somebody else.
func session(t testing.TB, dsn string, statements ...string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	for _, s := range statements {
		if _, err := c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return c
}

func purgeAll(t testing.TB, db *postgres.DB, keep holdfast.Retention) (total int) {
	t.Helper()
	for more := true; more; {
		var n int
		var err error
		if n, more, err = db.Purge(t.Context(), keep); err != nil {
			t.Error(err)
			return total
		}
		total += n
	}
	return total
}

// While another node has the lock of a kind of upkeep, this one leaves it alone.
func TestUpkeepIsLeftToWhoHasItsLock(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	put(t, db, numbered(10, holdfast.Message{ID: "d"})...)
	settleAll(t, db, take(t, db, 10), done())
	put(t, db, numbered(20, holdfast.Message{ID: "e", TTL: time.Minute})...)
	pass(t, dsn, time.Hour)
	keep := holdfast.Retention{Delivered: time.Minute}
	other := session(t, dsn, fmt.Sprintf("SELECT pg_advisory_lock(%d, %d), pg_advisory_lock(%d, %d)",
		postgres.UpkeepClass, postgres.UpkeepExpire, postgres.UpkeepClass, postgres.UpkeepPurge))
	if n, more, err := db.Expire(t.Context()); n != 0 || more || err != nil {
		t.Errorf("Expire = %d, %v, %v while another node does it", n, more, err)
	}
	if n := purgeAll(t, db, keep); n != 0 {
		t.Errorf("%d purged while another node does it", n)
	}
	if queued, final := number(t, dsn, "SELECT count(*) FROM hf_queue"), number(t, dsn, "SELECT count(*) FROM hf_final"); queued != 20 || final != 10 {
		t.Errorf("%d queued, %d final; want 20 and 10", queued, final)
	}
	if _, err := other.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	if n, _, err := db.Expire(t.Context()); n != 20 || err != nil {
		t.Errorf("Expire = %d, %v afterwards, want 20", n, err)
	}
	if n := purgeAll(t, db, keep); n != 10 {
		t.Errorf("%d purged afterwards, want 10", n)
	}
	audit(t, db)
}

// Outbox case 36: what is parked stays, however old, and purges go by pages.
func TestCase36AnOldParkedMessage(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	put(t, db, holdfast.Message{ID: "parked"})
	settleAll(t, db, take(t, db, 1), parkIt())
	put(t, db, numbered(20, holdfast.Message{})...)
	settleAll(t, db, take(t, db, 20), done())
	pass(t, dsn, 365*24*time.Hour)
	week := 7 * 24 * time.Hour
	if n := purgeAll(t, db, holdfast.Retention{Delivered: week, Expired: week, Discarded: week}); n != 20 {
		t.Errorf("%d purged, want 20", n)
	}
	if r, err := db.Get(t.Context(), "parked"); err != nil || r.State != holdfast.Parked {
		t.Errorf("the parked message: %v, %v", r.State, err)
	}
	audit(t, db)
}

// Outbox cases 36 and 50: two nodes purge many rows while others work. Nothing
// is purged twice, nobody waits long, and the counters are right.
func TestCase50PurgeUnderLoad(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	put(t, a, numbered(300, holdfast.Message{ID: "p"})...)
	settleAll(t, a, until(t, a, 300), parkIt())
	const many = 15000
	if err := sql(t.Context(), dsn,
		fmt.Sprintf(`INSERT INTO hf_message SELECT nextval('hf_seq'), int8send(n) || '\x00', route, lane, hf_now(), 'x', NULL, NULL, NULL, 0, NULL, NULL FROM hf_route, generate_series(1, %d) AS n`, many),
		`INSERT INTO hf_final SELECT seq, lane, 2, created, 9223372036854775807, 0, 1, 1, NULL, false, NULL, NULL FROM hf_message AS m WHERE NOT EXISTS (SELECT FROM hf_final AS f WHERE f.seq = m.seq)`); err != nil {
		t.Fatal(err)
	}
	pass(t, dsn, time.Hour)
	var purgers, worker sync.WaitGroup
	var purged [2]int
	for i, db := range []*postgres.DB{a, b} {
		purgers.Go(func() {
			for range 30 {
				purged[i] += purgeAll(t, db, holdfast.Retention{Delivered: time.Minute, Parked: time.Minute})
			}
		})
	}
	stop := make(chan struct{})
	worker.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			began := time.Now()
			_, err := a.Enqueue(t.Context(), holdfast.Message{ID: holdfast.ID(fmt.Sprint("new", i)), Destination: "a", Endpoint: "E"})
			batch, claimed := a.Claim(t.Context(), map[string]int{"a": 10})
			var list []holdfast.Settlement
			for _, c := range batch.Claims {
				s := done()
				s.Seq, s.Token = c.Seq, c.Token
				list = append(list, s)
			}
			_, settled := a.Settle(t.Context(), list...)
			if took := time.Since(began); err != nil || claimed != nil || settled != nil || took > 3*time.Second {
				t.Errorf("after %s: %v, %v, %v", took, err, claimed, settled)
				return
			}
		}
	})
	purgers.Wait()
	close(stop)
	worker.Wait()
	if sum := purged[0] + purged[1]; sum != many+300 {
		t.Errorf("%d and %d purged, want %d in all", purged[0], purged[1], many+300)
	}
	waittest.Until(t, "no node counts what was parked", func() bool { return a.Counts().Parked == 0 && b.Counts().Parked == 0 })
	audit(t, a)
}

// A purge whose connection is cut midway loses nothing that is to stay, and
// goes on.
func TestAPurgeThatIsCutOff(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	put(t, db, numbered(20, holdfast.Message{})...)
	settleAll(t, db, take(t, db, 20), done())
	put(t, db, holdfast.Message{ID: "stays"})
	pass(t, dsn, 2*time.Hour)
	blocker := session(t, dsn, "BEGIN", "SELECT FROM hf_message WHERE seq = (SELECT max(seq) FROM hf_final) FOR UPDATE")
	keep := holdfast.Retention{Delivered: time.Hour}
	purged := make(chan int, 1)
	go func() {
		n, _, err := db.Purge(t.Context(), keep)
		if err != nil {
			t.Logf("the purge that was cut off: %v", err)
		}
		purged <- n
	}()
	waitFor(t, dsn, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'WITH old AS%'`, 1)
	if final := number(t, dsn, "SELECT count(*) FROM hf_final"); final != 20 {
		t.Errorf("%d of 20 are left in the middle of a purge", final)
	}
	if _, err := blocker.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	total := <-purged + purgeAll(t, db, keep)
	if left := number(t, dsn, "SELECT count(*) FROM hf_message"); total != 20 || left != 1 {
		t.Errorf("%d purged, %d left; want 20 and 1", total, left)
	}
	audit(t, db)
}
