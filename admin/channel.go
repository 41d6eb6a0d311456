package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// channelOf shows a channel.
func channelOf(c notify.Channel) api.Channel {
	out := api.Channel{
		Name: c.Name, Kind: c.Kind, Workers: c.Workers, Disabled: c.Disabled, Changed: instant(c.Changed), Version: channelVersion(c),
	}
	if json.Valid(c.Settings) {
		out.Settings = shownSettings(&c)
	}
	if r := c.Retry; r.Attempts != 0 || r.Interval != 0 || len(r.Waits) > 0 {
		shown := api.ChannelRetry{}
		if r.Attempts != 0 {
			shown.Attempts = &r.Attempts
		}
		if r.Interval != 0 {
			shown.Interval = formatDuration(r.Interval)
		}
		for _, w := range r.Waits {
			shown.Waits = append(shown.Waits, formatDuration(w))
		}
		out.Retry = &shown
		out.Warnings = retryWarnings(&shown)
	}
	return out
}

func channelVersion(c notify.Channel) string {
	c.Changed, c.Version = time.Time{}, 0
	return versionOf(c)
}

// channelFrom reads a channel. The checks of its adapter come later.
func channelFrom(spec *api.ChannelSpec, name string) (notify.Channel, []api.Fault) {
	c := notify.Channel{Name: name, Kind: spec.Kind, Workers: spec.Workers, Disabled: spec.Disabled}
	faults := api.FaultsOf(notify.CheckName("name", name))
	if spec.Name != "" && spec.Name != name {
		faults = append(faults, api.Fault{Field: "name", Value: api.Clip(spec.Name), Problem: "is not the name in the path; a channel keeps its name"})
	}
	if spec.Kind == "" {
		faults = append(faults, api.Fault{Field: "kind", Problem: "is missing: email, teams, slack, ntfy, gotify or webhook"})
	}
	if spec.Workers < 0 || spec.Workers > mostWorkers {
		faults = append(faults, api.Fault{Field: "workers", Value: fmt.Sprint(spec.Workers), Problem: fmt.Sprintf("must be 0 to %d; 0 is 4", mostWorkers)})
	}
	settings, problem := settingsOf(spec.Settings)
	if problem != "" {
		faults = append(faults, api.Fault{Field: "settings", Problem: problem}) // not the value: it may hold a secret all the same
	}
	c.Settings = settings
	if spec.Retry != nil {
		var wrong []api.Fault
		c.Retry, wrong = retryOfChannel(spec.Retry)
		faults = append(faults, wrong...)
	}
	return c, faults
}

// settingsOf compacts an object.
func settingsOf(raw json.RawMessage) (json.RawMessage, string) {
	var b bytes.Buffer
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	switch err := json.Compact(&b, raw); {
	case err != nil || b.Bytes()[0] != '{':
		return nil, "must be an object, {…}"
	case b.Len() > MostSettings:
		return nil, fmt.Sprintf("has %d bytes; at most %d fit", b.Len(), MostSettings)
	case bytes.Contains(b.Bytes(), []byte(`\u0000`)):
		return nil, "has a NUL, which the database cannot store"
	}
	return b.Bytes(), ""
}

// retryOfChannel reads how often a channel tries. It replaces values that are not above zero; retryWarnings
// reports them (NO-10).
func retryOfChannel(r *api.ChannelRetry) (out notify.Retry, faults []api.Fault) {
	const mostAttempts = 1_000_000
	if r.Attempts != nil && *r.Attempts > mostAttempts {
		faults = append(faults, api.Fault{Field: "retry.attempts", Value: fmt.Sprint(*r.Attempts), Problem: fmt.Sprintf("must be at most %d", mostAttempts)})
	}
	var interval *time.Duration
	if r.Interval != "" {
		text, negative := strings.CutPrefix(r.Interval, "-")
		d, problem := parseDuration(text)
		if problem != "" {
			faults = append(faults, api.Fault{Field: "retry.interval", Value: api.Clip(r.Interval), Problem: problem})
		}
		if negative {
			d = -d
		}
		interval = &d
	}
	if len(r.Waits) > mostWaits {
		return out, append(faults, api.Fault{Field: "retry.waits", Value: fmt.Sprintf("%d waits", len(r.Waits)), Problem: fmt.Sprintf("at most %d are taken; the last one repeats", mostWaits)})
	}
	var waits []time.Duration
	for i, text := range r.Waits {
		d, problem := parseDuration(text)
		if problem == "" && d == 0 {
			problem = "must be longer than 0"
		}
		if problem != "" {
			faults = append(faults, api.Fault{Field: fmt.Sprintf("retry.waits[%d]", i), Value: api.Clip(text), Problem: problem})
		}
		waits = append(waits, d)
	}
	return notify.NewRetry(r.Attempts, interval, waits), faults
}

// retryWarnings names the settings that were replaced by other values (NO-10).
func retryWarnings(r *api.ChannelRetry) (list []string) {
	if r.Attempts != nil && *r.Attempts <= 0 {
		list = append(list, fmt.Sprintf("retry.attempts %d is not above zero: %d is used", *r.Attempts, notify.DefaultRetry().Attempts))
	}
	d, problem := parseDuration(strings.TrimPrefix(r.Interval, "-"))
	if r.Interval != "" && problem == "" && (d == 0 || r.Interval[0] == '-') && len(r.Waits) == 0 {
		list = append(list, fmt.Sprintf("retry.interval %s is not above zero: %s is used", api.Clip(r.Interval), formatDuration(notify.DefaultRetry().Interval)))
	}
	return list
}

// channelStatusOf returns how a channel fares and what waits for it.
func channelStatusOf(c *notify.Channel, lanes map[string]holdfast.LaneStatus, counts map[string]holdfast.LaneCounts) *api.ChannelStatus {
	waiting := counts[notify.Lane(c.Name)]
	s := &api.ChannelStatus{State: "unknown", Due: waiting.Pending, Parked: waiting.Parked}
	if c.Disabled {
		s.State = "disabled"
		return s
	}
	l, ok := lanes[c.Name]
	if !ok {
		return s
	}
	switch {
	case l.Held:
		s.State = "held"
	case !l.Up:
		s.State = "back-off"
	default:
		s.State = "ok"
	}
	s.Reason, s.Failures, s.Limit, s.InFlight = l.Problem, l.Failures, l.Limit, l.InFlight
	now := time.Now()
	if l.Since > 0 {
		s.Since = instant(now.Add(-l.Since))
	}
	if l.NextProbe > 0 {
		s.NextProbe = instant(now.Add(l.NextProbe))
	}
	return s
}

func testResultOf(r notify.Report) api.TestResult {
	out := api.TestResult{Server: r.Server, TLS: r.TLS, Truncated: r.Truncated, Result: resultName(notify.Waiting)}
	if len(r.To) > 0 && r.To[0].Outcome != notify.Waiting {
		d := r.To[0]
		out.Accepted, out.Result, out.Code, out.Text = d.Outcome == notify.Accepted, resultName(d.Outcome), d.Code, d.Text
		out.Receipt, out.Maybe = d.Receipt, d.Maybe
		return out
	}
	if f := r.Fault; f != nil {
		out.Outcome, out.Code, out.Text, out.Maybe = f.Outcome.String(), f.Code, f.Error(), f.MaybeDelivered
	}
	return out
}
