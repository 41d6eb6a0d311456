package storetest

import (
	"errors"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// decidedAboutCopies: a person's decision about the message of a copy is shown for the copy.
func decidedAboutCopies(k *kit) {
	k.ingest(note("n", "plant-1", "mail"))
	id := copyOf("n", "")

	k.reschedule(id, time.Hour)
	if r := k.statusIs("n", notify.Pending); r.NextAttempt.Sub(k.now()) < 59*time.Minute || r.Discarding {
		k.t.Errorf("rescheduled: %+v", r)
	}
	k.reschedule(id, 0)
	c := k.oneOf("mail")
	k.discard(id)
	for where, r := range map[string]notify.Record{"the list": k.everyNote(notify.Query{})[0], "the notification": k.statusIs("n", notify.Pending)} {
		if !r.Discarding || !r.Ended.IsZero() {
			k.t.Errorf("discarded in hand, %s: %+v", where, r)
		}
	}
	k.wins(c, failed(time.Minute))
	if r := k.statusIs("n", notify.Discarded); r.Discarding || r.Ended.IsZero() || r.Reason != holdfast.ReasonOperator {
		k.t.Errorf("discarded: %+v", r)
	}
	k.requeue(id)
	if r := k.statusIs("n", notify.Pending); r.Cycle != 2 || r.Discarding || r.NextAttempt.IsZero() {
		k.t.Errorf("retried: %+v", r)
	}
	k.discard(id)
	r := k.statusIs("n", notify.Discarded)
	if last := r.History[len(r.History)-1]; last.Kind != holdfast.GivenUp || last.Actor != "anna" {
		k.t.Errorf("the history ends with %+v", last)
	}
	k.ingest(note("later", "plant-1", "mail")) // a store may spare its newest row
	k.pass(2 * time.Hour)
	k.purge(holdfast.Retention{Discarded: time.Hour})
	if _, err := k.Requeue(k.ctx(), id, holdfast.Requeue{}); !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Errorf("its message is purged: got %v, want ErrNotFound", err)
	}
	if r := k.statusIs("n", notify.Discarded); r.Discarding {
		k.t.Errorf("its message is purged: %+v", r)
	}
}
