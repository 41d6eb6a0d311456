package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/notify"
)

// Limits of what is shown of an answer, and of the wait that an answer may ask for.
const (
	excerpt  = 500
	mostWait = time.Hour
)

// answered classifies an answer.
func (p *Poster) answered(e end, t *target, a *answer) end {
	e.Code = fmt.Sprintf("http_%d", a.status)
	if a.status/100 == 2 {
		return p.taken(e, t, a)
	}
	f := &holdfast.Failure{
		Code: e.Code, RetryAfter: min(retryafter.Of(a.header), mostWait),
		Err: fmt.Errorf("%s answered %d%s", t.url.Host, a.status, t.said(a)),
	}
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly:
	case http.StatusTooManyRequests:
		f.Outcome = holdfast.Unreachable // nothing was accepted: the notification keeps its budget (H3)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		f.Outcome = holdfast.LaneFault
	case http.StatusGone:
		f.Outcome = holdfast.LaneFault
		if p.kind == webhook || !p.shared(f.Code) { // H12
			f.Outcome = holdfast.Permanent
			f.Err = fmt.Errorf("%w: this receiver wants no more notifications; take it off the list or change its URL", f.Err)
		}
	default:
		switch a.status / 100 {
		case 3:
			f.Outcome = holdfast.LaneFault
			f.Err = fmt.Errorf("%s answered %d, which leads elsewhere: redirects are not followed, set the URL to where it leads", t.url.Host, a.status)
		case 4:
			f.Outcome = holdfast.Permanent
		}
	}
	e = p.judge(e, t, f)
	e.alone = e.alone || !p.shared(f.Code)
	return e
}

// taken classifies an answer whose status says success.
func (p *Poster) taken(e end, t *target, a *answer) end {
	e.Outcome = notify.Accepted
	switch p.kind {
	case teams:
		// The flow has started. The answer does not say whether its card is shown.
		e.Text = "accepted by provider"
		e.Receipt = t.shown(a.header.Get("X-Ms-Workflow-Run-Id"))
	case ntfy, gotify:
		e.Receipt = t.shown(receipt(a))
	case slack:
		if f := slackFailure(a); f != nil {
			f.Err = fmt.Errorf("%s answered %d, but not ok%s", t.url.Host, a.status, t.said(a))
			e.Outcome = notify.Waiting
			e = p.judge(e, t, f)
			e.alone = e.alone || !p.shared(f.Code)
		}
	}
	return e
}

// judge decides whether a failure is the recipient's. Otherwise it stays a failure of the channel.
func (p *Poster) judge(e end, t *target, f *holdfast.Failure) end {
	f.Err = errors.New(clip(t.redact(line(f.Error())), 2<<10))
	f.RetryAfter = min(f.RetryAfter, mostWait)
	e.Code = f.Code
	switch f.Outcome {
	case holdfast.Permanent:
		e.Delivery = deferred(f)
		e.Outcome = notify.Refused
	case holdfast.LaneFault:
		if !p.shared(f.Code) {
			e.Delivery, e.alone = deferred(f), true // the other targets work
			break
		}
		e.fault = f
	case holdfast.Unreachable, holdfast.NotStarted:
		e.fault = f
	case holdfast.Transient, holdfast.Succeeded:
		e.Delivery = deferred(f)
	}
	return e
}

// shared reports whether a target's failure concerns the whole channel: because there is no other
// target, or because their common server fails.
func (p *Poster) shared(code string) bool {
	switch p.kind {
	case ntfy: // one server and one login; a topic may be forbidden
		return code != "http_403" && code != "http_410"
	case gotify: // one server, with a token for each target
		return len(p.settings.targets) == 0 || !slices.Contains([]string{"http_401", "http_403", "http_410", "secret"}, code)
	}
	return len(p.settings.targets) == 0
}

func deferred(f *holdfast.Failure) notify.Delivery {
	return notify.Delivery{Outcome: notify.Deferred, Code: f.Code, Text: f.Error(), Maybe: f.MaybeDelivered, RetryAfter: f.RetryAfter}
}

// said returns the beginning of an answer, for people.
func (t *target) said(a *answer) string {
	text := t.redact(line(string(a.body)))
	if !a.whole { // a secret may be cut in two
		text = strings.ToValidUTF8(text[:max(len(text)-t.hidden.Longest(), 0)], "")
	}
	if text == "" {
		return ""
	}
	return ": " + clip(text, excerpt)
}

// receipt returns the id that a server gave to what it accepted, or an empty string.
func receipt(a *answer) string {
	var said struct {
		ID any `json:"id"`
	}
	d := json.NewDecoder(strings.NewReader(string(a.body)))
	d.UseNumber()
	if d.Decode(&said) != nil {
		return ""
	}
	switch id := said.ID.(type) {
	case string:
		return id
	case json.Number:
		return id.String()
	}
	return ""
}

// shown makes a name from the other side fit for people.
func (t *target) shown(s string) string { return clip(t.redact(line(s)), 100) }
