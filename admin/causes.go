package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

const (
	mostLooked = 100_000
	mostCauses = 500
	mostGroups = 10 * mostCauses // kept apart while messages are looked at
	// usualLook is how long a list of causes looks at messages, unless it is asked for longer.
	usualLook   = 200 * time.Millisecond
	longestLook = 10 * time.Second
)

// CauseQuery narrows the messages whose causes are listed. Zero fields do not narrow.
type CauseQuery struct {
	Destination string
	Category    string // excludes Destination
	Within      string // how long to look; empty: 200ms; at most 10s
}

// Causes groups the newest parked messages by why they are parked.
func (m Messages) Causes(ctx context.Context, of *CauseQuery) (out api.CauseList, err error) {
	look := usualLook
	if of.Within != "" {
		within, problem := parseDuration(of.Within)
		if problem == "" && (within <= 0 || within > longestLook) {
			problem = "must be more than 0s and at most 10s"
		}
		if problem != "" {
			return out, api.Faulty(api.Fault{Field: "within", Value: api.Clip(of.Within), Problem: problem})
		}
		look = within
	}
	if m.there != nil {
		return out, api.Unsupported.Problem("a site's messages are not grouped by cause")
	}
	names, narrowed, p := m.narrow(ctx, &MessageQuery{Destination: of.Destination, Category: of.Category})
	if p != nil {
		return out, p
	}
	if !narrowed {
		names = []string{of.Destination}
	}
	g := &causes{until: time.Now().Add(look), groups: map[string]*api.Cause{}, known: map[string]string{}}
	for i, name := range names {
		if i > 0 && g.over() {
			g.out.More = true
			break
		}
		if err := g.look(ctx, m, name); err != nil {
			return out, m.refuse(ctx, "group parked messages", err)
		}
	}
	if narrowed || !Granted(ctx).Whole() { // of one list of several, or by what others sent
		g.out.LookedUntil = time.Time{}
	}
	return g.list(), nil
}

// causes groups messages.
type causes struct {
	until  time.Time
	out    api.CauseList
	groups map[string]*api.Cause
	known  map[string]string // causes of errors that were seen
}

// look looks at the parked messages of a destination, or of all if the name is empty.
func (g *causes) look(ctx context.Context, m Messages, destination string) error {
	q := holdfast.Query{States: []holdfast.State{holdfast.Parked}, Destination: destination, Limit: 1}
	var left bool
	var oldest time.Time
	q.Match = func(r *holdfast.Record) bool {
		if left = g.out.Looked >= mostLooked; !left {
			g.add(r)
			oldest = r.Created
		}
		return false
	}
	for {
		page, err := m.outbox().List(ctx, q)
		switch q.After = page.Next; {
		case err != nil || page.Next == "" && !left:
			return err
		case left:
			g.out.More, g.out.LookedUntil = true, oldest
			return nil
		case g.over():
			g.out.More, g.out.LookedUntil = true, page.LookedUntil
			return nil
		}
	}
}

// over reports whether enough was looked at.
func (g *causes) over() bool { return g.out.Looked >= mostLooked || time.Now().After(g.until) }

func (g *causes) add(r *holdfast.Record) {
	g.out.Looked++
	text := r.Message.Destination + "\x00" + r.LastCode + "\x00" + r.LastError
	id, seen := g.known[text]
	if !seen {
		id = causeOf(r.Message.Destination, r.LastCode, r.LastError)
		if len(g.known) < mostGroups {
			g.known[text] = id
		}
	}
	tried := r.LastAttempt
	if tried.IsZero() {
		tried = r.Created
	}
	c := g.groups[id]
	if c == nil && len(g.groups) == mostGroups {
		g.out.Others++
		return
	}
	if c == nil {
		c = &api.Cause{
			ID: id, Destination: r.Message.Destination, Code: r.LastCode, Error: mask(r.LastError), First: tried.UTC(), Last: tried.UTC(),
			Sample: string(r.Message.ID), SampleError: r.LastError,
		}
		g.groups[id] = c
	}
	c.Count++
	if tried.Before(c.First) {
		c.First = tried.UTC()
	}
	if tried.After(c.Last) {
		c.Last = tried.UTC()
	}
}

// list returns the causes, the most frequent first.
func (g *causes) list() api.CauseList {
	g.out.LookedUntil = g.out.LookedUntil.UTC()
	g.out.Causes = make([]api.Cause, 0, len(g.groups))
	for c := range maps.Values(g.groups) {
		g.out.Causes = append(g.out.Causes, *c)
	}
	slices.SortFunc(g.out.Causes, func(a, b api.Cause) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
	})
	shown := min(len(g.out.Causes), mostCauses)
	for _, c := range g.out.Causes[shown:] {
		g.out.Others += c.Count
	}
	g.out.Causes = g.out.Causes[:shown]
	return g.out
}

// still refuses a message of a bulk action that is not as the action found it: it has another state, another cause,
// or failed or was retried since the rows of the action were looked up. Nobody has seen that.
func (m Messages) still(ctx context.Context, text string, req *keptRequest, written time.Time) error {
	id, p := parseID(text)
	if p != nil {
		return p
	}
	states, faults := statesOf(req.Filter.Status)
	if len(faults) > 0 {
		return api.Faulty(faults...)
	}
	if len(states) == 0 {
		states = startsFrom(&req.BulkRequest)
	}
	cause, since := req.Filter.Cause, written.Add(-req.Took)
	anew := func(e holdfast.Entry) bool { return e.Kind == holdfast.Requeued && e.At.After(since) }
	switch r, err := m.get(ctx, id); {
	case err != nil:
		return m.missing(ctx, "read the message", id, err)
	case !slices.Contains(states, r.State):
		return api.WrongState.Problem("it is "+r.State.String()+" by now", api.Fault{Field: "state", Value: r.State.String(), Problem: "is not what the action found"})
	case r.LastAttempt.After(since) || slices.ContainsFunc(r.History, anew):
		return api.WrongState.Problem("it was tried again after the action was made", api.Fault{Field: "filter.cause", Value: cause, Problem: "is that of an earlier failure"})
	case causeOf(r.Message.Destination, r.LastCode, r.LastError) != cause:
		return api.WrongState.Problem("its last error has another cause", api.Fault{Field: "filter.cause", Value: cause, Problem: "is not why it is parked"})
	}
	return nil
}
