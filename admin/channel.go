package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Channel is a way to people, with how it fares.
type Channel struct {
	Name     string          `json:"name,omitempty" doc:"1 to 64 letters, digits, dots, hyphens or underscores." example:"mail"`
	Kind     string          `json:"kind" doc:"Which adapter: email, teams, slack, ntfy, gotify or webhook." example:"email"`
	Settings json.RawMessage `json:"settings,omitempty" doc:"The adapter's, as an object; the guides on e-mail and on chat have the fields. Secrets never stand in it: {\"secret\": \"NAME\"} names a file in the folder notifications.secrets of the node."`
	Retry    *ChannelRetry   `json:"retry,omitempty" doc:"How often it tries a notification. Absent: 10 attempts, a minute between two."`
	Workers  int             `json:"workers,omitempty" minimum:"0" maximum:"64" doc:"The most deliveries at once. Absent: 4."`
	Disabled bool            `json:"disabled,omitempty" doc:"Nothing is delivered over it; what comes for it waits."`
	Version  string          `json:"version,omitempty" doc:"Of what can be changed. Sent along, nothing is changed if it is another one by now."`
	Changed  *time.Time      `json:"changed,omitempty" doc:"When it was changed last. Ignored when it is sent."`
	Warnings []string        `json:"warnings,omitempty" nullable:"false" doc:"What is taken, and used otherwise than it is written. Ignored when it is sent."`
	Status   *ChannelStatus  `json:"status,omitempty" doc:"How it fares. Ignored when it is sent."`
}

// ChannelSpec is what PUT /v1/channels/{name} takes: a Channel, so that what
// was shown can be sent back.
type ChannelSpec Channel

// ChannelRetry is how often a channel tries.
type ChannelRetry struct {
	Attempts *int     `json:"attempts,omitempty" doc:"Failed attempts until a notification parks. What is not above zero becomes 10." example:"10"`
	Interval string   `json:"interval,omitempty" doc:"Between two attempts. What is not above zero becomes 1m." example:"1m"`
	Waits    []string `json:"waits,omitempty" nullable:"false" doc:"Instead of interval: one wait after another, of which the last repeats." example:"[\"1m\",\"5m\",\"15m\",\"1h\"]"`
}

// ChannelStatus is how a channel fares on the node that was asked.
type ChannelStatus struct {
	State     string     `json:"state" enum:"ok,back-off,held,disabled,unknown" doc:"back-off: its last attempts failed, and one message probes it from time to time; held: a fault of the channel itself, such as refused credentials, that a person mends; unknown: this node does not serve it yet, or not at all."`
	Reason    string     `json:"reason,omitempty" doc:"What the last failure said."`
	Since     *time.Time `json:"since,omitempty" doc:"Of the state."`
	NextProbe *time.Time `json:"nextProbe,omitempty" doc:"When it is tried again by itself."`
	Failures  int        `json:"failures,omitempty" doc:"In a row."`
	Limit     int        `json:"limit,omitempty" doc:"Deliveries at once, now."`
	InFlight  int        `json:"inFlight" doc:"Deliveries under way."`
	Due       int64      `json:"due" doc:"Notifications that wait for it."`
	Parked    int64      `json:"parked" doc:"Notifications that wait for a person."`
}

// ChannelList is all channels, by name.
type ChannelList struct {
	Channels []Channel `json:"channels" nullable:"false"`
}

// TestRequest is what POST /v1/channels/{name}/test takes.
type TestRequest struct {
	Address string `json:"address,omitempty" doc:"Who gets the test. Absent: the one target that the channel has." example:"jane@example.com"`
}

// TestResult is what became of a test.
type TestResult struct {
	Accepted  bool   `json:"accepted" doc:"The other side has taken it."`
	Result    string `json:"result" enum:"waiting,accepted,deferred,refused" doc:"Of the recipient. waiting: nobody was asked."`
	Outcome   string `json:"outcome,omitempty" enum:"transient,permanent,unreachable,not_started,lane_fault" doc:"Where it is not about the recipient: transient, permanent, unreachable, not_started, or lane_fault, which holds the channel."`
	Code      string `json:"code,omitempty" example:"535 5.7.8"`
	Text      string `json:"text,omitempty" doc:"What the other side said, or what went wrong."`
	Receipt   string `json:"receipt,omitempty" doc:"What the other side calls what it has taken."`
	Maybe     bool   `json:"maybe,omitempty" doc:"The answer was lost after the data had left: it may have been delivered."`
	Server    string `json:"server,omitempty" doc:"Who was asked."`
	TLS       string `json:"tls,omitempty" doc:"How safely."`
	Truncated bool   `json:"truncated,omitempty" doc:"The text was cut to what the channel takes."`
}

// channelOf shows a channel.
func channelOf(c notify.Channel) Channel {
	out := Channel{
		Name: c.Name, Kind: c.Kind, Workers: c.Workers, Disabled: c.Disabled, Changed: instant(c.Changed), Version: channelVersion(c),
	}
	if json.Valid(c.Settings) {
		out.Settings = c.Settings
	}
	if r := c.Retry; r.Attempts != 0 || r.Interval != 0 || len(r.Waits) > 0 {
		shown := ChannelRetry{}
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
		out.Warnings = shown.warnings()
	}
	return out
}

func channelVersion(c notify.Channel) string {
	c.Changed, c.Version = time.Time{}, 0
	return versionOf(c)
}

// channel reads a channel; what its adapter says of it comes later.
func (spec *ChannelSpec) channel(name string) (notify.Channel, []Fault) {
	c := notify.Channel{Name: name, Kind: spec.Kind, Workers: spec.Workers, Disabled: spec.Disabled}
	faults := faultsOf(notify.CheckName("name", name))
	if spec.Name != "" && spec.Name != name {
		faults = append(faults, Fault{"name", clip(spec.Name), "is not the name in the path; a channel keeps its name"})
	}
	if spec.Kind == "" {
		faults = append(faults, Fault{"kind", "", "is missing: email, teams, slack, ntfy, gotify or webhook"})
	}
	if spec.Workers < 0 || spec.Workers > mostWorkers {
		faults = append(faults, Fault{"workers", fmt.Sprint(spec.Workers), fmt.Sprintf("must be 0 to %d; 0 is 4", mostWorkers)})
	}
	settings, problem := settingsOf(spec.Settings)
	if problem != "" {
		faults = append(faults, Fault{"settings", "", problem}) // not what they are: they may hold a secret in spite of all
	}
	c.Settings = settings
	if spec.Retry != nil {
		var wrong []Fault
		c.Retry, wrong = spec.Retry.retry()
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
	case b.Len() > mostSettings:
		return nil, fmt.Sprintf("has %d bytes; at most %d fit", b.Len(), mostSettings)
	case bytes.Contains(b.Bytes(), []byte(`\u0000`)):
		return nil, "has a NUL, which no setting needs and no database keeps"
	}
	return b.Bytes(), ""
}

// retry reads how often a channel tries. What is not above zero is replaced, of
// which warnings tells (NO-10).
func (r *ChannelRetry) retry() (out notify.Retry, faults []Fault) {
	const mostAttempts = 1_000_000
	if r.Attempts != nil && *r.Attempts > mostAttempts {
		faults = append(faults, Fault{"retry.attempts", fmt.Sprint(*r.Attempts), fmt.Sprintf("must be at most %d", mostAttempts)})
	}
	var interval *time.Duration
	if r.Interval != "" {
		text, negative := strings.CutPrefix(r.Interval, "-")
		d, problem := parseDuration(text)
		if problem != "" {
			faults = append(faults, Fault{"retry.interval", clip(r.Interval), problem})
		}
		if negative {
			d = -d
		}
		interval = &d
	}
	if len(r.Waits) > mostWaits {
		return out, append(faults, Fault{"retry.waits", fmt.Sprintf("%d waits", len(r.Waits)), fmt.Sprintf("at most %d are taken; the last one repeats", mostWaits)})
	}
	var waits []time.Duration
	for i, text := range r.Waits {
		d, problem := parseDuration(text)
		if problem == "" && d == 0 {
			problem = "must be longer than nothing"
		}
		if problem != "" {
			faults = append(faults, Fault{fmt.Sprintf("retry.waits[%d]", i), clip(text), problem})
		}
		waits = append(waits, d)
	}
	return notify.NewRetry(r.Attempts, interval, waits), faults
}

// warnings names the settings for which another value is used (NO-10).
func (r *ChannelRetry) warnings() (list []string) {
	if r.Attempts != nil && *r.Attempts <= 0 {
		list = append(list, fmt.Sprintf("retry.attempts %d is not above zero: %d is used", *r.Attempts, notify.DefaultRetry().Attempts))
	}
	d, problem := parseDuration(strings.TrimPrefix(r.Interval, "-"))
	if r.Interval != "" && problem == "" && (d == 0 || r.Interval[0] == '-') && len(r.Waits) == 0 {
		list = append(list, fmt.Sprintf("retry.interval %s is not above zero: %s is used", clip(r.Interval), formatDuration(notify.DefaultRetry().Interval)))
	}
	return list
}

// channelStatusOf tells how a channel fares, and what waits for it.
func channelStatusOf(c *notify.Channel, lanes map[string]holdfast.LaneStatus, counts map[string]holdfast.LaneCounts) *ChannelStatus {
	waiting := counts[notify.Lane(c.Name)]
	s := &ChannelStatus{State: "unknown", Due: waiting.Pending, Parked: waiting.Parked}
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

func testResultOf(r notify.Report) TestResult {
	out := TestResult{Server: r.Server, TLS: r.TLS, Truncated: r.Truncated, Result: resultName(notify.Waiting)}
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
