package api

import "time"

// History is what nodes did in each minute.
type History struct {
	Minutes []Minute `json:"minutes" nullable:"false" doc:"The oldest first. A minute that is missing is a gap: the node did not run, or its store took nothing."`
}

// Minute is what one node did in one minute, and how things stood at its end.
type Minute struct {
	At      time.Time `json:"at" doc:"Its beginning, by the clock of the node." example:"2026-11-30T20:15:00Z"`
	Node    string    `json:"node" doc:"Who counted. Nodes that share a store have a row each." example:"plant-7"`
	Seconds int64     `json:"seconds" doc:"The time that it covers: less than 60 after a start." example:"60"`

	Delivered int64 `json:"delivered" doc:"Messages that were delivered." example:"1200"`
	Failed    int64 `json:"failed" doc:"Attempts that failed."`
	Parked    int64 `json:"parked" doc:"Messages that were parked."`
	Expired   int64 `json:"expired" doc:"Messages whose time to live ended."`
	Notified  int64 `json:"notified" doc:"Of delivered, copies of notifications."`
	Received  int64 `json:"received" doc:"Messages that came in."`

	Waiting         int64   `json:"waiting" doc:"Pending messages, at its end. Nodes that share a store see the same." example:"17"`
	ParkedNow       int64   `json:"parkedNow" doc:"Parked messages, at its end."`
	OldestSeconds   float64 `json:"oldestSeconds" doc:"How long the oldest due message had waited, at its end."`
	NotifyWaiting   int64   `json:"notifyWaiting" doc:"Of waiting, copies of notifications."`
	NotifyParkedNow int64   `json:"notifyParkedNow" doc:"Of parkedNow, copies of notifications."`
}
