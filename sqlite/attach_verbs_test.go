package sqlite_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// A process beside the owner cannot know what is in hand: what it decides, the
// owner carries out, and no key has two in flight for it (F1-31, F1-80).
func TestTheOwnerCarriesOutWhatOthersDecide(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		keyed := func(id holdfast.ID) holdfast.Message {
			m := message(id)
			m.OrderingKey = "key"
			return m
		}
		enqueue(t, owner.DB, keyed("1"), keyed("2"), message("waits"), message("late"))
		byID := map[holdfast.ID]holdfast.Claim{}
		for _, c := range claims(t, owner, 10) {
			byID[c.Message.ID] = c
		}
		settle := func(id holdfast.ID, s holdfast.State, in time.Duration) {
			t.Helper()
			x := settlement(byID[id], s)
			x.RetryIn = in
			if s == holdfast.Parked {
				x.Reason = holdfast.ReasonPermanent
			}
			if won, err := owner.Settle(t.Context(), x); err != nil || !won[0] {
				t.Fatalf("settle %s: %v, %v", id, won, err)
			}
		}
		is := func(id holdfast.ID, want holdfast.State) {
			t.Helper()
			if r, err := owner.Get(t.Context(), id); err != nil || r.State != want {
				t.Errorf("%s is %s, %v, want %s", id, r.State, err, want)
			}
		}
		only := func(want holdfast.ID) {
			t.Helper()
			got := claims(t, owner, 10)
			if len(got) != 1 || got[0].Message.ID != want {
				t.Fatalf("claimed %v, want only %s", idsOf(got), want)
			}
			byID[want] = got[0]
		}
		// In hand: it ends with its attempt.
		if r, err := other.Discard(t.Context(), "1", "anna"); err != nil || !r.Discarding {
			t.Fatalf("got %+v, %v, want that it is to be discarded", r, err)
		}
		if _, err := other.Reschedule(t.Context(), "late", holdfast.Reschedule{In: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookTwice)
		is("1", holdfast.Claimed)
		settle("late", holdfast.Pending, 0)
		settle("1", holdfast.Pending, 0)
		is("1", holdfast.Discarded)
		only("2")
		// In nobody's hands: the owner ends it within its next look.
		settle("waits", holdfast.Pending, time.Minute)
		if _, err := other.Discard(t.Context(), "waits", "anna"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookTwice)
		is("waits", holdfast.Discarded)
		// The requeued one goes before the later one, once that is in hand no more.
		if _, err := other.Requeue(t.Context(), "1", holdfast.Requeue{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookTwice)
		settle("2", holdfast.Pending, 0)
		only("1")
		settle("1", holdfast.Parked, 0)
		if _, err := other.Requeue(t.Context(), "1", holdfast.Requeue{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookTwice)
		only("1") // and not 2, which waited for nothing but its turn
		settle("1", holdfast.Delivered, 0)
		only("2")
		settle("2", holdfast.Delivered, 0)
		time.Sleep(10 * time.Second)
		only("late")
		settle("late", holdfast.Delivered, 0)
		audit(t, owner.DB)
	})
}
