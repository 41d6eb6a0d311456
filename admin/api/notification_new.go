package api

import "encoding/json"

// NewNotification is what POST /v1/notifications takes.
type NewNotification struct {
	ID      string `json:"id,omitempty" maxLength:"128" doc:"The notification id, 1 to 128 printable ASCII characters; a UUID in any form is one value. Absent: the node mints one. Send the same id again when you do not know whether a request arrived."`
	Type    string `json:"type,omitempty" maxLength:"128" doc:"Your name for this sort of notification; for people and rules."`
	List    string `json:"list" maxLength:"64" doc:"Who is told: the name of a list at central. Central looks the list up when it delivers." example:"operators"`
	Subject string `json:"subject" doc:"One line of at most 1000 bytes; breaks in it become spaces." example:"Tank 4 is full"`
	Body    string `json:"body,omitempty" doc:"Plain text."`

	OriginInstance    string `json:"originInstance,omitempty" maxLength:"256" doc:"Which instance of a program it comes from; kept even when that instance is gone."`
	SourceScript      string `json:"sourceScript,omitempty" maxLength:"256" doc:"Which script or program part it comes from."`
	ExecutionID       string `json:"executionId,omitempty" maxLength:"256" doc:"Which run of the script."`
	ParentExecutionID string `json:"parentExecutionId,omitempty" maxLength:"256" doc:"Which run started that run."`

	Data json.RawMessage `json:"data,omitempty" doc:"Any JSON, for programs that receive it."`
}

// NotificationAccepted is the answer when a notification is taken.
type NotificationAccepted struct {
	ID         string `json:"id" doc:"The notification id, in its canonical form. It stays the same on the whole way to the recipients."`
	Accepted   bool   `json:"accepted" doc:"Always true: a refusal is a problem document."`
	Durability string `json:"durability" doc:"How far it is safe: local is on this node's disk." example:"local"`
	Duplicate  bool   `json:"duplicate" doc:"The id was known, with the same content: this request changed nothing."`
}
