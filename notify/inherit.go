package notify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// copies returns the channels of all copies, the first copy's first. Empty: there is one copy.
func (r *round) copies() []string {
	if all := r.m.Headers[headerCopies]; all != "" {
		return strings.Split(all, ",")
	}
	return nil
}

// covers reports whether this copy is the one that reaches the recipients of a channel.
func (r *round) covers(channel string) bool {
	own, _ := ChannelOf(r.m.Destination)
	all := r.copies()
	return channel == own || all == nil || r.heir && !slices.Contains(all, channel)
}

// inherit decides which copy sends to recipients on channels that the list has gained since, for
// which no copy was made. It is the earliest copy that has not ended, so the last one always does
// it (NO-06). Recipients whom another copy has reached in the meantime, or who refused permanently
// in the same cycle, are not asked again.
func (r *round) inherit(ctx context.Context) error {
	all := r.copies()
	gained := func(channel string) bool { return !slices.Contains(all, channel) }
	r.heir, r.before = false, ""
	if all == nil || !slices.ContainsFunc(r.list.Recipients, func(p Recipient) bool { return !p.Disabled && gained(p.Channel) }) {
		return nil
	}
	records, err := r.c.store.Notification(ctx, r.n.Origin.Site, r.n.ID)
	if err != nil {
		return err
	}
	own, _ := ChannelOf(r.m.Destination)
	left := false // left to a copy that will begin an attempt later, and so reads the list later
	for i := range records {
		c := &records[i]
		if c.Message == r.m.ID {
			continue
		}
		if (c.Status == Pending || c.Status == Retrying) && slices.Index(all, c.Channel) < slices.Index(all, own) {
			left = left || !c.NextAttempt.IsZero()
			r.before = c.Channel
		}
		for _, t := range c.Targets {
			if k := (key{t.Channel, t.Address}); gained(t.Channel) && r.over(t) && r.done[k].Result != Accepted {
				r.done[k] = t
			}
		}
	}
	r.heir = !left && r.before == ""
	if left {
		r.before = ""
	}
	return nil
}

// lookTime limits the last read of the list.
const lookTime = 2 * time.Second

// lookAgain reads the list once more when all recipients have been asked, so that a recipient who
// was added in the meantime is not left out (F1-72). Other copies may have left recipients to this
// one because of the present list. A single copy uses the directory that it read at its start. lookAgain
// also runs after the attempt's time is over: everyone it asked has answered.
func (r *round) lookAgain(ctx context.Context) (Directory, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	read := r.c.books.Get
	if r.copies() != nil {
		read = r.c.books.Latest
	}
	book, err := read(ctx)
	if err != nil {
		return Directory{}, notAsked("lists", err)
	}
	if list, found := book.Lists[r.n.List]; found {
		r.list = list
	}
	r.remember(r.targets)
	if err := r.inherit(ctx); err != nil {
		return Directory{}, notAsked("copies", err)
	}
	return book, r.awaits()
}

// awaits puts this copy off while the copy that sends to the list's new recipients is under way.
// That copy may have read the list for the last time, and will have ended when this one tries
// again. Nobody who has accepted is asked again.
func (r *round) awaits() error {
	i := slices.IndexFunc(r.list.Recipients, func(p Recipient) bool {
		return !p.Disabled && !slices.Contains(r.copies(), p.Channel) && r.asks(p)
	})
	if r.before == "" || i < 0 {
		return nil
	}
	return &holdfast.Failure{
		Outcome: holdfast.Unreachable, Served: true, Code: "list_gained",
		Err: fmt.Errorf("the list has gained channel %s; the copy of channel %s, which is under way, will serve it", r.list.Recipients[i].Channel, r.before),
	}
}

// lacks reports whether this copy has open recipients.
func (r *round) lacks() bool {
	return slices.ContainsFunc(r.list.Recipients, func(p Recipient) bool { return !p.Disabled && r.covers(p.Channel) && r.asks(p) })
}
