package api

import "time"

// UsualSchedule is the Schedule of all subscriptions without one of their own.
type UsualSchedule struct {
	Backoff string  `json:"backoff,omitempty" enum:"exponential,plain,off" doc:"plain: as with a factor of one second; off: each retry is at once."`
	Factor  string  `json:"factor,omitempty" doc:"In requests, absent: as the node is configured, as the others of the five." example:"25s"`
	Base    float64 `json:"base,omitempty" example:"4"`
	Cap     string  `json:"cap,omitempty" doc:"The longest wait." example:"52000s"`
	Retries *int    `json:"retries,omitempty" minimum:"0" maximum:"1000" doc:"Attempts after the first." example:"7"`
	Apply   string  `json:"apply,omitempty" enum:"next,waiting" doc:"For what the last change counted. next: each retry that is planned already comes when it was planned, and what fails from now on waits by the new schedule; waiting: planned retries move, too. In requests, absent: next."`
	Version string  `json:"version,omitempty" doc:"If you send it and it is not the present version, nothing is changed. Absent in an answer: nobody has set it."`

	From      string           `json:"from,omitempty" enum:"configuration,operator" doc:"Who gave it. Ignored in requests, as all that follows."`
	Actor     string           `json:"actor,omitempty" doc:"Who set it, or gave up what was set."`
	Changed   *time.Time       `json:"changed,omitempty" doc:"When."`
	Moving    bool             `json:"moving,omitempty" doc:"Planned retries are still moving."`
	Timetable []PlannedAttempt `json:"timetable,omitempty" nullable:"false" doc:"When a message is tried that no attempt delivers; the first 100 attempts."`
}

// UsualScheduleSpec is what PUT /v1/schedule takes. It is a UsualSchedule, so that a client can send back what it was
// shown.
type UsualScheduleSpec UsualSchedule

// PlannedAttempt is a line of a timetable.
type PlannedAttempt struct {
	Attempt int    `json:"attempt"`
	Wait    string `json:"wait" doc:"Since the attempt before." example:"1m40s"`
	After   string `json:"after" doc:"Since the first attempt." example:"2m5s"`
}
