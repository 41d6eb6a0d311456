package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// How long a token of a subscriber is valid.
const (
	usualPortal   = time.Hour
	longestPortal = 24 * time.Hour
)

// isSubscriber reports whether the caller is one who receives events, and no operator.
func isSubscriber(ctx context.Context) bool {
	may := Granted(ctx)
	return may.Can(api.Portal)
}

// someone returns who did something, as the caller may know: a subscriber learns no names of operators.
func someone(ctx context.Context, actor string) string {
	if isSubscriber(ctx) && actor != "" && actor != fanout.Subscriber && actor != Actor(ctx) {
		return "operator"
	}
	return actor
}

// checkPortal returns what is wrong with a new token of a subscriber: it ends soon, and the subscriptions that
// it names exist. A token for one that is still to be made would be for whoever takes the id.
func (t Tokens) checkPortal(ctx context.Context, may *api.Grant, lasts *time.Duration) ([]api.Fault, error) {
	if !may.Can(api.Portal) {
		return nil, nil
	}
	var faults []api.Fault
	if *lasts == 0 {
		*lasts = usualPortal
	}
	if *lasts > longestPortal {
		faults = append(faults, api.Fault{Field: "for", Value: formatDuration(*lasts), Problem: "must be at most " + formatDuration(longestPortal) + " with portal"})
	}
	for i, lane := range may.Destinations {
		id, _ := fanout.SubscriptionOf(lane)
		_, err := Subscriptions(t).find(ctx, id)
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusNotFound {
			faults = append(faults, api.Fault{Field: fmt.Sprintf("destinations[%d]", i), Value: api.Clip(lane), Problem: "is no subscription that there is"})
		} else if err != nil {
			return nil, err
		}
	}
	return faults, nil
}

// named returns the subscriptions of a list that names them by their destinations, which are in order.
func (s Subscriptions) named(ctx context.Context, destinations []string, after string, limit int) (out api.SubscriptionPage, err error) {
	out.Subscriptions = []api.Subscription{}
	for _, to := range destinations {
		id, ok := fanout.SubscriptionOf(to)
		if !ok || id <= after {
			continue
		}
		one, found, err := s.Hub.Book.Subscription(ctx, id)
		switch {
		case err != nil:
			return out, s.refuse(ctx, "list subscriptions", err)
		case !found || !s.visible(ctx, &one):
		case len(out.Subscriptions) == limit:
			out.Next = out.Subscriptions[limit-1].ID
			return out, nil
		default:
			out.Subscriptions = append(out.Subscriptions, s.show(ctx, &one))
		}
	}
	return out, nil
}

// mayPass returns why a subscriber may not change the state: what an operator has set is not theirs to change.
func mayPass(ctx context.Context, one *fanout.Subscription) *api.Problem {
	if !isSubscriber(ctx) || one.State == fanout.Active || one.State == fanout.Paused && one.Actor == fanout.Subscriber {
		return nil
	}
	return api.WrongState.Problem(fmt.Sprintf("subscription %s is %s by its operator: ask there", api.Clip(one.ID), one.State),
		api.Fault{Field: "state", Value: one.State.String(), Problem: "was set by an operator"})
}

// ofFormer reports whether a message was for a subscription that is deleted, while another one may have its id.
// gone is what holds if there is none now.
func (s *Service) ofFormer(ctx context.Context, r *holdfast.Record, gone bool) (bool, error) {
	id, ok := fanout.SubscriptionOf(r.Message.Destination)
	if !ok || s.Hub == nil {
		return false, nil
	}
	one, found, err := s.Hub.Book.Subscription(ctx, id)
	if err != nil || !found {
		return gone, err
	}
	return r.Created.Before(one.Created), nil
}

// own narrows a query of one destination to what a subscriber may see: a former subscription may have had the same
// id. has says that there is a subscription.
func (m Messages) own(ctx context.Context, q *holdfast.Query) (has bool, err error) {
	id, ok := fanout.SubscriptionOf(q.Destination)
	if !isSubscriber(ctx) || !ok || m.Hub == nil {
		return true, nil
	}
	one, has, err := m.Hub.Book.Subscription(ctx, id)
	if has && one.Created.After(q.Since) {
		q.Since = one.Created
	}
	return has, err
}

// findOwn returns the event that a subscriber wants again. It must have been for their subscription when it
// came.
func (s Events) findOwn(ctx context.Context, source, event string, req *api.ResendRequest) (e fanout.Stored, err error) {
	if req.MatchNow {
		return e, api.Faulty(api.Fault{Field: "matchNow", Value: "true", Problem: "is for operators: a subscriber gets again what it got"})
	}
	if req.Subscription == "" {
		return e, api.Faulty(api.Fault{Field: "subscription", Problem: "is missing"})
	}
	one, err := Subscriptions(s).find(ctx, req.Subscription)
	if err != nil {
		return e, err
	}
	return s.pick(ctx, source, event, func(e *fanout.Stored) (bool, error) {
		list, err := s.Hub.Book.Store().DeliveriesTo(ctx, e.Seq, one.ID, one.ID)
		for i := range list {
			if same, err := s.Hub.Book.Same(ctx, &one, list[i].Version); err != nil || same {
				return same, err
			}
		}
		return false, err
	})
}
