package api

import (
	"encoding/json"
	"time"
)

// Channel brings notifications to people. The type holds its settings and how it fares.
type Channel struct {
	Name     string          `json:"name,omitempty" doc:"1 to 64 letters, digits, dots, hyphens or underscores." example:"mail"`
	Kind     string          `json:"kind" doc:"Which adapter: email, teams, slack, ntfy, gotify or webhook." example:"email"`
	Settings json.RawMessage `json:"settings,omitempty" doc:"The adapter's settings, as an object; the guides on e-mail and on chat list the fields. {\"secret\": \"NAME\"} names a file in the folder notifications.secrets of the node. {\"secret\": {\"value\": \"…\"}} gives a secret, which is sealed; {\"secret\": {\"sealed\": \"…\"}} is shown for it, and keeps it when it is sent back."`
	Retry    *ChannelRetry   `json:"retry,omitempty" doc:"How often it tries a notification. Absent: 10 attempts, a minute between two."`
	Workers  int             `json:"workers,omitempty" minimum:"0" maximum:"64" doc:"The most deliveries at once. Absent: 4."`
	Disabled bool            `json:"disabled,omitempty" doc:"Nothing is delivered over it; notifications for it wait."`
	Version  string          `json:"version,omitempty" doc:"The version of the settings. If you send it and it is not the present version, nothing is changed."`
	Changed  *time.Time      `json:"changed,omitempty" doc:"When it was last changed. Ignored in requests."`
	Warnings []string        `json:"warnings,omitempty" nullable:"false" doc:"Settings that were accepted but replaced by other values. Ignored in requests."`
	Status   *ChannelStatus  `json:"status,omitempty" doc:"How it fares. Ignored in requests."`
}

// ChannelSpec is what PUT /v1/channels/{name} takes. It is a Channel, so that a client can send back what it was shown.
type ChannelSpec Channel

// ChannelRetry is how often a channel tries.
type ChannelRetry struct {
	Attempts *int     `json:"attempts,omitempty" doc:"Failed attempts until a notification parks. Values not above zero become 10." example:"10"`
	Interval string   `json:"interval,omitempty" doc:"Between two attempts. Values not above zero become 1m." example:"1m"`
	Waits    []string `json:"waits,omitempty" nullable:"false" doc:"Instead of interval: the waits one after another; the last one repeats." example:"[\"1m\",\"5m\",\"15m\",\"1h\"]"`
}

// ChannelStatus is how a channel fares on this node.
type ChannelStatus struct {
	State     string     `json:"state" enum:"ok,back-off,held,disabled,unknown" doc:"back-off: its last attempts failed, and one message probes it from time to time; held: a fault of the channel itself, such as refused credentials, that a person must fix; unknown: this node does not serve it yet, or not at all."`
	Reason    string     `json:"reason,omitempty" doc:"What the last failure said."`
	Since     *time.Time `json:"since,omitempty" doc:"Of the state."`
	NextProbe *time.Time `json:"nextProbe,omitempty" doc:"When the node tries it again by itself."`
	Failures  int        `json:"failures,omitempty" doc:"In a row."`
	Limit     int        `json:"limit,omitempty" doc:"Deliveries at once, now."`
	InFlight  int        `json:"inFlight" doc:"Deliveries under way."`
	Due       int64      `json:"due" doc:"Notifications that wait for it."`
	Parked    int64      `json:"parked" doc:"Notifications that wait for a person."`
}

// ChannelList holds all channels, by name.
type ChannelList struct {
	Channels []Channel `json:"channels" nullable:"false"`
}

// TestRequest is what POST /v1/channels/{name}/test takes.
type TestRequest struct {
	Address string `json:"address,omitempty" doc:"Who gets the test. Absent: the one target that the channel has." example:"jane@example.com"`
}

// TestResult is the result of a test.
type TestResult struct {
	Accepted  bool   `json:"accepted" doc:"The other side has taken it."`
	Result    string `json:"result" enum:"waiting,accepted,deferred,refused" doc:"Of the recipient. waiting: nobody was asked."`
	Outcome   string `json:"outcome,omitempty" enum:"transient,permanent,unreachable,not_started,lane_fault" doc:"Where it is not about the recipient: transient, permanent, unreachable, not_started, or lane_fault, which holds the channel."`
	Code      string `json:"code,omitempty" example:"535 5.7.8"`
	Text      string `json:"text,omitempty" doc:"What the other side said, or what went wrong."`
	Receipt   string `json:"receipt,omitempty" doc:"The other side's own id for what it has taken."`
	Maybe     bool   `json:"maybe,omitempty" doc:"The data was sent but the answer was lost: it may have been delivered."`
	Server    string `json:"server,omitempty" doc:"Who was asked."`
	TLS       string `json:"tls,omitempty" doc:"How safely."`
	Truncated bool   `json:"truncated,omitempty" doc:"The text was cut to what the channel takes."`
}
