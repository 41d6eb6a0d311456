package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// Hub is what a node needs for topics, subscriptions and events. All fields are set.
type Hub struct {
	Publisher *fanout.Publisher
	Book      *fanout.Book
	Schedule  fanout.Schedule // of subscriptions without one, as this node is configured
	// Seal seals a secret of a subscription, whose other settings are set.
	Seal func(s *fanout.Subscription, use fanout.Use, secret string) (string, error)
	// NewSecret makes a secret that signs, of the kind that the subscription has. public is what a receiver verifies
	// with, if that is not the secret itself.
	NewSecret func(s *fanout.Subscription) (secret, public string, err error)
	// Open opens a sealed secret of a subscription whose other settings are set.
	Open func(s *fanout.Subscription, secret fanout.Sealed) (string, error)
	// Check returns the faults of how a subscription is delivered, each a *holdfast.FieldError.
	Check func(s *fanout.Subscription) error
	// Unready returns why nobody is called for a subscription, by the fault of this node; empty: it is ready.
	// Nil: nobody knows.
	Unready func(id string) string
	// Try sends a subscriber an event that is not stored.
	Try func(ctx context.Context, s *fanout.Subscription, e *fanout.Event) (api.TestExchange, error)
}

// unready is Unready, if the node can say.
func (h *Hub) unready(id string) string {
	if h.Unready == nil {
		return ""
	}
	return h.Unready(id)
}

// fanOut returns the parts of the fan-out, or why there are none.
func (s *Service) fanOut() (*Hub, *api.Problem) {
	if s.Hub == nil {
		return nil, api.Unsupported.Problem(fmt.Sprintf("node %s keeps no topics and subscriptions; ask a node of role central or standalone", s.Name))
	}
	return s.Hub, nil
}

// sees reports whether something about a topic, and perhaps a subscription, is in the caller's scope.
func (s *Service) sees(ctx context.Context, topic, subscription string) bool {
	o := api.Object{Site: s.From(), Topic: topic}
	if subscription != "" {
		o.Destination = fanout.Lane(subscription)
	}
	return within(ctx, o)
}

// Topics offers the topics of events.
type Topics struct{ *Service }

func topicOf(t *fanout.Topic) api.Topic {
	return api.Topic{Name: t.Name, Description: t.Description, Documentation: t.Documentation, Attributes: t.Attributes, Version: strconv.FormatInt(t.Version, 10), Changed: instant(t.Changed)}
}

// List returns the topics by name.
func (s Topics) List(ctx context.Context) (out api.TopicList, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	all, err := hub.Book.Topics(ctx)
	if err != nil {
		return out, s.refuse(ctx, "list topics", err)
	}
	out.Topics = []api.Topic{}
	for i := range all {
		if s.sees(ctx, all[i].Name, "") {
			out.Topics = append(out.Topics, topicOf(&all[i]))
		}
	}
	return out, nil
}

// Get returns one topic.
func (s Topics) Get(ctx context.Context, name string) (out api.Topic, err error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return out, err
	}
	return topicOf(&t), nil
}

func (s Topics) find(ctx context.Context, name string) (t fanout.Topic, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return t, p
	}
	t, found, err := hub.Book.Topic(ctx, name)
	if err != nil {
		return t, s.refuse(ctx, "read the topic", err)
	}
	if !found || !s.sees(ctx, name, "") {
		return t, noTopic("name", name)
	}
	return t, nil
}

func noTopic(field, name string) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no topic %q", api.Clip(name)), api.Fault{Field: field, Value: api.Clip(name), Problem: "is not the name of a topic"})
}

// Put makes or replaces a topic, if the conditions hold.
func (s Topics) Put(ctx context.Context, name string, spec *api.TopicSpec, only Conditions, wrong ...api.Fault) (out api.Topic, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	if !s.sees(ctx, name, "") {
		return out, outside("topic", name)
	}
	t := fanout.Topic{Name: name, Description: spec.Description, Documentation: spec.Documentation, Attributes: spec.Attributes}
	if faults := slices.Concat(wrong, api.FaultsOf(t.Validate())); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	return anew(s.Service, func() (api.Topic, error) {
		old, exists, err := hub.Book.Topic(ctx, name)
		if err != nil {
			return out, s.refuse(ctx, "read the topic", err)
		}
		is := state{what: "topic", name: name, exists: exists, version: strconv.FormatInt(old.Version, 10), seen: spec.Version}
		if exists && old.Description == t.Description && old.Documentation == t.Documentation && slices.Equal(old.Attributes, t.Attributes) {
			is.wanted = is.version
		}
		if p := only.check(is); p != nil {
			return out, p
		}
		if is.same() {
			return topicOf(&old), nil
		}
		if only.DryRun {
			out = topicOf(&t)
			out.Version = ""
			return out, nil
		}
		t.Version = old.Version
		if t.Version, err = hub.Book.Store().PutTopic(ctx, t, Actor(ctx)); err != nil {
			return out, s.notStored(ctx, "store the topic", err)
		}
		t.Changed = time.Now().UTC()
		return topicOf(&t), nil
	})
}

// Delete removes a topic, if the conditions hold.
func (s Topics) Delete(ctx context.Context, name string, only Conditions) error {
	_, err := anew(s.Service, func() (struct{}, error) {
		t, err := s.find(ctx, name)
		if err != nil {
			return struct{}{}, err
		}
		if p := only.check(state{what: "topic", name: name, exists: true, version: strconv.FormatInt(t.Version, 10)}); p != nil {
			return struct{}{}, p
		}
		err = s.Hub.Book.Store().DeleteTopic(ctx, name, t.Version, Actor(ctx))
		if errors.Is(err, holdfast.ErrNotFound) {
			return struct{}{}, noTopic("name", name)
		} else if err != nil {
			return struct{}{}, s.notStored(ctx, "delete the topic", err)
		}
		return struct{}{}, nil
	})
	return err
}
