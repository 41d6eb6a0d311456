package api

import "time"

// Topic is a name under which events are published.
type Topic struct {
	Name          string     `json:"name,omitempty" doc:"1 to 128 letters, digits and . _ - : without a dot in front." example:"orders"`
	Description   string     `json:"description,omitempty" maxLength:"1000" doc:"For people."`
	Documentation string     `json:"documentation,omitempty" maxLength:"2000" doc:"A link for people."`
	Attributes    []string   `json:"attributes,omitempty" maxItems:"100" nullable:"false" doc:"Names of attributes by which its events are to be filtered. The Notificaties API holds notifications and subscriptions to them."`
	Version       string     `json:"version,omitempty" doc:"If you send it and it is not the present version, nothing is changed."`
	Changed       *time.Time `json:"changed,omitempty" doc:"When it was last changed. Ignored in requests."`
}

// TopicSpec is what PUT /v1/topics/{name} takes. It is a Topic, so that a client can send back what it was
// shown.
type TopicSpec Topic

// TopicList holds all topics, by name.
type TopicList struct {
	Topics []Topic `json:"topics" nullable:"false"`
}
