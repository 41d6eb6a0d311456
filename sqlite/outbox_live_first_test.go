package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// behind opens a store with so many messages that it has yet to read.
func behind(t *testing.T, count int, kind func(id holdfast.ID) holdfast.Message) *sqlite.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	for n := range count {
		enqueue(t, db, kind(holdfast.ID(fmt.Sprint("old-", n))))
	}
	shut(t, db)
	db = open(t, path, sqlite.Options{})
	if err := db.ConfigureLane(t.Context(), notify.Central, holdfast.LaneSettings{LiveFirst: true}); err != nil {
		t.Fatal(err)
	}
	return db
}

// take claims, and says which ones.
func take(t *testing.T, db *sqlite.DB, slots int) (claims []holdfast.Claim, ids []holdfast.ID) {
	t.Helper()
	b, err := db.Claim(t.Context(), map[string]int{notify.Central: slots})
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Claims {
		ids = append(ids, b.Claims[i].Message.ID)
	}
	return b.Claims, ids
}

// Design 10: what comes in while a backlog drains does not wait for the end of
// it, nor does the backlog for the end of what comes in.
func TestNewMessagesGoBeforeABacklog(t *testing.T) {
	t.Parallel()
	db := behind(t, 100, forwarded)
	defer shut(t, db)
	take(t, db, 10)
	for n := range 5 {
		enqueue(t, db, forwarded(holdfast.ID(fmt.Sprint("new-", n))))
	}
	if _, ids := take(t, db, 4); !slices.Equal(ids, []holdfast.ID{"new-0", "new-1", "old-10", "old-11"}) {
		t.Errorf("half of the slots are for the new: got %v", ids)
	}
	_, first := take(t, db, 1)
	_, second := take(t, db, 1)
	if got := slices.Concat(first, second); !slices.Contains(got, "new-2") || !slices.Contains(got, "old-12") {
		t.Errorf("a single slot is for both in turn: got %v", got)
	}
}

// NO-05: in any other lane the oldest go first.
func TestTheOldestGoFirstElsewhere(t *testing.T) {
	t.Parallel()
	db := behind(t, 4, message)
	defer shut(t, db)
	claim(t, db, 1)
	enqueue(t, db, message("new"))
	var ids []holdfast.ID
	for _, c := range claim(t, db, 10) {
		ids = append(ids, c.Message.ID)
	}
	if want := []holdfast.ID{"old-1", "old-2", "old-3", "new"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}

// Each is handed out once while it is in hand, and never after it is
// delivered, whichever way it came to the front.
func TestEachIsHandedOutOnceBesideABacklog(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]bool{"all in hand": false, "settled at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := behind(t, 200, forwarded)
			defer shut(t, db)
			got := map[holdfast.ID]int{}
			for n := range 100 {
				if n < 50 {
					enqueue(t, db, forwarded(holdfast.ID(fmt.Sprint("new-", n))), forwarded(holdfast.ID(fmt.Sprint("more-", n))))
				}
				claims, ids := take(t, db, 7)
				for i, id := range ids {
					got[id]++
					switch {
					case !settle:
					case n%10 == 5 && i == 0 && got[id] == 1:
						got[id] = 0 // given back: it comes again
						giveBack(t, db, claims[i])
					default:
						if _, err := db.Settle(context.Background(), settlement(claims[i], holdfast.Delivered)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			for id, times := range got {
				if times != 1 {
					t.Errorf("%s was handed out %d times", id, times)
				}
			}
			if len(got) != 300 {
				t.Errorf("%d came, want 300", len(got))
			}
		})
	}
}

// forwarded is a message on its way to central.
func forwarded(id holdfast.ID) holdfast.Message {
	m := message(id)
	m.Destination = notify.Central
	return m
}

func giveBack(t *testing.T, db *sqlite.DB, c holdfast.Claim) {
	t.Helper()
	if _, err := db.Settle(t.Context(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, Outcome: holdfast.NotStarted}); err != nil {
		t.Fatal(err)
	}
}

// What memory keeps of them is bounded: the table has the rest.
func TestMoreThanMemoryKeepsBesideABacklog(t *testing.T) {
	t.Parallel()
	db := behind(t, 50, forwarded)
	defer shut(t, db)
	big := forwarded("big")
	big.Payload = make([]byte, 20<<10)
	enqueue(t, db, big)
	for n := range 500 {
		enqueue(t, db, forwarded(holdfast.ID(fmt.Sprint("new-", n))))
	}
	got := map[holdfast.ID]bool{}
	for {
		_, ids := take(t, db, 100)
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			if got[id] {
				t.Fatalf("%s came twice", id)
			}
			got[id] = true
		}
	}
	if len(got) != 551 {
		t.Errorf("%d came, want 551", len(got))
	}
}
