package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// pair attaches two stores, each with a handle of its own, to one file: two
// processes, as far as the store can tell.
func pair(t testing.TB, h handle) (owner, other *app) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	return h.attach(t, path, virtual()), h.attach(t, path, virtual())
}

func claims(t testing.TB, a *app, n int) []holdfast.Claim {
	t.Helper()
	b, err := a.Claim(t.Context(), map[string]int{"a": n})
	if err != nil {
		t.Fatal(err)
	}
	return b.Claims
}

// inPairs runs a test with two stores on one file, in virtual time.
func inPairs(t *testing.T, test func(t *testing.T, owner, other *app)) {
	t.Helper()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		racetest.Bubble(t, func(t *testing.T) {
			owner, other := pair(t, h)
			test(t, owner, other)
		})
	})
}

const lookTwice = 200 * time.Millisecond

// What another process enqueues reaches the owner, who alone hands it out;
// counters and claims stay exact.
func TestOwnerLearnsWhatOthersEnqueue(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		enqueue(t, owner.DB, message("1"))
		enqueue(t, other.DB, message("2"), message("2b"))
		enqueue(t, owner.DB, message("3"))
		late := message("4")
		late.Delay = time.Minute
		enqueue(t, other.DB, late)
		time.Sleep(lookTwice)
		if c := claims(t, other, 10); len(c) > 0 {
			t.Errorf("a store that does not own the file claimed %v", idsOf(c))
		}
		if c := owner.Counts(); c.Pending != 5 {
			t.Errorf("the owner counts %d pending, want 5", c.Pending)
		}
		got := claims(t, owner, 10)
		if len(got) != 4 {
			t.Fatalf("claimed %v", idsOf(got))
		}
		for _, c := range got {
			if won, err := owner.Settle(t.Context(), settlement(c, holdfast.Delivered)); err != nil || !won[0] {
				t.Errorf("settle %s: %v, %v", c.Message.ID, won, err)
			}
		}
		time.Sleep(time.Minute)
		if c := claims(t, owner, 10); len(c) != 1 || c[0].Message.ID != "4" {
			t.Errorf("claimed %v, want 4", idsOf(c))
		} else if _, err := owner.Settle(t.Context(), settlement(c[0], holdfast.Delivered)); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second) // the other counts again
		if a, b := owner.Counts().Pending, other.Counts().Pending; a != 0 || b != 0 {
			t.Errorf("the owner counts %d pending, the other %d, want none", a, b)
		}
		audit(t, owner.DB)
	})
}

func idsOf(claims []holdfast.Claim) (ids []holdfast.ID) {
	for _, c := range claims {
		ids = append(ids, c.Message.ID)
	}
	return ids
}

// When the owner is gone another takes over within two seconds, and the claims
// of before are given back; a former owner's settlement changes nothing.
func TestAnotherTakesOver(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		enqueue(t, owner.DB, message("1"), message("2"))
		held := claims(t, owner, 1)
		if len(held) != 1 {
			t.Fatalf("claimed %v", idsOf(held))
		}
		wake := other.Wake()
		defer wake.Stop()
		<-wake.C
		owner.shut(t)
		<-wake.C
		time.Sleep(2 * time.Second)
		got := claims(t, other, 10)
		if len(got) == 0 {
			t.Fatal("nobody took over")
		}
		for i := range got {
			if got[i].Token == held[0].Token {
				t.Error("two owners' claims have one number")
			}
			if won, err := other.Settle(t.Context(), settlement(got[i], holdfast.Delivered)); err != nil || !won[0] {
				t.Errorf("settle: %v, %v", won, err)
			}
		}
		audit(t, other.DB)
	})
}

// A lock that did not hold (a file system without locks, a lock file that was
// deleted): the epoch fences the former owner, whose claims are gone.
func TestFormerOwnerIsFenced(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		enqueue(t, owner.DB, message("m"))
		held := claims(t, owner, 1)
		if err := owner.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE hf_meta SET value = value + 1 WHERE key = 'epoch'")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		won, err := owner.Settle(t.Context(), settlement(held[0], holdfast.Delivered))
		if err != nil || won[0] {
			t.Errorf("a former owner's settlement: %v, %v", won, err)
		}
		if c := claims(t, owner, 10); len(c) > 0 {
			t.Errorf("a former owner claimed %v", idsOf(c))
		}
		enqueue(t, owner.DB, message("n")) // it goes on enqueuing
		if got := stateOf(t, other.DB, "n"); got != "pending" {
			t.Errorf("n is %s", got)
		}
	})
}

// A decision of an operator who asks another process reaches the owner, and
// so does a follower of the journal what the other writes.
func TestDecisionsAndFollowersAcrossProcesses(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		var seen []holdfast.EntryKind
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- owner.Project(ctx, holdfast.Follower{Name: "f"}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
				for i := range page {
					seen = append(seen, page[i].Kind)
				}
				return nil, nil
			})
		}()
		synctest.Wait()
		time.Sleep(lookTwice)
		enqueue(t, other.DB, message("m"))
		tx := other.begin(t)
		if _, err := other.In(tx).Enqueue(t.Context(), message("n")); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		time.Sleep(lookTwice)
		for _, c := range claims(t, owner, 10) {
			if _, err := owner.Settle(t.Context(), settlement(c, holdfast.Parked)); err != nil {
				t.Error(err)
			}
		}
		if _, err := other.Requeue(t.Context(), "m", holdfast.Requeue{}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Discard(t.Context(), "n", "anna"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookTwice)
		if c := claims(t, owner, 10); len(c) != 1 || c[0].Message.ID != "m" {
			t.Errorf("claimed %v, want m", idsOf(c))
		}
		if c := owner.Counts(); c.Pending != 1 || c.Parked != 0 {
			t.Errorf("counts %+v", c)
		}
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if want := 6; len(seen) != want {
			t.Errorf("the follower saw %v, want %d events", seen, want)
		}
	})
}

// What a follower of another process has yet to read is kept, messages and all else.
func TestOwnerKeepsWhatOthersHaveYetToRead(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		follow := func() (seen int) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if err := other.Project(ctx, holdfast.Follower{Name: "f"}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
				seen += len(page)
				return nil, nil
			}); err != nil {
				t.Error(err)
			}
			return seen
		}
		purged := func(want int) {
			t.Helper()
			time.Sleep(2 * time.Minute)
			if n, _, err := owner.Purge(t.Context(), holdfast.Retention{Delivered: time.Minute}); n != want || err != nil {
				t.Errorf("purged %d, %v; want %d", n, err, want)
			}
		}
		follow()
		enqueue(t, owner.DB, message("m"), message("n"))
		for _, c := range claims(t, owner, 10) {
			if _, err := owner.Settle(t.Context(), settlement(c, holdfast.Delivered)); err != nil {
				t.Error(err)
			}
		}
		if err := owner.PauseLane(t.Context(), "a", "anna"); err != nil {
			t.Error(err)
		}
		purged(0)
		if n := follow(); n != 5 {
			t.Errorf("the follower was told of %d entries, want 5", n)
		}
		purged(1) // the newest is spared
	})
}

// An ordering key holds across processes: one head, whoever enqueues.
func TestOrderAcrossProcesses(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		for i, a := range []*app{other, owner, other, owner} {
			m := message(holdfast.ID(rune('1' + i)))
			m.OrderingKey = "k"
			if i == 2 {
				tx := a.begin(t)
				if _, err := a.In(tx).Enqueue(t.Context(), m); err != nil {
					t.Error(err)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				continue
			}
			enqueue(t, a.DB, m)
		}
		for i := range 4 {
			time.Sleep(lookTwice)
			c := claims(t, owner, 10)
			if len(c) != 1 || c[0].Message.ID != holdfast.ID(rune('1'+i)) {
				t.Fatalf("claimed %v, want %c", idsOf(c), '1'+i)
			}
			if _, err := owner.Settle(t.Context(), settlement(c[0], holdfast.Delivered)); err != nil {
				t.Error(err)
			}
		}
		audit(t, owner.DB)
	})
}

// A file that a node has for itself takes no second writer, and neither does
// one that a node has taken meanwhile.
func TestAttachRefusesANodesFile(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "holdfast.db")
		node := open(t, path, sqlite.Options{})
		handle := h.open(t, path)
		if _, err := sqlite.Attach(t.Context(), handle, sqlite.Options{}); !errors.Is(err, sqlite.ErrOwned) {
			t.Errorf("got %v, want ErrOwned", err)
		}
		shut(t, node)
		if err := handle.Close(); err != nil {
			t.Error(err)
		}
		a, b := h.attach(t, path, sqlite.Options{}), h.attach(t, path, sqlite.Options{})
		defer b.shut(t)
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlite.ErrOwned) {
			t.Errorf("open beside a program: got %v, want ErrOwned", err)
		}
		// What happens where the lock does not hold.
		if err := a.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE hf_meta SET value = 1 WHERE key = 'exclusive'")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Enqueue(t.Context(), message("m")); !errors.Is(err, sqlite.ErrOwned) {
			t.Errorf("enqueue: got %v, want ErrOwned", err)
		}
		tx := b.begin(t)
		if _, err := b.In(tx).Enqueue(t.Context(), message("m")); !errors.Is(err, sqlite.ErrOwned) {
			t.Errorf("enqueue in a transaction: got %v, want ErrOwned", err)
		}
		_ = tx.Rollback()
		_ = a.Close()
	})
}
