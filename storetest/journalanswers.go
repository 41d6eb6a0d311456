package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast"
)

// answersTold checks that followers read the detail of a settlement, whatever became of the message, and that nothing is
// kept of it while nobody follows.
func answersTold(k *kit) {
	settle := func(name string) {
		k.t.Helper()
		k.put(holdfast.Message{ID: holdfast.ID(name + "-done")}, holdfast.Message{ID: holdfast.ID(name + "-plain")}, holdfast.Message{ID: holdfast.ID(name + "-keyed"), OrderingKey: "k"},
			holdfast.Message{ID: holdfast.ID(name + "-again")}, holdfast.Message{ID: holdfast.ID(name + "-parked")})
		var list []holdfast.Settlement
		for _, c := range k.claim(5) {
			s := delivered()
			switch c.Message.ID {
			case holdfast.ID(name + "-again"):
				s = holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.Transient, RetryIn: 1 << 50}
			case holdfast.ID(name + "-parked"):
				s = holdfast.Settlement{State: holdfast.Parked, Outcome: holdfast.Permanent, Reason: holdfast.ReasonPermanent}
			}
			if s.Seq, s.Token = c.Seq, c.Token; c.Message.ID != holdfast.ID(name+"-plain") {
				s.Detail = fmt.Appendf(nil, `{"answer":"of %s <&>"}`, c.Message.ID)
			}
			list = append(list, s)
		}
		won, err := k.Settle(k.ctx(), list...)
		if err != nil || slices.Contains(won, false) || len(won) != 5 {
			k.t.Fatalf("settled %v, %v", won, err)
		}
	}
	settle("early")
	got := map[holdfast.ID]string{}
	ctx, cancel := context.WithCancel(k.ctx())
	defer cancel()
	read := func(want int) {
		k.t.Helper()
		k.ok(k.Project(ctx, holdfast.Follower{Name: "f", FromStart: true}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
			for i := range page {
				if page[i].Kind == holdfast.Attempted {
					got[page[i].ID] = string(page[i].Detail)
				}
			}
			if len(got) >= want {
				cancel()
			}
			return nil, nil
		}))
	}
	read(2) // SQLite and PostgreSQL keep the failures, with nothing more, for nobody
	for id, detail := range got {
		if detail != "" {
			k.t.Errorf("kept of %s, while nobody followed: %s", id, detail)
		}
	}
	settle("m")
	ctx, cancel = context.WithCancel(k.ctx())
	defer cancel()
	clear(got)
	wanted := map[holdfast.ID]string{"m-plain": ""}
	for _, name := range []holdfast.ID{"m-done", "m-keyed", "m-again", "m-parked"} {
		wanted[name] = fmt.Sprintf(`{"answer":"of %s <&>"}`, name)
	}
	for _, id := range []holdfast.ID{"early-again", "early-parked"} { // the last page was not written
		wanted[id] = ""
	}
	read(len(wanted))
	if !maps.Equal(got, wanted) {
		k.t.Errorf("got %v, want %v", got, wanted)
	}
}
