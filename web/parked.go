package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// parkedCauses is what the page of parked messages shows.
type parkedCauses struct {
	api.CauseList

	Groups      []causeGroup
	Destination string // the filter
	Until       *time.Time
	Longer      string // path of the same page with a longer look; empty: all was looked at
}

// causeGroup is a cause with what a person can do about its messages.
type causeGroup struct {
	api.Cause

	Where   string // what the destination is, for people
	Href    string // of the destination or the channel
	Sampled string // path of the newest message
	Listed  string // path of its messages
	Actions []action
}

// longLook is how long the causes are looked for when a person asks for more.
const longLook = "10s"

// parked groups parked messages, of which the copies of notifications are some, by why they are parked.
func (p *Pages) parked(r *http.Request) (answer, error) {
	q := r.URL.Query()
	data := &parkedCauses{Destination: q.Get("destination")}
	v := &view{template: "parked", title: "Parked", rail: "Parked", data: data}
	of := admin.CauseQuery{Destination: data.Destination}
	if q.Get("look") == "long" {
		of.Within = longLook
	}
	found, err := admin.Messages{Service: p.Service}.Causes(r.Context(), &of)
	if err != nil {
		v.status, v.said = problemOf(err).Status, refused(err)
		return v, err
	}
	data.CauseList = found
	if found.More {
		if !found.LookedUntil.IsZero() {
			data.Until = &found.LookedUntil
		}
		if of.Within == "" {
			data.Longer = withQuery(p.here(r), "look", "long")
		}
	}
	for i := range found.Causes {
		data.Groups = append(data.Groups, p.causeGroup(r, &found.Causes[i]))
	}
	return v, nil
}

func (p *Pages) causeGroup(r *http.Request, c *api.Cause) causeGroup {
	kind, name := laneKind(c.Destination)
	g := causeGroup{
		Cause: *c, Where: strings.TrimSuffix(kind, "s") + " " + name, Sampled: p.link("messages", c.Sample),
		Listed: p.list("state", "parked", "destination", c.Destination, "cause", c.ID),
	}
	if kind != "subscriptions" {
		g.Href = p.link(kind, name)
	}
	filter := url.Values{"state": {"parked"}, "destination": {c.Destination}, "cause": {c.ID}}
	g.Actions = p.bulkActions(r, "messages", filter, []string{"state", "destination", "cause"})
	if len(g.Actions) > 0 && c.Count > fewFirst {
		few := g.Actions[0]
		few.Label, few.Href = "Retry the newest "+strconv.Itoa(fewFirst), withQuery(few.Href, "first", strconv.Itoa(fewFirst))
		g.Actions = append(g.Actions, few)
	}
	return g
}

// fewFirst is how many messages of a cause a person tries before all of them (U7).
const fewFirst = 10
