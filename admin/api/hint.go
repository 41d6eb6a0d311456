package api

import "time"

// The kinds of events in a stream of hints.
const (
	HintHello        = "hello"
	HintCounts       = "counts"
	HintMessage      = "message"
	HintNotification = "notification"
	HintChannel      = "channel"
	HintDestination  = "destination"
)

// HintKinds lists the kinds of hints in the order in which they are sent.
func HintKinds() []string {
	return []string{HintCounts, HintMessage, HintNotification, HintChannel, HintDestination}
}

// Hint says that something is not what it was. What it is now must be asked for.
type Hint struct {
	IDs  []string `json:"ids,omitempty" nullable:"false" doc:"What changed: ids of messages, or names of channels or destinations. At most 100."`
	More int64    `json:"more,omitempty" doc:"How many changes have no id here."`
}

// Hello is the first event of a stream of hints. What changes after it is hinted at; what a reader has read
// before may be old.
type Hello struct {
	Now      time.Time `json:"now"`
	Messages bool      `json:"messages" doc:"The stream tells of messages: the node keeps an activity log. Otherwise it tells only that counts changed."`
	Resumed  bool      `json:"resumed,omitempty" doc:"The request had a Last-Event-ID."`
	Missed   *int64    `json:"missed,omitempty" doc:"How many changes of messages there were since that event. Absent: not known."`
}

// LiveEvent is one event of a stream of hints.
type LiveEvent struct {
	ID    int64 // for Last-Event-ID
	Kind  string
	Hello *Hello // of HintHello
	Hint  *Hint  // of the others
}
