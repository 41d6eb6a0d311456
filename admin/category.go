package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// categoryOf is the category of a destination; empty: it has none, or is not
// known any more. The lane of a channel has that of notifications.
func (s *Service) categoryOf(destination string) holdfast.Category {
	if _, is := notify.ChannelOf(destination); is {
		return holdfast.CategoryNotification
	}
	d, _ := s.destination(destination)
	return d.Category
}

// toCentral says whether a request is a notification that this node forwards,
// and fills in what such a request need not say.
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

// checkCategory compares what a request says with what its destination is.
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

// inCategory are the destinations of a category, by name.
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
		return nil, []api.Fault{{Field: "category", Value: api.Clip(category), Problem: "is not a category of this node; there are " + strings.Join(slices.Compact(known), ", ")}}
	}
	slices.Sort(names)
	return names, nil
}

// pageOfCategory lists the messages of some destinations, one destination after
// the other: each is a list of its own in the store. A position is the store's
// with the destination's name after an @.
func (m Messages) pageOfCategory(ctx context.Context, q holdfast.Query, names []string) (out api.MessagePage, err error) {
	after, name, found := strings.Cut(q.After, "@")
	if q.After != "" && (!found || name == "") {
		return out, api.Faulty(api.Fault{Field: "after", Value: api.Clip(q.After), Problem: "is not a place that a page of this list gave; take next of the page before, as it is"})
	}
	var all holdfast.Page
	limit := cmp.Or(q.Limit, 50) // as the store has it
	for _, d := range names {
		if d < name { // it was listed, or is new since then
			continue
		}
		if d != name {
			after = ""
		}
		if len(all.Records) == limit {
			all.Next = "@" + d
			break
		}
		q.Destination, q.After, q.Limit = d, after, limit-len(all.Records)
		page, err := m.outbox().List(ctx, q)
		if err != nil {
			return out, m.refuse(ctx, "list messages", err)
		}
		all.Records = append(all.Records, page.Records...)
		if page.Next != "" {
			all.Next = page.Next + "@" + d
			break
		}
	}
	return m.pageOf(all), nil
}
