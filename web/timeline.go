package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// moment is one line in the story of a message.
type moment struct {
	At         time.Time
	Cycle      int // that begins here; zero: none does
	Icon, Tone string
	Title      string
	Facts      []string // in short: outcome, code, how long it took
	Text       string   // what the other side or the node said
	Actor      string
}

// timelineOf tells the story of a message, oldest first, with its beginning and its end, which an uneventful
// delivery leaves no entries for.
func timelineOf(m *api.MessageDetail) []moment {
	var list []moment
	if len(m.History) == 0 || m.History[0].Event != holdfast.Enqueued.String() {
		list = append(list, moment{At: m.Created, Icon: "out", Tone: "blue", Title: "Accepted", Facts: []string{"from " + m.Source}})
	}
	cycle := 1
	for i := range m.History {
		e := &m.History[i]
		one := momentOf(e)
		if e.Cycle > cycle {
			one.Cycle, cycle = e.Cycle, e.Cycle
		}
		list = append(list, one)
	}
	last := len(m.History) - 1
	if m.Settled != nil && (last < 0 || m.History[last].State != m.State) {
		word := pillOf(m.State)
		list = append(list, moment{At: *m.Settled, Icon: word.Icon, Tone: word.Tone, Title: upper(m.State)})
	}
	return list
}

func momentOf(e *api.Event) moment {
	m := moment{At: e.At, Icon: "dot", Tone: "grey", Title: upper(strings.ReplaceAll(e.Event, "_", " ")), Text: e.Error, Actor: e.Actor}
	switch e.Event {
	case holdfast.Enqueued.String():
		m.Icon, m.Tone, m.Title = "out", "blue", "Accepted"
	case holdfast.Attempted.String():
		word := pillOf(e.Outcome)
		m.Icon, m.Tone, m.Title = word.Icon, word.Tone, fmt.Sprintf("Attempt %d: %s", e.Attempt, word.Word)
	case holdfast.Requeued.String():
		m.Icon, m.Tone, m.Title = "retry", "violet", "Retried by a person"
	case holdfast.Rescheduled.String():
		m.Icon, m.Tone, m.Title = "clock", "violet", "Rescheduled by a person"
		if e.Due != nil {
			m.Facts = append(m.Facts, "for "+e.Due.UTC().Format("2006-01-02 15:04:05 UTC"))
		}
	default:
		if word := pillOf(e.State); word.Tone != "grey" || e.State == e.Event {
			m.Icon, m.Tone = word.Icon, word.Tone
		}
	}
	add := func(ok bool, text string) {
		if ok {
			m.Facts = append(m.Facts, text)
		}
	}
	add(e.HTTPStatus > 0, fmt.Sprintf("HTTP %d", e.HTTPStatus))
	add(e.HTTPStatus == 0 && e.Code != "", strings.ReplaceAll(e.Code, "_", " "))
	add(e.TookMs > 0, fmt.Sprintf("took %.4g ms", e.TookMs))
	add(e.Event == holdfast.Attempted.String() && !e.Charged && e.Outcome != "delivered", "does not count against the budget")
	add(e.MaybeReceived, "the other side may have taken it")
	add(e.Reason != "", "reason: "+strings.ReplaceAll(e.Reason, "_", " "))
	return m
}
