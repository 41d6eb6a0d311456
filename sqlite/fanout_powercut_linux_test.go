package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// TestPowerCutOfEvents cuts the power of a node between an event and its answer, and between the answer and the
// attempts. After each cut each event that was answered is there with a message for each subscriber, none is there by
// half, and each message has reached its subscriber or does so now.
func TestPowerCutOfEvents(t *testing.T) {
	racetest.Without(t, "the process that writes would be the same, only slower")
	var sum eventSum
	for sum.cuts < *cuts {
		d := newPowerDisk(t, *mkfs)
		book := newAcks()
		for n := 0; n < diskLife && sum.cuts < *cuts; n += lifeCuts {
			p := childOn(t, book, "events", filepath.Join(d.dir, "holdfast.db"), fmt.Sprintf("l%d", n))
			p.work(10)
			for range min(lifeCuts, *cuts-sum.cuts) - 1 {
				p.freeze(t)
				sum.cuts++
				c := d.copyDisk(t)
				sum.judge(t, c, book)
				c.drop(t)
				p.thaw(t)
				p.work(100)
				p.hear(time.Now().Add(time.Duration(rand.IntN(250)) * time.Millisecond))
			}
			sum.cuts++
			p.lose(t, d)
			sum.judge(t, d, book)
		}
		sum.published += len(book.said[saidPublished])
		d.unmount(t)
	}
	t.Logf("%d power cuts; %d events answered; %d more were there without an answer, %d messages without an attempt", sum.cuts, sum.published, sum.unanswered, sum.untried)
	if sum.published == 0 || sum.untried == 0 {
		t.Error("too little was done: the test did not test")
	}
}

// eventSum is what TestPowerCutOfEvents reports.
type eventSum struct{ cuts, published, unanswered, untried int }

// judge compares what a cut has left with what was answered, and delivers the rest.
func (s *eventSum) judge(t *testing.T, d *powerDisk, book *acks) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(d.dir, "holdfast.db"), sqlite.Options{Source: "test"})
	if err != nil {
		t.Fatalf("cut %d: the start failed: %v", s.cuts, err)
	}
	defer shut(t, db)
	stored := map[string]bool{}
	for _, r := range rowsOf(t, db, "SELECT b.id, e.matched, (SELECT count(*) FROM hf_delivery AS x WHERE x.event = e.seq) FROM hf_event AS e JOIN hf_bundle AS b ON b.seq = e.seq") {
		id, matched, messages := fmt.Sprint(r[0]), r[1].(int64), r[2].(int64)
		if stored[id] = true; matched != int64(len(eventSubscribers())) || messages != matched {
			t.Errorf("cut %d: event %s is there with %d messages for %d subscribers", s.cuts, id, messages, matched)
		}
		if !book.said[saidPublished][id] {
			s.unanswered++
		}
	}
	for id := range book.said[saidPublished] {
		if !stored[id] {
			t.Errorf("cut %d: event %s was answered and is lost", s.cuts, id)
		}
	}
	for limit := time.Now().Add(20 * time.Second); db.Counts().Pending > 0; {
		b, err := db.Claim(t.Context(), eventSlots())
		if err != nil || time.Now().After(limit) {
			t.Fatalf("cut %d: %d messages are left, %v", s.cuts, db.Counts().Pending, err)
		}
		list := make([]holdfast.Settlement, len(b.Claims))
		for i, c := range b.Claims {
			if id := string(c.Message.ID); book.said[saidDelivered][id] {
				t.Errorf("cut %d: %s was delivered, and comes again", s.cuts, id)
			} else if !book.said[saidAttempted][id] {
				s.untried++
			}
			list[i] = settlement(c, holdfast.Delivered)
		}
		if _, err := db.Settle(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
	}
	faults, err := db.Audit(t.Context())
	if err != nil || len(faults) > 0 || t.Failed() {
		t.Fatalf("cut %d: %v, %v", s.cuts, faults, err)
	}
}
