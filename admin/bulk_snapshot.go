package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// snapshot is what a filter has found.
type snapshot struct {
	items  []string
	known  map[string]bool // a notification stands in its list once for each channel
	counts map[api.BulkCount]int64
	most   int
}

// add takes a row, unless there are enough.
func (s *snapshot) add(item, of, status string) {
	if s.known[item] || len(s.items) >= s.most {
		return
	}
	s.known[item] = true
	s.items = append(s.items, item)
	s.counts[api.BulkCount{Of: of, Status: status}]++
}

func (s *snapshot) counted() (list []api.BulkCount) {
	for c, n := range s.counts {
		c.Count = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b api.BulkCount) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Status, b.Status))
	})
	return list
}

// snapshotPage is how many rows of a list are read at once.
const snapshotPage = 500

// snapshot reads the list of a request to its end, or to the first so many.
func (b Bulk) snapshot(ctx context.Context, req *api.BulkRequest) (*snapshot, error) {
	s := &snapshot{known: map[string]bool{}, counts: map[api.BulkCount]int64{}, most: MostBulk + 1}
	if req.First > 0 {
		s.most = int(min(req.First, MostBulk+1))
	}
	page := b.messages
	switch req.List {
	case "notifications":
		page = b.notifications
	case "events":
		page = b.events
	}
	for after := ""; ; {
		next, err := page(ctx, req, after, s)
		if err != nil {
			return nil, err
		}
		if next == "" || len(s.items) >= s.most {
			break
		}
		after = next
	}
	if len(s.items) > MostBulk {
		return nil, api.Faulty(api.Fault{Field: "filter", Problem: fmt.Sprintf("finds more than %d, which is the most for one action; narrow it, or say first", MostBulk)})
	}
	slices.Reverse(s.items) // the oldest first, as they were accepted (F1-31)
	return s, nil
}

func (b Bulk) messages(ctx context.Context, req *api.BulkRequest, after string, s *snapshot) (next string, err error) {
	f := &req.Filter
	q := MessageQuery{States: f.Status, Destination: f.Destination, Category: f.Category, After: after, Limit: snapshotPage}
	q.From, q.To, q.Cause, q.Code, q.Error = f.From, f.To, f.Cause, f.Code, f.Error
	if len(q.States) == 0 {
		for _, state := range startsFrom(req) {
			q.States = append(q.States, state.String())
		}
	}
	p, err := Messages{Service: b.Service}.List(ctx, &q)
	for i := range p.Messages {
		s.add(p.Messages[i].ID, p.Messages[i].Destination, p.Messages[i].State)
	}
	return p.Next, err
}

// startsFrom returns the states of the messages that a request without a status is about. A cause is why messages
// are parked.
func startsFrom(req *api.BulkRequest) []holdfast.State {
	verb, _ := verbNamed(req.Verb)
	if req.Filter.Cause != "" && verb.From(holdfast.Parked) {
		return []holdfast.State{holdfast.Parked}
	}
	return verb.States()
}

func (b Bulk) notifications(ctx context.Context, req *api.BulkRequest, after string, s *snapshot) (next string, err error) {
	f := &req.Filter
	q := NotificationQuery{
		Status: f.Status, Channel: cmp.Or(f.Channel, req.Channel), List: f.List, Type: f.Type, Site: f.Site, Subject: f.Subject, From: f.From, To: f.To, After: after, Limit: snapshotPage,
	}
	if len(q.Status) == 0 {
		verb, _ := verbNamed(req.Verb)
		for _, status := range StatusesFor(verb) {
			q.Status = append(q.Status, string(status))
		}
	}
	p, err := Notifications(b).List(ctx, &q)
	for i := range p.Notifications {
		n := &p.Notifications[i]
		s.add(n.Site+"/"+n.ID, n.Channel, n.Status)
	}
	return p.Next, err
}

// notification does the verb to those copies of a notification that the filter finds: others of it go on.
func (b Bulk) notification(ctx context.Context, req *api.BulkRequest, item string) (err error) {
	site, id, _ := strings.Cut(item, "/")
	channel := cmp.Or(req.Channel, req.Filter.Channel)
	d := rescheduleCopies(channel, left(req))
	switch req.Verb {
	case "retry":
		d = retryCopies(channel)
	case "discard":
		d = discardCopies(channel)
	}
	d.only, _ = notifyStatuses(req.Filter.Status) // Add has read it
	_, err = Notifications(b).decideCopies(ctx, site, id, nil, d)
	return err
}
