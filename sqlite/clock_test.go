package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// machine is a clock whose wall time can be set apart from the time that
// elapses.
type machine struct {
	mu   sync.Mutex
	wall time.Time
	ran  time.Duration
}

func (m *machine) read() (time.Time, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall, m.ran
}

func (m *machine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = m.wall.Add(d)
	m.ran += d
}
func (m *machine) step(d time.Duration) { m.mu.Lock(); defer m.mu.Unlock(); m.wall = m.wall.Add(d) }

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func expireAll(t testing.TB, db *sqlite.DB) (n int) {
	t.Helper()
	for {
		some, more, err := db.Expire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n += some; !more {
			return n
		}
	}
}

func withTTL(id holdfast.ID, ttl time.Duration) holdfast.Message {
	m := message(id)
	m.TTL = ttl
	return m
}

// A step of the wall clock neither stalls nor bursts what waits.
//
// Outbox case 52.
func TestClockStepsDoNotMoveWhatWaits(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"back": -5 * time.Hour, "forward": 5 * time.Hour} {
		m := &machine{wall: noon}
		db := fresh(t, sqlite.Options{}.On(m.read))
		enqueue(t, db, message("retry"))
		s := settlement(claim(t, db, 1)[0], holdfast.Pending)
		s.RetryIn = time.Minute
		if _, err := db.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		m.step(step)
		m.pass(59 * time.Second)
		if got := claim(t, db, 1); len(got) != 0 {
			t.Errorf("%s: claimed too early", name)
		}
		m.pass(2 * time.Second)
		if got := claim(t, db, 1); len(got) != 1 {
			t.Errorf("%s: not claimed in time", name)
		}
		// People see the time of today's wall clock.
		r, err := db.Get(t.Context(), "retry")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Created, noon.Add(step); got.Sub(want).Abs() > time.Second {
			t.Errorf("%s: created %s, want about %s", name, got, want)
		}
		shut(t, db)
	}
}

// F1-47: an instant is the same at each look, however the two clocks are read,
// while the wall clock is set right bit by bit, and over a restart.
func TestInstantsAreStable(t *testing.T) {
	t.Parallel()
	m := &machine{wall: noon}
	path := filepath.Join(t.TempDir(), "stable.db")
	db := open(t, path, sqlite.Options{}.On(m.read))
	enqueue(t, db, withTTL("m", time.Hour))
	want, err := db.Get(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		got, err := db.Get(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", when, diff)
		}
	}
	for range 50 {
		m.pass(700 * time.Nanosecond)
		look("soon after")
	}
	for range 50 {
		m.pass(time.Second)
		m.step(500 * time.Microsecond / 50)
		look("while the clock is slewed")
	}
	shut(t, db)
	m.pass(time.Minute + 300*time.Nanosecond)
	db = open(t, path, sqlite.Options{}.On(m.read))
	defer shut(t, db)
	look("after a restart")
}

// A jump forward ends nothing before its time has been seen to pass, and a clock
// that is plainly wrong nothing at all; messages are delivered meanwhile.
func TestWrongClockEndsNothing(t *testing.T) {
	t.Parallel()
	t.Run("jump", func(t *testing.T) {
		t.Parallel()
		m := &machine{wall: noon}
		db := fresh(t, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		enqueue(t, db, withTTL("m", time.Minute))
		m.pass(50 * time.Second)
		m.step(3 * time.Hour)
		if _, ok := db.Clock(); !ok {
			t.Error("the time that passes is doubted because the clock was set")
		}
		if n := expireAll(t, db); n != 0 {
			t.Errorf("%d expired by a jump", n)
		}
		m.pass(11 * time.Second)
		if n := expireAll(t, db); n != 1 {
			t.Errorf("%d expired after their time, want 1", n)
		}
		audit(t, db)
	})
	t.Run("before 2020", func(t *testing.T) {
		t.Parallel()
		m := &machine{wall: time.Date(1970, 1, 1, 0, 3, 0, 0, time.UTC)}
		db := fresh(t, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		k := withTTL("blocked", time.Minute)
		k.OrderingKey = "k"
		head := message("head")
		head.OrderingKey = "k"
		enqueue(t, db, head, k, withTTL("m", time.Minute))
		m.pass(time.Hour)
		if n := expireAll(t, db); n != 0 {
			t.Errorf("%d expired in 1970", n)
		}
		if c := claim(t, db, 10); len(c) != 2 {
			t.Errorf("%d claims, want the head and the one without a key", len(c))
		}
		m.step(56 * 365 * 24 * time.Hour) // the time server answers
		if n := expireAll(t, db); n != 1 {
			t.Errorf("%d expired, want the blocked one, whose time was seen to pass", n)
		}
		audit(t, db)
	})
	t.Run("weeks later", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "holdfast.db")
		m := &machine{wall: noon}
		db := open(t, path, sqlite.Options{}.On(m.read))
		enqueue(t, db, withTTL("m", time.Minute))
		shut(t, db)
		m = &machine{wall: noon.Add(60 * 24 * time.Hour)}
		db = open(t, path, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		if n := expireAll(t, db); n != 0 {
			t.Errorf("%d expired at once", n)
		}
		m.pass(11 * time.Minute)
		if n := expireAll(t, db); n != 1 {
			t.Errorf("%d expired, want 1", n)
		}
	})
}

// After a backward step and a restart the store's time goes on from where it
// was: what waits keeps its turn, and nothing new goes before it.
func TestClockNeverRunsBackOverARestart(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]bool{"clean": false, "crash": true} {
		path := filepath.Join(t.TempDir(), "holdfast.db")
		m := &machine{wall: noon}
		db := open(t, path, sqlite.Options{}.On(m.read))
		m.pass(30 * time.Second) // less than the clock is noted after
		enqueue(t, db, message("first"))
		now, _ := db.Clock()
		if crash {
			path = copyOf(t, path)
		}
		shut(t, db)
		m = &machine{wall: noon.Add(-10 * time.Hour)}
		db = open(t, path, sqlite.Options{Adopt: true}.On(m.read))
		if later, _ := db.Clock(); later < now {
			t.Errorf("%s: the store's time went back by %d µs", name, now-later)
		}
		enqueue(t, db, message("second"))
		c := claim(t, db, 10)
		if len(c) != 2 || c[0].Message.ID != "first" {
			t.Errorf("%s: got %d claims", name, len(c))
		}
		shut(t, db)
	}
}

// F1-51: what is held stays put aside while only the hold begins anew, and is let go at
// a start that finds nothing doubted any more.
func TestWhatIsHeldIsLetGoWhenAVerdictChanges(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "holdfast.db"), &machine{wall: noon}
	db := open(t, path, sqlite.Options{}.On(m.read))
	enqueue(t, db, message("tried"))
	if _, err := db.Settle(t.Context(), settlement(claim(t, db, 1)[0], holdfast.Pending)); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	m = &machine{wall: noon.Add(8 * 24 * time.Hour)} // its receiver may have forgotten it
	db = open(t, path, sqlite.Options{}.On(m.read))
	aside := func(want int) {
		t.Helper()
		rows, err := db.SQL(t.Context(), "SELECT seq FROM hf_message WHERE due >= 4611686018427387904 AND due < 9223372036854775807")
		if err != nil || len(rows) != want {
			t.Errorf("%d are put aside, want %d: %v", len(rows), want, err)
		}
	}
	expireAll(t, db)
	if got := claim(t, db, 1); len(got) != 0 {
		t.Fatal("claimed while it is held")
	}
	aside(1)
	for range 3 {
		m.pass(time.Hour)
		db.HearTime(noon)
		expireAll(t, db)
		aside(1)
	}
	m.pass(25 * time.Hour)
	shut(t, db)
	db = open(t, path, sqlite.Options{}.On(m.read))
	defer shut(t, db)
	if d := db.Doubt(); d.Claimed != 0 {
		t.Fatalf("doubt: %+v", d)
	}
	expireAll(t, db)
	aside(0)
	if got := claim(t, db, 1); len(got) != 1 {
		t.Error("it is not handed out, and the clock is believed")
	}
}
