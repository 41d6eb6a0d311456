package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (p *Pages) channelPages() []page {
	return []page{
		{"GET channels", "list-channels", api.Read, false, p.channels},
		{"GET channels/{name}", "get-channel", api.Read, false, p.channel},
		{"POST channels/{name}/resume", "resume-channel", api.Operate, false, p.resumeChannel},
		{"POST channels/{name}/test", "test-channel", api.Operate, false, p.testChannel},
	}
}

// channelRow is a channel with where its notifications are.
type channelRow struct {
	api.Channel

	Href, Waiting, Set string
	Resume             *action // nil: there is nothing to resume
}

func (p *Pages) channelRow(r *http.Request, c *api.Channel) channelRow {
	of := func(status string) string {
		return p.link("notifications") + "?" + url.Values{"channel": {c.Name}, "status": {status}}.Encode()
	}
	row := channelRow{Channel: *c, Href: p.link("channels", c.Name), Waiting: of("pending"), Set: of("parked")}
	if s := c.Status; s != nil && (s.State == "held" || s.State == "back-off") {
		row.Resume = &action{Label: "Resume", Icon: "play", Tone: "main", Href: p.link("channels", c.Name, "resume"), Why: lacksWhole(r, api.Operate)}
	}
	return row
}

func (p *Pages) channels(r *http.Request) (answer, error) {
	all, err := admin.Channels{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, err
	}
	var rows []channelRow
	for i := range all.Channels {
		rows = append(rows, p.channelRow(r, &all.Channels[i]))
	}
	return &view{template: "channels", title: "Channels", rail: "Channels", live: true, data: rows}, nil
}

// channelDetail is what the page of a channel shows.
type channelDetail struct {
	channelRow

	Tiles    []tile
	Retries  string
	Settings string
	Lacks    string // why the caller may not test it
	Address  string // that was tested, or typed
	Tested   *api.TestResult
	Verdict  string // of the test, in words
	Commands []string
}

func (p *Pages) oneChannel(r *http.Request) (*view, *channelDetail, error) {
	c, err := admin.Channels{Service: p.Service}.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, nil, err
	}
	d := &channelDetail{channelRow: p.channelRow(r, &c), Retries: retriesOf(c.Retry), Lacks: lacksWhole(r, api.Operate)}
	var settings bytes.Buffer
	if json.Indent(&settings, c.Settings, "", "  ") == nil {
		d.Settings = settings.String()
	}
	if s := c.Status; s != nil {
		limit := "the limit is not known yet"
		if s.Limit > 0 {
			limit = "of " + strconv.Itoa(s.Limit) + " at once"
		}
		d.Tiles = []tile{
			{Label: "Waiting", Value: grouped(s.Due), Hint: "notifications", Href: d.Waiting},
			{Label: "Parked", Value: grouped(s.Parked), Hint: "for a person", Href: d.Set, Tone: warns("red", s.Parked)},
			{Label: "In flight", Value: strconv.Itoa(s.InFlight), Hint: limit},
			{Label: "Failures", Value: strconv.Itoa(s.Failures), Hint: "in a row", Tone: warns("amber", int64(s.Failures))},
		}
	}
	name := shellQuote(c.Name)
	d.Commands = []string{"holdfast channels show " + name, "holdfast channels test " + name}
	if d.Resume != nil {
		d.Commands = append(d.Commands, "holdfast channels resume "+name)
	}
	return &view{template: "channel", title: "Channel " + c.Name, rail: "Channels", live: true, data: d}, d, nil
}

// retriesOf says how often a channel tries.
func retriesOf(r *api.ChannelRetry) string {
	attempts, wait := 10, "1m"
	if r == nil {
		r = &api.ChannelRetry{}
	}
	if r.Attempts != nil && *r.Attempts > 0 {
		attempts = *r.Attempts
	}
	if r.Interval != "" {
		wait = r.Interval
	}
	text := strconv.Itoa(attempts) + " attempts, " + wait + " between two"
	if len(r.Waits) > 0 {
		text = strconv.Itoa(attempts) + " attempts, with waits of"
		for i, w := range r.Waits {
			if i > 0 {
				text += ","
			}
			text += " " + w
		}
	}
	return text
}

func (p *Pages) channel(r *http.Request) (answer, error) {
	v, _, err := p.oneChannel(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (p *Pages) resumeChannel(r *http.Request) (answer, error) {
	_, err := admin.Channels{Service: p.Service}.Resume(r.Context(), r.PathValue("name"))
	if err == nil {
		return redirect(withQuery(p.link("channels", r.PathValue("name")), "done", "resumed")), nil
	}
	v, _, gone := p.oneChannel(r)
	if gone != nil {
		return nil, err
	}
	v.status, v.said = problemOf(err).Status, refused(err)
	return v, err
}

// testChannel sends a test, and shows what came of it. Nothing of it is kept, so there is no page to lead to.
func (p *Pages) testChannel(r *http.Request) (answer, error) {
	address := r.PostFormValue("address")
	out, err := admin.Channels{Service: p.Service}.Test(r.Context(), r.PathValue("name"), &api.TestRequest{Address: address})
	v, d, gone := p.oneChannel(r)
	if gone != nil {
		return nil, gone
	}
	v.live, d.Address = false, address
	if err != nil {
		v.status, v.said = problemOf(err).Status, refused(err)
		return v, err
	}
	d.Tested, d.Verdict = &out, verdictOf(&out)
	return told{v, []any{"accepted", out.Accepted, "result", out.Result, "code", out.Code}}, nil
}

// verdictOf says what came of a test.
func verdictOf(t *api.TestResult) string {
	switch {
	case t.Accepted:
		return "The other side has taken the test."
	case t.Maybe:
		return "The data was sent, and the answer was lost: the test may have been delivered."
	case t.Outcome == "lane_fault":
		return "The channel itself is at fault, and a notification would hold it: mend that, then resume it."
	case t.Outcome == "unreachable":
		return "The other side was not reached."
	case t.Result == "deferred":
		return "The other side does not take it now. It may work later."
	case t.Result == "refused", t.Outcome == "permanent":
		return "The other side refuses it, and would refuse it again."
	}
	return "The test was not delivered."
}
