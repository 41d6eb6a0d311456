package notify

import (
	"context"
	"slices"
	"strings"
)

// copies are the channels of all copies, the first copy's first; none: there is
// one copy.
func (r *round) copies() []string {
	if all := r.m.Headers[headerCopies]; all != "" {
		return strings.Split(all, ",")
	}
	return nil
}

// covers says whether this copy is the one that reaches the recipients of a
// channel.
func (r *round) covers(channel string) bool {
	own, _ := ChannelOf(r.m.Destination)
	all := r.copies()
	return channel == own || all == nil || r.heir && !slices.Contains(all, channel)
}

// inherit finds out who asks the people on channels that the list has gained
// since, for whom no copy was made: the earliest copy that has not ended, so that
// whichever is the last one does (NO-06). Whom another one has reached meanwhile is
// not asked again.
func (r *round) inherit(ctx context.Context) error {
	all := r.copies()
	gained := func(channel string) bool { return !slices.Contains(all, channel) }
	if all == nil || !slices.ContainsFunc(r.list.Recipients, func(p Recipient) bool { return !p.Disabled && gained(p.Channel) }) {
		return nil
	}
	records, err := r.c.store.Notification(ctx, r.n.Origin.Site, r.n.ID)
	if err != nil {
		return err
	}
	own, _ := ChannelOf(r.m.Destination)
	r.heir = true
	for i := range records {
		c := &records[i]
		if c.Message == r.m.ID {
			continue
		}
		if (c.Status == Pending || c.Status == Retrying) && slices.Index(all, c.Channel) < slices.Index(all, own) {
			r.heir = false
		}
		for _, t := range c.Targets {
			if gained(t.Channel) && t.Result == Accepted {
				r.done[key{t.Channel, t.Address}] = t
			}
		}
	}
	return nil
}
