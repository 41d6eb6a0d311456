package fanout

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// CloudEvents is the topic of the events that come as CloudEvents by the Notificaties API.
const CloudEvents = "cloudevents"

// Abonnement is what a client of the Notificaties API has asked for with a subscription, in its words. It is
// what clients are shown. Topics and Filter of the subscription are made of it when it is set; an operator
// may change them afterwards.
type Abonnement struct {
	Owner             string             `json:"owner"` // id of the client that may change it
	Kanalen           []FilterGroup      `json:"kanalen,omitempty"`
	SendCloudEvents   bool               `json:"sendCloudevents,omitempty"`
	CloudEventFilters []CloudEventFilter `json:"cloudeventFilters,omitempty"`
}

// FilterGroup asks for the notifications of one kanaal.
type FilterGroup struct {
	Naam    string            `json:"naam"`
	Filters map[string]string `json:"filters,omitempty"` // by attribute; * is any value
}

// CloudEventFilter asks for CloudEvents.
type CloudEventFilter struct {
	TypeSubstring string            `json:"typeSubstring"`
	Filters       map[string]string `json:"filters,omitempty"` // by member of the data
}

// MaxGroups bounds the groups of filters of an abonnement: each is a way in which its filter can hold.
const MaxGroups = filter.MaxWays

// Other bounds of an abonnement.
const (
	maxConditions = 2000 // of its filter
	maxAsked      = 256 << 10
	maxOwner      = 50
)

// Ask sets the abonnement of a subscription, and what it asks for. One without groups asks for nothing. The error wraps
// ErrInvalid.
func (s *Subscription) Ask(a *Abonnement) error {
	var topics []string
	var ways []filter.Filter
	for _, g := range a.Kanalen {
		topics = append(topics, g.Naam)
		ways = append(ways, filter.Filter{Topics: []string{g.Naam}, Attributes: g.Filters})
	}
	if a.SendCloudEvents {
		for _, g := range a.CloudEventFilters {
			topics = append(topics, CloudEvents)
			ways = append(ways, g.filter())
		}
	}
	f := filter.Filter{Any: ways}
	if len(ways) == 0 {
		f.Not = &filter.Filter{}
	}
	slices.Sort(topics)
	if topics = slices.Compact(topics); len(topics) == 0 || len(topics) > maxTopics {
		topics = []string{filter.EveryTopic}
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	s.Abonnement, s.Topics, s.Filter = a, topics, text
	return invalid(s.checkAbonnement(), s.checkFilter())
}

func (g *CloudEventFilter) filter() filter.Filter {
	part, _ := json.Marshal(g.TypeSubstring) // a text always can be
	return filter.Filter{
		Topics: []string{CloudEvents}, Data: g.Filters,
		Where: []filter.Test{{Field: "type", Op: filter.Contains, Value: filter.Value(part)}},
	}
}

// checkAbonnement bounds what is kept of a client's words.
func (s *Subscription) checkAbonnement() error {
	a := s.Abonnement
	if a == nil {
		return nil
	}
	bad := func(field, value, problem string) error {
		return &holdfast.FieldError{Field: "abonnement." + field, Value: fmt.Sprintf("%.80s", value), Problem: problem}
	}
	if a.Owner == "" || len(a.Owner) > 4*maxOwner {
		return bad("owner", a.Owner, fmt.Sprintf("must be the id of a client, of at most %d characters", maxOwner))
	}
	if n := len(a.Kanalen) + len(a.CloudEventFilters); n > MaxGroups {
		return bad("kanalen", fmt.Sprint(n), fmt.Sprintf("are more than %d groups of filters", MaxGroups))
	}
	for i, g := range a.Kanalen {
		if err := checkName("abonnement.kanalen["+fmt.Sprint(i)+"].naam", g.Naam); err != nil {
			return err
		}
	}
	return nil
}

// longest returns how many bytes the filter may have.
func (s *Subscription) longest() int {
	if s.Abonnement != nil {
		return maxAsked
	}
	return maxFilter
}

// limits returns those of the filter: one that is made of groups has a branch for each.
func (s *Subscription) limits() filter.Limits {
	if s.Abonnement != nil {
		return filter.Limits{Tests: maxConditions}
	}
	return filter.Limits{}
}
