package demo

import (
	"errors"
	"fmt"
)

// Tally counts one sort of thing.
type Tally struct {
	Sent       int `json:"sent"`       // accepted by a site
	Waiting    int `json:"waiting"`    // of these, those without an effect so far that were not refused
	Delivered  int `json:"delivered"`  // of these, those with an effect
	Refused    int `json:"refused"`    // of these, those that were refused for good, and set aside by a node that says why
	Duplicates int `json:"duplicates"` // repeats that were recognised
	Lost       int `json:"lost"`       // at the end: neither delivered nor refused
	Doubled    int `json:"doubled"`    // with more than one effect
	Foreign    int `json:"foreign"`    // with an effect, but never sent
}

// err lists the broken promises.
func (t *Tally) err(what string) error {
	var all []error
	for _, f := range []struct {
		n    int
		text string
	}{
		{t.Lost, "accepted %s were neither delivered nor refused with a reason"},
		{t.Doubled, "%s took effect more than once"},
		{t.Foreign, "%s took effect and were never sent"},
	} {
		if f.n > 0 {
			all = append(all, fmt.Errorf("%d "+f.text, f.n, what))
		}
	}
	return errors.Join(all...)
}

// named is a tally with the name of its sort.
type named struct {
	name  string
	tally *Tally
}

func (c *Counts) tallies() []named {
	return []named{{"notifications", &c.Notifications}, {"mails", &c.Mails}, {"calls", &c.Calls}, {"writes", &c.Writes}}
}

// sum adds one number of all tallies to the number of the orders.
func (c *Counts) sum(orders int, of func(t *Tally) int) int {
	for _, t := range c.tallies() {
		orders += of(t.tally)
	}
	return orders
}

func (c *Counts) lost() int    { return c.sum(c.Lost, func(t *Tally) int { return t.Lost }) }
func (c *Counts) waiting() int { return c.sum(c.Waiting, func(t *Tally) int { return t.Waiting }) }
func (c *Counts) doubled() int { return c.sum(c.Doubled, func(t *Tally) int { return t.Doubled }) }
func (c *Counts) foreign() int { return c.sum(c.Foreign, func(t *Tally) int { return t.Foreign }) }

// refused returns how many things were refused for good. A mail counts with its notification.
func (c *Counts) refused() int { return c.Notifications.Refused + c.Calls.Refused + c.Writes.Refused }

func (c *Counts) duplicates() int {
	return c.sum(c.DuplicatesRefused, func(t *Tally) int { return t.Duplicates })
}

// account is the book of one sort, with its tally. The ledger's lock guards it.
type account struct {
	items map[string]*item
	tally *Tally
}

type item struct {
	tried, accepted bool
	refused, parked bool // by its receiver; by a node
	effects         int
	key             string   // identifies a repeat of the effect
	times           int      // how often the effect came, as its place reports
	to              []string // recipients of a notification
}

func newAccount(t *Tally) account { return account{map[string]*item{}, t} }

// change books one item.
func (a account) change(id string, f func(i *item)) {
	i, ok := a.items[id]
	if !ok {
		i = &item{}
		a.items[id] = i
	}
	a.weigh(i, -1)
	f(i)
	a.weigh(i, +1)
}

func (a account) weigh(i *item, by int) {
	done, aside := i.effects > 0, i.refused && i.parked
	for _, c := range []struct {
		counted bool
		in      *int
	}{
		{i.accepted, &a.tally.Sent},
		{i.accepted && !done && !aside, &a.tally.Waiting},
		{i.accepted && done, &a.tally.Delivered},
		{i.accepted && !done && aside, &a.tally.Refused},
		{i.effects > 1, &a.tally.Doubled},
		{done && !i.tried, &a.tally.Foreign},
	} {
		if c.counted {
			*c.in += by
		}
	}
}

// effect books an effect, unless it repeats the same key.
func (a account) effect(id, key string) (repeat bool) {
	a.change(id, func(i *item) {
		if repeat = i.effects > 0 && i.key == key; repeat {
			a.tally.Duplicates++
			return
		}
		i.key, i.effects, i.times = key, i.effects+1, 1
	})
	return repeat
}

// done reports whether there was an effect.
func (a account) done(id string) bool {
	i, ok := a.items[id]
	return ok && i.effects > 0
}

// unanswered returns how many were sent but not accepted yet.
func (a account) unanswered() (n int) {
	for _, i := range a.items {
		if i.tried && !i.accepted {
			n++
		}
	}
	return n
}
