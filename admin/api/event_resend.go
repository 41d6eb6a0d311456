package api

// ResendRequest is what POST /v1/events/{id}/resend takes.
type ResendRequest struct {
	ID           string `json:"id,omitempty" maxLength:"128" doc:"The id of the resend. Absent: the node mints one. Send the same id again when you do not know whether a request arrived."`
	Subscription string `json:"subscription,omitempty" doc:"Only to this subscription. Absent: to all." example:"shop"`
	MatchNow     bool   `json:"matchNow,omitempty" doc:"To those that the event is for now. Absent: to those that it was for when it came."`
}

// Resent is the answer when a resend is stored.
type Resent struct {
	ID        string          `json:"id" doc:"The id of the resend, in its canonical form."`
	Event     string          `json:"event" doc:"The id of the event."`
	Source    string          `json:"source" doc:"Of the event."`
	Duplicate bool            `json:"duplicate" doc:"The id was known: this request changed nothing."`
	Messages  []ResentMessage `json:"messages" nullable:"false" doc:"One for each subscription that gets the event again."`
}

// ResentMessage is the message of a resend to one subscription.
type ResentMessage struct {
	Subscription string `json:"subscription"`
	Message      string `json:"message" doc:"The id of the new message. Its webhook-id is that of the first message of the event to the subscription, if there was one."`
}
