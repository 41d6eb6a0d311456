package notify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
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
// whichever is the last one does (NO-06). Whom another one has reached meanwhile, or who
// refused it for good in the same cycle, is not asked again.
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
	left := false // to a copy that begins an attempt, and so looks at the list, after now
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

// lookTime bounds the last look at the list.
const lookTime = 2 * time.Second

// lookAgain reads the list once more when all are asked, so that nobody is left
// out who has come onto it meanwhile (F1-72). Other copies may have left people to
// this one by what the list is now; a copy that is alone believes the book as at
// its start. An attempt whose time is over looks too: all that it asked have answered.
func (r *round) lookAgain(ctx context.Context) (Book, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	read := r.c.books.Book
	if r.copies() != nil {
		read = r.c.books.Latest
	}
	book, err := read(ctx)
	if err != nil {
		return Book{}, notAsked("lists", err)
	}
	if list, found := book.Lists[r.n.List]; found {
		r.list = list
	}
	r.remember(r.targets)
	if err := r.inherit(ctx); err != nil {
		return Book{}, notAsked("copies", err)
	}
	return book, r.awaits()
}

// awaits puts this copy off where the one that is to ask whom the list has gained
// is under way: it may have looked for the last time, and ended when this one
// comes back. Nobody who has accepted is asked again.
func (r *round) awaits() error {
	i := slices.IndexFunc(r.list.Recipients, func(p Recipient) bool {
		return !p.Disabled && !slices.Contains(r.copies(), p.Channel) && r.asks(p)
	})
	if r.before == "" || i < 0 {
		return nil
	}
	return &holdfast.Failure{
		Outcome: holdfast.Unreachable, Served: true, Code: "list_gained",
		Err: fmt.Errorf("the list has gained channel %s, which the copy of channel %s is to serve: it is under way", r.list.Recipients[i].Channel, r.before),
	}
}

// lacks says whether somebody is still to be asked by this copy.
func (r *round) lacks() bool {
	return slices.ContainsFunc(r.list.Recipients, func(p Recipient) bool { return !p.Disabled && r.covers(p.Channel) && r.asks(p) })
}
