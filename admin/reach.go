package admin

import (
	"cmp"
	"context"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// Reach returns one list, and says of each recipient whether a notification would reach it now.
func (s Lists) Reach(ctx context.Context, name string) (list api.List, reach []api.RecipientReach, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return list, nil, p
	}
	l, ok := book.Lists[name]
	if !ok {
		return list, nil, noList(name, &book)
	}
	lanes := s.Channels.Status()
	reach = make([]api.RecipientReach, len(l.Recipients))
	for i, r := range l.Recipients {
		reach[i] = api.RecipientReach{Recipient: api.Recipient(r), State: "reached"}
		lost := func(state, problem string) { reach[i].State, reach[i].Problem = state, problem }
		c, ok := book.Channels[r.Channel]
		lane, served := lanes[r.Channel]
		switch {
		case r.Disabled:
			lost("off", "it is disabled on this list")
		case !ok:
			lost("lost", "there is no channel "+r.Channel)
		case c.Disabled:
			lost("waits", "channel "+r.Channel+" is disabled")
		case s.wrongAddress(&c, r.Address) != "":
			lost("lost", s.wrongAddress(&c, r.Address))
		case served && lane.Held:
			lost("waits", "channel "+r.Channel+" is held: "+cmp.Or(lane.Problem, "its cause is not known"))
		case served && !lane.Up:
			lost("waits", "channel "+r.Channel+" has failed, and is probed from time to time")
		}
	}
	return listOf(l, &book), reach, nil
}

// wrongAddress says what is wrong with an address on a channel; empty: nothing. A channel may have changed its
// kind since the recipient was added.
func (s Lists) wrongAddress(c *notify.Channel, address string) string {
	faults := addressFaults("address", address, s.Channels.CheckRecipient(*c, address))
	if len(faults) == 0 {
		return ""
	}
	return "the address " + faults[0].Problem
}
