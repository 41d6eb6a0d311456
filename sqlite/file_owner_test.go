package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// copyOf copies the files as a process that is killed now would leave them.
// No write may be under way.
func copyOf(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "crashed.db")
	for _, suffix := range []string{"", "-wal"} {
		b := contents(t, path+suffix)[0]
		if b == nil {
			continue
		}
		if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func onDisk(t testing.TB, db *sqlite.DB, state int) int64 {
	t.Helper()
	rows, err := db.SQL(t.Context(), fmt.Sprint("SELECT count(*) FROM hf_message WHERE state = ", state))
	if err != nil {
		t.Fatal(err)
	}
	return rows[0][0].(int64)
}

// Claims are in memory after a clean stop, on disk after an unclean one, and
// back in memory after 1,000 attempts that did not kill the process.
func TestClaimsAreWrittenDownAfterAnUncleanStop(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	ms := make([]holdfast.Message, 1010)
	for i := range ms {
		ms[i] = holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Destination: "a", Endpoint: "E"}
	}
	enqueue(t, db, ms...)
	c := claim(t, db, 2)
	if n := onDisk(t, db, 1); n != 0 || db.Careful() != 0 {
		t.Errorf("%d claims on disk of a first owner", n)
	}
	s := settlement(c[0], holdfast.Pending)
	s.RetryIn = 0
	if _, err := db.Settle(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	crashed := copyOf(t, path)
	shut(t, db) // a claim was not settled
	for name, path := range map[string]string{"killed": crashed, "a claim was left": path} {
		db := open(t, path, sqlite.Options{Adopt: true})
		if db.Careful() != 1000 {
			t.Errorf("%s: %d settlements are missing, want 1000", name, db.Careful())
		}
		c := claim(t, db, 3)
		if n := onDisk(t, db, 1); n != 3 || len(c) != 3 {
			t.Errorf("%s: %d of %d claims on disk", name, n, len(c))
		}
		audit(t, db)
		if name == "killed" {
			carefulRun(t, db, c)
		}
		shut(t, db)
	}
}

func carefulRun(t *testing.T, db *sqlite.DB, c []holdfast.Claim) {
	t.Helper()
	// What was not begun is no proof that the process survives attempts.
	back := settlement(c[0], holdfast.Pending)
	back.Outcome = holdfast.NotStarted
	if won, err := db.Settle(t.Context(), back); err != nil || !won[0] || db.Careful() != 1000 {
		t.Errorf("won %v, %v, %d settlements are missing", won, err, db.Careful())
	}
	again := claim(t, db, 1)
	if again[0].Message.ID != c[0].Message.ID || again[0].Tries != c[0].Tries || again[0].Failures != c[0].Failures {
		t.Errorf("given back: got %+v, want %+v", again[0], c[0])
	}
	c[0] = again[0]
	c = append(c, claim(t, db, 997)...)
	list := make([]holdfast.Settlement, len(c))
	for i := range c {
		list[i] = settlement(c[i], holdfast.Delivered)
	}
	won, err := db.Settle(t.Context(), list...)
	if err != nil || len(won) != 1000 {
		t.Fatalf("%d settled, %v", len(won), err)
	}
	if n := onDisk(t, db, 1); n != 0 || db.Careful() != 0 {
		t.Errorf("%d claims on disk, %d settlements are missing", n, db.Careful())
	}
	if rest := claim(t, db, 100); len(rest) != 10 || onDisk(t, db, 1) != 0 {
		t.Errorf("%d claims, %d on disk; want 10 in memory", len(rest), onDisk(t, db, 1))
	}
	audit(t, db)
}

// A durable claim counts the attempt before it is made.
func TestDurableClaimsCountTheAttempt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	m := message("m")
	m.OrderingKey = "k"
	next := message("next")
	next.OrderingKey = "k"
	enqueue(t, db, m, next)
	for deaths := range 4 {
		c := claim(t, db, 10)
		if len(c) != 1 || c[0].Failures != max(deaths-1, 0) || c[0].Tries != max(deaths-1, 0) {
			t.Fatalf("death %d: claims %+v", deaths, c)
		}
		crashed := copyOf(t, path)
		shut(t, db)
		path = crashed
		db = open(t, path, sqlite.Options{Adopt: true})
		audit(t, db)
	}
	defer shut(t, db)
	r, err := db.Get(t.Context(), "m")
	if err != nil || r.Failures != 3 || r.LastError == "" {
		t.Errorf("got %+v, %v", r, err)
	}
	c := claim(t, db, 10)
	if len(c) != 1 || c[0].Message.Attempt.FirstAgo == 0 {
		t.Errorf("claims %+v", c)
	}
}

// What was in hand when the process died is tried alone, and only who was
// alone pays for a death: nobody is parked for his neighbour's fault, in his
// own lane or in another.
func TestSuspectsAreTriedAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	crash := func() {
		t.Helper()
		path = copyOf(t, path)
		shut(t, db)
		db = open(t, path, sqlite.Options{Adopt: true})
	}
	const many = 300
	for i := range many {
		m := message(holdfast.ID(fmt.Sprint("m", i)))
		m.Destination = []string{"a", "b"}[i%2]
		enqueue(t, db, m)
	}
	slots := 100
	both := func() []holdfast.Claim {
		t.Helper()
		b, err := db.Claim(t.Context(), map[string]int{"a": slots, "b": slots})
		if err != nil {
			t.Fatal(err)
		}
		return b.Claims
	}
	both()
	crash() // the first death: nothing was written down
	if c := both(); len(c) != 200 {
		t.Errorf("%d claims at once, want all that are asked for", len(c))
	}
	crash() // the second: any of the 200 may be the cause
	slots = 7
	if c := both(); len(c) != 14 {
		t.Errorf("%d claims at once, want seven of each lane", len(c))
	}
	slots = 100
	if c := both(); len(c) != 6 {
		t.Errorf("%d more claims, want 20 in all, a tenth", len(c))
	}
	crash()
	if c := both(); len(c) != 2 {
		t.Errorf("%d claims at once, want a tenth", len(c))
	}
	crash()
	alone := both()
	if len(alone) != 1 || alone[0].Failures != 0 || len(both()) != 0 {
		t.Fatalf("claims %+v, want one alone, uncharged", alone)
	}
	crash()
	again := both() // before all others, whichever lane they wait in
	if len(again) != 1 || again[0].Message.ID != alone[0].Message.ID || again[0].Failures != 1 {
		t.Fatalf("claims %+v, want %s alone, charged", again, alone[0].Message.ID)
	}
	// Each attempt that ends lets one more in.
	inHand := again
	for want := 2; want < 6; want++ {
		if _, err := db.Settle(t.Context(), settlement(inHand[0], holdfast.Delivered)); err != nil {
			t.Fatal(err)
		}
		if inHand = append(inHand[1:], both()...); len(inHand) != want {
			t.Errorf("%d in hand, want %d", len(inHand), want)
		}
	}
	for _, r := range inHand {
		if r.Failures != 0 {
			t.Errorf("%s was charged", r.Message.ID)
		}
	}
	audit(t, db)
	shut(t, db)
}

// A suspect that is the head of its ordering key frees the next one like any
// other.
func TestASuspectFreesItsKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	for i := range 2 {
		enqueue(t, db, holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Destination: "a", Endpoint: "E", OrderingKey: "k"})
	}
	for range 2 { // the first death leaves nothing written down, the second a suspect
		claim(t, db, 1)
		path = copyOf(t, path)
		shut(t, db)
		db = open(t, path, sqlite.Options{Adopt: true})
	}
	defer shut(t, db)
	for i := range 2 {
		c := claim(t, db, 10)
		if len(c) != 1 || c[0].Message.ID != holdfast.ID(fmt.Sprint("m", i)) {
			t.Fatalf("claim %d: got %d claims", i, len(c))
		}
		if _, err := db.Settle(t.Context(), settlement(c[0], holdfast.Delivered)); err != nil {
			t.Fatal(err)
		}
	}
	audit(t, db)
}
