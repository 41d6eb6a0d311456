package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// notificationDetail is what the page of a notification shows.
type notificationDetail struct {
	*api.NotificationDetail

	Stuck    bool
	Story    string // path of the part that changes
	Actions  []action
	Asked    string // who is asked by a retry, in words; empty: nobody
	Copies   []copyDetail
	Timeline []moment
	Data     string
	Commands []string
	OfList   string // path of the notifications of its list
	OfSite   string
}

// copyDetail is one copy with its recipients.
type copyDetail struct {
	*api.NotificationCopy

	Actions          []action // about this copy alone, where there are others
	Channel, Message string   // paths
	Accepted         int
	Maybe            bool // it may have been delivered although nobody said so
}

func (p *Pages) oneNotification(r *http.Request) (*view, error) {
	id, site := r.PathValue("id"), r.URL.Query().Get("site")
	n, err := admin.Notifications{Service: p.Service}.Get(r.Context(), site, id)
	if err != nil {
		return nil, err
	}
	d := &notificationDetail{
		NotificationDetail: &n, Timeline: notificationTimeline(&n), Actions: p.copyActions(r, &n, ""), Story: p.notificationLink(n.Site, n.ID, "story"),
		OfList: withQuery(p.link("notifications"), "list", n.List), OfSite: withQuery(p.link("notifications"), "site", n.Site),
	}
	accepted, open := 0, 0
	for i := range n.Copies {
		c := copyDetail{NotificationCopy: &n.Copies[i], Message: p.link("messages", n.Copies[i].Message)}
		if n.Copies[i].Channel != "" {
			c.Channel = p.link("channels", n.Copies[i].Channel)
		}
		if len(n.Copies) > 1 {
			c.Actions = p.copyActions(r, &n, n.Copies[i].Channel)
		}
		for _, to := range c.Recipients {
			c.Maybe = c.Maybe || to.Maybe && to.Result != "accepted"
			if to.Result == "accepted" {
				c.Accepted++
			}
		}
		if c.Status == "parked" || c.Status == "discarded" {
			accepted, open = accepted+c.Accepted, open+len(c.Recipients)-c.Accepted
		}
		d.Stuck = d.Stuck || c.Stuck
		d.Copies = append(d.Copies, c)
	}
	if accepted > 0 {
		d.Asked = fmt.Sprintf("A retry asks only those who have not accepted: %s. Those who have, %d, are not asked again.", countedAs(int64(open), "recipient", "recipients"), accepted)
	}
	if len(n.Data) > 0 {
		d.Data = indented(n.Data)
	}
	about := shellQuote(n.ID) + " --site " + shellQuote(n.Site)
	d.Commands = append(d.Commands, "holdfast notifications show "+about)
	for _, a := range copyVerbs() {
		if a.fits(&n, "") {
			d.Commands = append(d.Commands, "holdfast notifications "+a.name+" "+about)
		}
	}
	return &view{template: "notification", title: cmp.Or(api.Clip(n.Subject), "Notification "+api.Clip(n.ID)), rail: "Notifications", data: d}, nil
}

func (p *Pages) notification(r *http.Request) (answer, error) {
	v, err := p.oneNotification(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// notificationStory is the part of a notification's page that changes, without content: it is asked for again and again.
func (p *Pages) notificationStory(r *http.Request) (answer, error) {
	v, err := p.oneNotification(r)
	if err != nil {
		return nil, err
	}
	v.part = "story"
	return v, nil
}

// copyVerb is what a person may do about copies of a notification.
type copyVerb struct {
	name, label, icon, tone string
	verb                    holdfast.Verb
	unfit                   string // why it cannot be done, where no copy allows it
}

func copyVerbs() []copyVerb {
	return []copyVerb{
		{"retry", "Retry", "retry", "main", holdfast.VerbRequeue, "only what is parked or discarded can be retried"},
		{"run", "Run now", "play", "", holdfast.VerbReschedule, "only what is pending or retrying can be run"},
		{"discard", "Discard", "trash", "danger", holdfast.VerbDiscard, "only what is neither delivered nor discarded can be discarded"},
	}
}

// fits reports whether a copy allows the verb, that over a channel or, if that is empty, any.
func (a *copyVerb) fits(n *api.NotificationDetail, channel string) bool {
	return slices.ContainsFunc(n.Copies, func(c api.NotificationCopy) bool {
		return (channel == "" || c.Channel == channel) && !c.Discarding && copyFits(a.verb, c.Status)
	})
}

// copyActions are the buttons about a notification, or about its copy over a channel.
func (p *Pages) copyActions(r *http.Request, n *api.NotificationDetail, channel string) (list []action) {
	for _, a := range copyVerbs() {
		one := action{Label: a.label, Icon: a.icon, Tone: a.tone, Asks: a.name == "discard", Href: p.notificationLink(n.Site, n.ID, a.name), Why: lacks(r)}
		if channel != "" {
			one.Href = withQuery(one.Href, "channel", channel)
		}
		if !a.fits(n, channel) {
			one.Why = a.unfit
		}
		list = append(list, one)
	}
	return list
}

// notificationTimeline joins what happened at the site, at central and to each copy, oldest first.
func notificationTimeline(n *api.NotificationDetail) (list []moment) {
	if n.Enqueued != nil {
		list = append(list, moment{At: *n.Enqueued, Icon: "site", Tone: "blue", Title: "Taken from its author", Facts: []string{"at " + cmp.Or(n.Site, "this node")}})
	}
	if n.Created != nil {
		list = append(list, moment{At: *n.Created, Icon: "out", Tone: "blue", Title: "Came here", Facts: []string{countedAs(int64(len(n.Copies)), "copy", "copies")}})
	}
	for i := range n.Copies {
		c := &n.Copies[i]
		cycle := 1
		for j := range c.History {
			e := &c.History[j]
			if e.Event == holdfast.Enqueued.String() {
				continue
			}
			one := momentOf(e)
			if e.Cycle > cycle {
				one.Cycle, cycle = e.Cycle, e.Cycle
			}
			list = append(list, overChannel(one, n, c))
		}
		last := len(c.History) - 1
		if c.Ended != nil && (last < 0 || c.History[last].State != c.Status) {
			word := pillOf(c.Status)
			list = append(list, overChannel(moment{At: *c.Ended, Icon: word.Icon, Tone: word.Tone, Title: upper(c.Status)}, n, c))
		}
	}
	slices.SortStableFunc(list, func(a, b moment) int { return a.At.Compare(b.At) })
	return list
}

// overChannel says of which copy a moment is, where there are several.
func overChannel(m moment, n *api.NotificationDetail, c *api.NotificationCopy) moment {
	if len(n.Copies) > 1 {
		m.Facts = append([]string{"over " + c.Channel}, m.Facts...)
	}
	return m
}

// copyFits reports whether a verb starts from the status of a copy.
func copyFits(verb holdfast.Verb, status string) bool {
	for _, one := range admin.StatusesFor(verb) {
		if string(one) == status {
			return true
		}
	}
	return false
}

// decideOne applies a verb to the copies of a notification.
func (p *Pages) decideOne(r *http.Request, verb, site, id, channel, reason string) (err error) {
	of := admin.Notifications{Service: p.Service}
	switch verb {
	case "retry":
		_, err = of.Retry(r.Context(), site, id, &api.RetryNotification{Channel: channel})
	case "discard":
		if reason == "" {
			return noReason()
		}
		_, err = of.Discard(r.Context(), site, id, &api.DiscardNotification{Channel: channel, Reason: reason})
	case "run":
		_, err = of.Run(r.Context(), site, id, &api.RunNotification{Channel: channel})
	case "reschedule":
		_, err = of.Reschedule(r.Context(), site, id, &api.RescheduleNotification{Channel: channel, In: r.PostFormValue("in"), At: r.PostFormValue("at")})
	default:
		err = api.NotFound.Problem("there is no such action")
	}
	return err
}

// decideNotification does what a button of the page says, and leads back to it.
func (p *Pages) decideNotification(r *http.Request) (answer, error) {
	verb, q := r.PathValue("verb"), r.URL.Query()
	site, id, channel, reason := q.Get("site"), r.PathValue("id"), q.Get("channel"), reasonOf(r)
	err := p.decideOne(r, verb, site, id, channel, reason)
	with := []any{"verb", verb, "site", api.Clip(site), "channel", api.Clip(channel), "reason", api.Clip(reason)}
	if err == nil {
		return told{redirect(withQuery(p.notificationLink(site, id), "done", pastOf(verb))), with}, nil
	}
	v, gone := p.oneNotification(r)
	if gone != nil {
		return nil, err
	}
	v.status, v.said = problemOf(err).Status, refused(err)
	return told{v, with}, err
}

// askDiscardNotification asks for a confirmation and a reason.
func (p *Pages) askDiscardNotification(r *http.Request) (answer, error) {
	v, err := p.oneNotification(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	ask := &question{
		Ask: "Discard this notification?", Text: "It is not tried any more, over any channel. What is being tried ends with that attempt. Its row is kept for its retention, and a retry takes it up again.",
		Items: []string{v.title}, Action: p.notificationLink(q.Get("site"), r.PathValue("id"), "discard"), Reason: true, Verb: "Discard", Back: p.notificationLink(q.Get("site"), r.PathValue("id")),
	}
	if channel := q.Get("channel"); channel != "" {
		ask.Text = "Its copy over channel " + channel + " is not tried any more. Other copies go on."
		ask.Action = withQuery(ask.Action, "channel", channel)
	}
	return ask.view("Notifications"), nil
}
