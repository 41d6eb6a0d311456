package api

import "time"

// DestinationStatus is a destination with its counts and its lane.
type DestinationStatus struct {
	Name        string     `json:"name"`
	Category    string     `json:"category,omitempty" doc:"external-system, cached-db-write, notification or another; absent: a peer."`
	Configured  bool       `json:"configured" doc:"False: it is in no configuration any more, but messages for it are kept."`
	Pending     int64      `json:"pending"`
	Parked      int64      `json:"parked"`
	Expired     int64      `json:"expired"`
	Lane        string     `json:"lane" enum:"up,down,held,paused,unknown" doc:"paused: a person wants it left alone; down: its last attempts failed, and one message probes it from time to time; held: a fault of the destination itself, such as refused credentials."`
	Problem     string     `json:"problem,omitempty" doc:"What the last failure said, or why the lane is held."`
	OldestDue   string     `json:"oldestDue,omitempty" doc:"How long its due messages have made no progress; absent: they make progress, or none is due."`
	DecidedBy   string     `json:"decidedBy,omitempty" doc:"Who last paused or resumed it: the name of a token, or local."`
	DecidedAt   *time.Time `json:"decidedAt,omitempty"`
	NextProbe   *time.Time `json:"nextProbe,omitempty" doc:"Of a lane that is down or held."`
	Failures    int        `json:"failures" doc:"Failed attempts in a row."`
	InFlight    int        `json:"inFlight" doc:"Requests under way."`
	Concurrency int        `json:"concurrency" doc:"How many requests may be under way now."`
	TTL         string     `json:"ttl,omitempty" doc:"For a message that gives none."`
	Timetable   []string   `json:"timetable,omitempty" nullable:"false" doc:"When a message is tried, unless it says otherwise."`
}

// DestinationList holds all destinations of a node, by name.
type DestinationList struct {
	Destinations []DestinationStatus `json:"destinations" nullable:"false"`
}
