package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/bulk"
)

// Bulk offers bulk actions: one verb for all that a filter finds.
type Bulk struct{ *Service }

// MostBulk is how many rows one action has at most.
const MostBulk = 100_000

// gatherAtOnce is how many rows of a snapshot are written at once.
const gatherAtOnce = 1000

// Add takes a snapshot of what the filter finds, and makes an action of it. A dry run only counts.
func (b Bulk) Add(ctx context.Context, req *api.BulkRequest, wrong ...api.Fault) (out api.Bulk, err error) {
	return b.AddAs(ctx, string(holdfast.NewID()), req, wrong...)
}

// AddAs is Add with an id that the caller has made (holdfast.NewID). If an action has it already, nothing is added, and
// that one is returned: a request that is sent again is no second action.
func (b Bulk) AddAs(ctx context.Context, id string, req *api.BulkRequest, wrong ...api.Fault) (out api.Bulk, err error) {
	if b.Bulks == nil {
		return out, noBulk()
	}
	if wrong = append(wrong, b.check(req)...); len(wrong) > 0 {
		return out, api.Faulty(wrong...)
	}
	began := time.Now()
	found, err := b.snapshot(ctx, req)
	if err != nil {
		return out, err
	}
	if req.DryRun {
		return api.Bulk{List: req.List, Verb: req.Verb, State: "dry-run", Total: int64(len(found.items)), Rate: req.Rate, Request: *req, Actor: Actor(ctx), Counts: found.counted()}, nil
	}
	text, err := json.Marshal(keptRequest{BulkRequest: *req, Took: time.Since(began)})
	if err != nil {
		return out, b.refuse(ctx, "add the bulk action", err)
	}
	a := bulk.Action{ID: id, List: req.List, Verb: req.Verb, Request: string(text), Actor: Actor(ctx), Rate: req.Rate}
	if err := b.Bulks.AddBulk(ctx, &a); errors.Is(err, holdfast.ErrConflict) {
		return b.Get(ctx, id)
	} else if err != nil {
		return out, b.refuse(ctx, "add the bulk action", err)
	}
	if err := b.write(ctx, &a, found.items, req.Paused); err != nil {
		return out, b.refuse(ctx, "add the bulk action", err)
	}
	b.noted(ctx, "bulk action added", slog.String("bulk_id", a.ID), slog.String("list", a.List), slog.String("verb", a.Verb), slog.Int("rows", len(found.items)), slog.String("reason", req.Reason))
	return b.Get(ctx, a.ID)
}

// write writes the rows of an action. It runs only when all are there.
func (b Bulk) write(ctx context.Context, a *bulk.Action, items []string, paused bool) error {
	for after := 0; after < len(items); after += gatherAtOnce {
		if err := b.Bulks.GatherBulk(ctx, a.ID, int64(after), items[after:min(after+gatherAtOnce, len(items))]); err != nil {
			return err
		}
	}
	to := bulk.Running
	if paused {
		to = bulk.Paused
	}
	return b.Bulks.MoveBulk(ctx, a.ID, to, bulk.Gathering)
}

// check reports the faults of a request. It makes the time of a reschedule an instant, which the rows share.
func (b Bulk) check(req *api.BulkRequest) (faults []api.Fault) {
	add := func(field, value, problem string) {
		faults = append(faults, api.Fault{Field: field, Value: api.Clip(value), Problem: problem})
	}
	f := &req.Filter
	if req.List != "events" {
		for field, given := range map[string]bool{"filter.topic": f.Topic != "", "subscription": req.Subscription != "", "matchNow": req.MatchNow} {
			if given {
				add(field, "", "is of events; leave it out")
			}
		}
	}
	if req.List != "messages" {
		for field, value := range map[string]string{"cause": f.Cause, "code": f.Code, "error": f.Error} {
			if value != "" {
				add("filter."+field, value, "is of messages; leave it out")
			}
		}
	}
	switch req.List {
	case "events":
		return append(faults, b.checkResend(req)...)
	case "messages":
		for field, value := range map[string]string{"channel": f.Channel, "list": f.List, "type": f.Type, "site": f.Site, "subject": f.Subject} {
			if value != "" {
				add("filter."+field, value, "is of notifications; leave it out")
			}
		}
		if req.Channel != "" {
			add("channel", req.Channel, "is of notifications; leave it out")
		}
	case "notifications":
		for field, value := range map[string]string{"destination": f.Destination, "category": f.Category} {
			if value != "" {
				add("filter."+field, value, "is of messages; leave it out")
			}
		}
	default:
		add("list", req.List, "is not a list; write messages, notifications or events")
	}
	if _, known := verbNamed(req.Verb); !known {
		add("verb", req.Verb, "is not known; write retry, discard, run or reschedule")
	}
	faults = append(faults, negative(req)...)
	faults = append(faults, checkLine("reason", req.Reason, mostLongText)...)
	if req.Verb == "reschedule" {
		now := time.Now()
		in, wrong := waitUntil(&api.RescheduleRequest{In: req.In, At: req.At}, now)
		faults = append(faults, wrong...)
		req.In, req.At = "", now.Add(in).UTC().Format(time.RFC3339Nano)
	} else if req.In != "" || req.At != "" {
		add("verb", req.Verb, "takes no time; leave in and at out")
	}
	if req.Force && (req.Verb != "retry" || req.List != "messages") {
		add("force", "true", "goes with retry of messages; leave it out")
	}
	return faults
}

// negative reports numbers below zero.
func negative(req *api.BulkRequest) (faults []api.Fault) {
	for field, n := range map[string]int64{"first": req.First, "rate": req.Rate} {
		if n < 0 {
			faults = append(faults, api.Fault{Field: field, Value: fmt.Sprint(n), Problem: "must not be negative"})
		}
	}
	return faults
}

func verbNamed(name string) (holdfast.Verb, bool) {
	switch name {
	case "retry":
		return holdfast.VerbRequeue, true
	case "discard":
		return holdfast.VerbDiscard, true
	case "run", "reschedule":
		return holdfast.VerbReschedule, true
	}
	return 0, false
}

func noBulk() *api.Problem { return api.Unsupported.Problem("this node keeps no bulk actions") }

// Do does a row of an action. It is the Do of a bulk.Runner.
func (b Bulk) Do(ctx context.Context, a *bulk.Action, item string) (refusal string, err error) {
	req, readable := requestOf(a)
	if !readable {
		return "the action is damaged, and cannot be read", nil
	}
	ctx = As(ctx, a.Actor, api.Everything()) // who is narrowed cannot add an action
	switch a.List {
	case "messages":
		err = b.message(ctx, a, &req, item)
	case "events":
		err = b.event(ctx, a.ID, &req.BulkRequest, item)
	default:
		err = b.notification(ctx, &req.BulkRequest, item)
	}
	// What is wrong with the row is said once; what is wrong with the node may be over soon.
	switch p, ok := errors.AsType[*api.Problem](err); {
	case ok && (p.Status < http.StatusInternalServerError || p.Status == http.StatusNotImplemented):
		return p.Detail, nil
	case ok && (p.Status == http.StatusServiceUnavailable || p.Status == http.StatusInsufficientStorage):
		return "", fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)
	}
	return "", err
}

func (b Bulk) message(ctx context.Context, a *bulk.Action, req *keptRequest, id string) (err error) {
	m := Messages{Service: b.Service}
	if req.Filter.Cause != "" {
		if err := m.still(ctx, id, req, a.Created); err != nil {
			return err
		}
	}
	switch req.Verb {
	case "retry":
		_, err = m.Retry(ctx, id, &api.RetryRequest{Force: req.Force})
	case "discard":
		_, err = m.Discard(ctx, id)
	default:
		_, err = m.rescheduleIn(ctx, id, left(&req.BulkRequest))
	}
	return err
}

// left returns how long it is until the time of a reschedule; for run, and afterwards, it is zero.
func left(req *api.BulkRequest) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, req.At)
	if err != nil {
		return 0
	}
	return max(0, time.Until(at))
}

// Pause holds an action until it is resumed. Rows in hand are done.
func (b Bulk) Pause(ctx context.Context, id string) (api.Bulk, error) {
	return b.move(ctx, id, bulk.Paused, bulk.Running)
}

// Resume lets a paused action go on.
func (b Bulk) Resume(ctx context.Context, id string) (api.Bulk, error) {
	return b.move(ctx, id, bulk.Running, bulk.Paused)
}

// Cancel ends an action. Rows that are not done stay as they are.
func (b Bulk) Cancel(ctx context.Context, id string) (api.Bulk, error) {
	return b.move(ctx, id, bulk.Cancelled, bulk.Running, bulk.Paused, bulk.Gathering)
}

func (b Bulk) move(ctx context.Context, id string, to bulk.State, from ...bulk.State) (out api.Bulk, err error) {
	if b.Bulks == nil {
		return out, noBulk()
	}
	moved := b.Bulks.MoveBulk(ctx, id, to, from...)
	if moved != nil && !errors.Is(moved, holdfast.ErrState) {
		return out, b.lost(ctx, id, moved)
	}
	if out, err = b.Get(ctx, id); err == nil && moved != nil && out.State != string(to) {
		return out, api.WrongState.Problem(fmt.Sprintf("bulk action %s is %s", id, out.State), api.Fault{Field: "state", Value: out.State, Problem: "does not lead to " + string(to)})
	}
	return out, err
}

// lost is the refusal for an action that is not there.
func (b Bulk) lost(ctx context.Context, id string, err error) *api.Problem {
	if errors.Is(err, holdfast.ErrNotFound) {
		return api.NotFound.Problem(fmt.Sprintf("there is no bulk action %q here; it never was, or it ended 30 days ago", api.Clip(id)), api.Fault{Field: "id", Value: api.Clip(id), Problem: "is not kept here"})
	}
	return b.refuse(ctx, "change the bulk action", err)
}

// Get returns one action.
func (b Bulk) Get(ctx context.Context, id string) (out api.Bulk, err error) {
	if b.Bulks == nil {
		return out, noBulk()
	}
	a, err := b.Bulks.Bulk(ctx, id)
	if err != nil {
		return out, b.lost(ctx, id, err)
	}
	return bulkOf(&a), nil
}

// List returns one page of actions, the newest first.
func (b Bulk) List(ctx context.Context, after string, limit int) (p api.BulkPage, err error) {
	if b.Bulks == nil {
		return p, noBulk()
	}
	limit = min(cmp.Or(max(limit, 0), 50), 500)
	list, err := b.Bulks.Bulks(ctx, after, limit)
	if err != nil {
		return p, b.refuse(ctx, "list bulk actions", err)
	}
	p.Actions = make([]api.Bulk, len(list))
	for i := range list {
		p.Actions[i] = bulkOf(&list[i])
	}
	if len(list) == limit {
		p.Next = list[limit-1].ID
	}
	return p, nil
}

// Rows returns one page of what became of the rows of an action.
func (b Bulk) Rows(ctx context.Context, id string, after int64, limit int) (p api.BulkRowPage, err error) {
	if _, err := b.Get(ctx, id); err != nil {
		return p, err
	}
	limit = min(cmp.Or(max(limit, 0), 100), 1000)
	list, err := b.Bulks.BulkRows(ctx, id, after, limit)
	if err != nil {
		return p, b.refuse(ctx, "list rows of the bulk action", err)
	}
	p.Rows = make([]api.BulkRow, len(list))
	for i, r := range list {
		p.Rows[i] = api.BulkRow{Seq: r.Seq, Item: r.Item, Outcome: string(r.Outcome), Detail: r.Detail}
	}
	if len(list) == limit {
		p.Next = list[limit-1].Seq
	}
	return p, nil
}

func bulkOf(a *bulk.Action) api.Bulk {
	out := api.Bulk{
		ID: a.ID, List: a.List, Verb: a.Verb, State: string(a.State), Total: a.Total, Done: a.Done, Refused: a.Refused, Rate: a.Rate, Actor: a.Actor,
		Created: instant(a.Created), Ended: instant(a.Ended),
	}
	req, _ := requestOf(a)
	out.Request = req.BulkRequest
	return out
}

// keptRequest is a request as it stands in the store.
type keptRequest struct {
	api.BulkRequest

	Took time.Duration `json:"took"` // from where its rows were looked up until the action was written
}

func requestOf(a *bulk.Action) (req keptRequest, readable bool) {
	readable = json.Unmarshal([]byte(a.Request), &req) == nil
	return req, readable
}
