package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// categoryOf returns the category of a destination. Empty: it has none, or is unknown. The lane of a channel
// has the category of notifications.
func (s *Service) categoryOf(destination string) holdfast.Category {
	if _, is := notify.ChannelOf(destination); is {
		return holdfast.CategoryNotification
	}
	d, _ := s.destination(destination)
	return d.Category
}

// toCentral reports whether a request is a notification that this node forwards. If so, it fills in the
// fields that such a request may leave out.
func (s *Service) toCentral(req *api.NewMessage) bool {
	to := req.Destination
	if to == "" && req.Category == string(holdfast.CategoryNotification) {
		to = notify.Central
	}
	if s.categoryOf(to) != holdfast.CategoryNotification {
		return false
	}
	req.Destination = to
	if req.Endpoint == "" {
		req.Endpoint = notify.Endpoint
	}
	return true
}

// checkCategory compares a request's category with that of its destination.
func (s *Service) checkCategory(req *api.NewMessage) []api.Fault {
	d, known := s.destination(req.Destination)
	if req.Category == "" || !known || string(d.Category) == req.Category {
		return nil
	}
	is := "a peer, which has no category"
	if d.Category != "" {
		is = "of category " + string(d.Category)
	}
	return []api.Fault{{Field: "category", Value: api.Clip(req.Category), Problem: fmt.Sprintf("does not match destination %s, which is %s; leave it out, or name another destination", req.Destination, is)}}
}

// inCategory lists the destinations of a category by name.
func (s *Service) inCategory(category string) (names []string, faults []api.Fault) {
	known := []string{string(holdfast.CategoryCachedDBWrite), string(holdfast.CategoryExternalSystem), string(holdfast.CategoryNotification)}
	for _, d := range s.Destinations() {
		if d.Category == "" {
			continue
		}
		known = append(known, string(d.Category))
		if string(d.Category) == category {
			names = append(names, d.Name)
		}
	}
	if category == string(holdfast.CategoryNotification) {
		for lane := range s.Outbox.Counts().Lanes {
			if _, is := notify.ChannelOf(lane); is {
				names = append(names, lane)
			}
		}
	}
	if slices.Sort(known); !slices.Contains(known, category) {
		return nil, []api.Fault{{Field: "category", Value: api.Clip(category), Problem: "is not a category of this node; its categories are " + strings.Join(slices.Compact(known), ", ")}}
	}
	slices.Sort(names)
	return names, nil
}
