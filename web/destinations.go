package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// destinationRow is a destination in the list.
type destinationRow struct {
	api.DestinationStatus

	Href, Waiting, Set, Over string // of it, and of its messages by state
}

func (p *Pages) destinationOf(d *api.DestinationStatus) destinationRow {
	return destinationRow{
		*d, p.link("destinations", d.Name), p.list("destination", d.Name, "state", "pending"), p.list("destination", d.Name, "state", "parked"), p.list("destination", d.Name, "state", "expired"),
	}
}

func (p *Pages) destinations(r *http.Request) (answer, error) {
	var rows []destinationRow
	all := admin.Destinations{Service: p.Service}.List(r.Context()).Destinations
	for i := range all {
		rows = append(rows, p.destinationOf(&all[i]))
	}
	return &view{template: "destinations", title: "Destinations", rail: "Destinations", live: true, data: rows}, nil
}

// destinationDetail is what the page of a destination shows.
type destinationDetail struct {
	destinationRow

	Tiles    []tile
	Actions  []action
	Commands []string
}

func (p *Pages) oneDestination(r *http.Request) (*view, error) {
	status, err := admin.Destinations{Service: p.Service}.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	d := &destinationDetail{destinationRow: p.destinationOf(&status)}
	d.Tiles = []tile{
		{Label: "Waiting", Value: grouped(d.Pending), Hint: "pending", Href: d.Waiting},
		{Label: "Parked", Value: grouped(d.Parked), Hint: "for a person", Href: d.Set, Tone: warns("red", d.Parked)},
		{Label: "Expired", Value: grouped(d.Expired), Hint: "time to live ended", Href: d.Over, Tone: warns("amber", d.Expired)},
		{Label: "In flight", Value: grouped(int64(d.InFlight)), Hint: "of " + grouped(int64(d.Concurrency)) + " at most"},
	}
	verbs := []action{{Label: "Pause", Icon: "pause", Href: p.link("destinations", d.Name, "pause")}}
	switch d.Lane {
	case "paused":
		verbs = []action{{Label: "Resume", Icon: "play", Tone: "main", Href: p.link("destinations", d.Name, "resume")}}
	case "held", "down":
		verbs = append(verbs, action{Label: "Try now", Icon: "play", Tone: "main", Href: p.link("destinations", d.Name, "resume")})
	}
	for _, a := range verbs {
		a.Why = lacks(r)
		d.Actions = append(d.Actions, a)
	}
	verb := "pause "
	if d.Lane != "up" {
		verb = "resume "
	}
	d.Commands = []string{"holdfast destinations show " + shellQuote(d.Name), "holdfast destinations " + verb + shellQuote(d.Name)}
	return &view{template: "destination", title: "Destination " + api.Clip(d.Name), rail: "Destinations", live: true, data: d}, nil
}

func (p *Pages) destination(r *http.Request) (answer, error) {
	v, err := p.oneDestination(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (p *Pages) pause(r *http.Request) (answer, error) {
	_, err := admin.Destinations{Service: p.Service}.Pause(r.Context(), r.PathValue("name"))
	return p.operated(r, "paused", err)
}

func (p *Pages) resume(r *http.Request) (answer, error) {
	_, err := admin.Destinations{Service: p.Service}.Resume(r.Context(), r.PathValue("name"))
	return p.operated(r, "resumed", err)
}

// operated leads back to a destination, or shows it with what was not done.
func (p *Pages) operated(r *http.Request, done string, err error) (answer, error) {
	if err == nil {
		return redirect(withQuery(p.link("destinations", r.PathValue("name")), "done", done)), nil
	}
	v, gone := p.oneDestination(r)
	if gone != nil {
		return nil, err
	}
	v.status, v.said = problemOf(err).Status, refused(err)
	return v, err
}
