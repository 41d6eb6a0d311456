package api

import "time"

// Situation says why a message is where it is, what happens next, and what a person can do.
type Situation struct {
	Cause   string     `json:"cause" example:"lane_down" doc:"A short, stable name: attempting, retry, delayed, slot, ordering, paused, lane_held, lane_down, unknown_destination, channel_gone, channel_held, channel_down, subscription_gone, subscription_paused, node_unready, doubted_clock, discarding, parked_ with the reason, expired, delivered, discarded."`
	Because string     `json:"because" doc:"Why it is there, for a person." example:"Destination erp does not answer: connection refused."`
	Next    string     `json:"next" doc:"What happens without anybody." example:"The node looks every minute whether it answers again, and then sends what waits."`
	At      *time.Time `json:"at,omitempty" doc:"When that is, as far as it is known."`
	Actions []Action   `json:"actions" nullable:"false" doc:"What a person can do, the most likely first."`
}

// Action is one thing that a person can do.
type Action struct {
	Verb    string `json:"verb" enum:"retry,run,reschedule,discard,resume,configure" doc:"configure: it is done in the configuration or on the machine, and not by a request."`
	Of      string `json:"of" enum:"message,destination,channel,subscription,node" doc:"What it is done to."`
	Name    string `json:"name" doc:"Of that: an id, or a name." example:"erp"`
	Text    string `json:"text" doc:"What it does, for a person." example:"Try destination erp at once."`
	Command string `json:"command,omitempty" doc:"On the command line." example:"holdfast destinations resume erp"`
	Allowed bool   `json:"allowed" doc:"The caller may do it."`
	Why     string `json:"why,omitempty" doc:"Why the caller may not." example:"needs the right operate"`
}
