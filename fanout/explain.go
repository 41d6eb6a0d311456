package fanout

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// Explanation says why a subscription got an event or not, as it was when the event came.
type Explanation struct {
	Subscription Subscription
	Matched      bool
	Why          string // it did not match
}

// Explain returns that for the subscriptions behind after, by id, at most limit.
func (b *Book) Explain(ctx context.Context, e *Stored, after string, limit int) ([]Explanation, error) {
	if err := b.refresh(ctx, freshFor); err != nil { // who tells what a delivery waits for asks Known
		return nil, err
	}
	list, err := b.store.SubscriptionsAt(ctx, e.Version, after, limit)
	if err != nil {
		return nil, err
	}
	if e.Data == nil {
		if e.Data, err = b.store.Data(ctx, e.Seq); err != nil {
			return nil, err
		}
	}
	asked := e.asked()
	all := make([]Explanation, len(list))
	for i := range list {
		all[i] = list[i].explain(asked)
	}
	return all, nil
}

func (s *Subscription) explain(e *filter.Event) Explanation {
	x := Explanation{Subscription: *s}
	f, err := s.filter()
	switch {
	case err != nil:
		x.Why = err.Error()
	case s.State == Disabled:
		x.Why = "it was disabled by " + cmp.Or(s.Actor, "somebody") + " since " + s.Since.UTC().Format(time.RFC3339)
		if s.Why != "" {
			x.Why += ": " + s.Why
		}
	default:
		why := filter.Explanation{Matched: true}
		if !s.every() {
			why = filter.Explain(filter.Filter{Topics: s.Topics}, e)
		}
		if why.Matched {
			why = filter.Explain(f, e)
		}
		if x.Matched = why.Matched; !x.Matched {
			x.Why = why.String()
		}
	}
	return x
}

// every reports whether the subscription is for all topics.
func (s *Subscription) every() bool { return len(s.Topics) == 1 && s.Topics[0] == filter.EveryTopic }

// filter returns the filter of a subscription.
func (s *Subscription) filter() (filter.Filter, error) {
	switch {
	case s.Fault != "":
		return filter.Filter{}, errors.New(s.Fault)
	case len(s.Filter) == 0:
		return filter.Filter{}, nil
	}
	return filter.Parse(s.Filter)
}

// compile makes ready what a subscription asks for. If that is not readable, it asks for nothing.
func (s *Subscription) compile() (filter.Compiled, error) {
	if s.Gone || s.State == Disabled {
		return filter.Compile(s.ID, nil, filter.Filter{})
	}
	f, err := s.filter()
	if err != nil {
		none, _ := filter.Compile(s.ID, nil, filter.Filter{})
		return none, err
	}
	return filter.Compile(s.ID, s.Topics, f)
}
