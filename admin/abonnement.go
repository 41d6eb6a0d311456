package admin

import (
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

func showAbonnement(a *fanout.Abonnement) *api.Abonnement {
	if a == nil {
		return nil
	}
	out := &api.Abonnement{Owner: a.Owner, SendCloudEvents: a.SendCloudEvents}
	for _, g := range a.Kanalen {
		out.Kanalen = append(out.Kanalen, api.FilterGroup(g))
	}
	for _, g := range a.CloudEventFilters {
		out.CloudEventFilters = append(out.CloudEventFilters, api.CloudEventFilter(g))
	}
	return out
}

// readAbonnement takes over the abonnement of a request. Where the request says neither topics nor a filter,
// these follow from it.
func readAbonnement(spec *api.SubscriptionSpec, one *fanout.Subscription) []api.Fault {
	if spec.Abonnement == nil {
		return nil
	}
	a := &fanout.Abonnement{Owner: spec.Abonnement.Owner, SendCloudEvents: spec.Abonnement.SendCloudEvents}
	for _, g := range spec.Abonnement.Kanalen {
		a.Kanalen = append(a.Kanalen, fanout.FilterGroup(g))
	}
	for _, g := range spec.Abonnement.CloudEventFilters {
		a.CloudEventFilters = append(a.CloudEventFilters, fanout.CloudEventFilter(g))
	}
	if one.Abonnement = a; len(spec.Topics) > 0 || len(spec.Filter) > 0 {
		return nil
	}
	return api.FaultsOf(one.Ask(a))
}
