package fanout

import (
	"encoding/json"

	"github.com/holdfast-mq/holdfast/rows"
)

// TopicRow returns a topic as stores keep it. They set its version.
func TopicRow(t *Topic) (*rows.Topic, error) {
	attributes, err := json.Marshal(append([]string{}, t.Attributes...))
	if err != nil {
		return nil, err
	}
	return &rows.Topic{Name: t.Name, Description: t.Description, Documentation: t.Documentation, Attributes: string(attributes), Changed: rows.Now}, nil
}

// Read sets the attributes from their column. What a damaged file has lost of them counts as none, which
// restricts nothing.
func (t *Topic) Read(attributes string) {
	if json.Unmarshal([]byte(attributes), &t.Attributes) != nil {
		t.Attributes = nil
	}
}

// SubscriptionRow returns a subscription as stores keep it. They set its version and its instants.
func SubscriptionRow(s *Subscription) (*rows.Subscription, error) {
	filter := string(s.Filter)
	if filter == "" {
		filter = "{}" // an empty text is a lost one
	}
	topics, err := json.Marshal(s.Topics)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(s.Settings)
	if err != nil {
		return nil, err
	}
	return &rows.Subscription{
		ID: s.ID, State: int64(s.State), Why: s.Why, Actor: s.Actor, Topics: string(topics), Filter: filter, Settings: string(settings),
		Ended: rows.None, Since: rows.Now, Created: rows.Now, Changed: rows.Now,
	}, nil
}

// Read sets topics, filter and settings from their columns. What a damaged file has lost of them is a
// Fault.
func (s *Subscription) Read(topics, filter, settings string) {
	s.Filter = json.RawMessage(filter)
	lost := func(what string) { s.Fault = what + " of the subscription are lost with a damaged file: put them back" }
	if json.Unmarshal([]byte(settings), &s.Settings) != nil {
		lost("settings")
	}
	if !json.Valid(s.Filter) {
		lost("filters")
	}
	if json.Unmarshal([]byte(topics), &s.Topics) != nil {
		lost("topics")
	}
}
