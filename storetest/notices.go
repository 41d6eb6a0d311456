package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

// notices tests that a message that parks or expires leaves a message for the callbacks, if they
// are enabled (OI-05, OI-06).
func notices(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"none are written unless they are asked for": func(k *kit) {
			k.park(holdfast.Message{ID: "p"})
			k.lapse("e")
			equal(k, "notices", k.notices(), nil, cmpopts.EquateEmpty())
		},
		"of parked messages": func(k *kit) {
			k.notify(true, false)
			k.park(holdfast.Message{ID: "p", CorrelationID: "c", OrderingKey: "o"})
			k.lapse("e")
			equal(k, "notices", k.notices(), []holdfast.Ended{{
				ID: "p", Source: Source, Destination: "a", Endpoint: "E", Kind: holdfast.Signal, CorrelationID: "c", OrderingKey: "o",
				State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Code: "refused", Error: "it was refused", Cycle: 1, Tries: 1,
			}}, cmpopts.IgnoreFields(holdfast.Ended{}, "At"))
		},
		"of expired messages, whoever finds them": func(k *kit) {
			k.notify(false, true)
			k.put(holdfast.Message{ID: "claim", TTL: time.Minute})
			k.pass(time.Hour)
			k.nothing() // the claim has expired it
			k.lapse("sweep")
			k.park(holdfast.Message{ID: "parked", TTL: time.Minute})
			k.pass(time.Hour)
			k.expire()
			var ids []holdfast.ID
			for _, e := range k.notices() {
				if e.State != holdfast.Expired || e.At.IsZero() {
					k.t.Errorf("notice %+v", e)
				}
				ids = append(ids, e.ID)
			}
			equal(k, "ids", sorted(ids), []holdfast.ID{"claim", "parked", "sweep"})
		},
		"a notice that parks makes none": func(k *kit) {
			k.notify(true, true)
			k.park(holdfast.Message{ID: "p"})
			for _, c := range k.claimOf(holdfast.EndedDestination, 10) {
				k.wins(c, parked())
			}
			equal(k, "notices", k.notices(), nil, cmpopts.EquateEmpty())
		},
		"the wish is kept, and can be taken back": func(k *kit) {
			k.notify(true, true)
			k.reopen()
			k.park(holdfast.Message{ID: "p"})
			if !k.notify(false, false) {
				k.t.Error("a notice waits, and the store denies it")
			}
			k.park(holdfast.Message{ID: "q"})
			if got := k.notices(); len(got) != 1 || got[0].ID != "p" {
				k.t.Errorf("notices %+v, want that of p", got)
			}
			if k.notify(false, false) {
				k.t.Error("no notice waits any more")
			}
		},
	})
}

func (k *kit) notify(parked, expired bool) (waiting bool) {
	k.t.Helper()
	waiting, err := k.NotifyEnded(k.ctx(), parked, expired)
	if err != nil {
		k.t.Fatal(err)
	}
	return waiting
}

// lapse makes a message expire.
func (k *kit) lapse(id holdfast.ID) {
	k.t.Helper()
	k.put(holdfast.Message{ID: id, TTL: time.Minute})
	k.pass(time.Hour)
	k.expire()
	k.is(id, holdfast.Expired)
}

// notices claims and delivers all notices.
func (k *kit) notices() (list []holdfast.Ended) {
	k.t.Helper()
	for _, c := range k.claimOf(holdfast.EndedDestination, 100) {
		var e holdfast.Ended
		if err := json.Unmarshal(c.Message.Payload, &e); err != nil {
			k.t.Fatal(err)
		}
		if c.Message.Endpoint != e.State.String() {
			k.t.Errorf("endpoint %s of a notice that it is %s", c.Message.Endpoint, e.State)
		}
		list = append(list, e)
		k.wins(c, delivered())
	}
	return list
}
