package main

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/opennotificaties"
)

// nobody owns the subscriptions that no client may change, as long as there is no client of this id.
const nobody = "setup_configuration"

// channel checks a topic with the node. What the file does not say stays as it is.
func (p *importing) channel(ctx context.Context, c *opennotificaties.Channel, all *[]change) error {
	old, err := p.node.Topics().Get(ctx, c.Name)
	if err != nil && !absent(err) {
		return p.found(err, c.Path, channelFields())
	}
	spec := api.TopicSpec(old)
	spec.Name = c.Name
	if c.Documentation != nil {
		spec.Documentation = *c.Documentation
	}
	if c.Filters != nil {
		spec.Attributes = c.Filters
	}
	next, err := p.node.Topics().Check(ctx, c.Name, spec)
	if err != nil {
		return p.found(err, c.Path, channelFields())
	}
	*all = append(*all, changeOf("topic", c.Name, old.Version, next.Version, map[string]bool{
		"documentatie_link": old.Documentation != next.Documentation, "filters": !slices.Equal(old.Attributes, next.Attributes),
	}, func(ctx context.Context) error {
		_, err := p.node.Topics().Put(ctx, c.Name, spec)
		return err
	}))
	return nil
}

// subscription checks a subscription with the node. What the file does not say stays as it is.
func (p *importing) subscription(ctx context.Context, s *opennotificaties.Subscription, all *[]change) error {
	old, err := p.node.Subscriptions().Get(ctx, s.ID)
	if err != nil && !absent(err) {
		return p.found(err, s.Path, subscriptionFields())
	}
	spec := p.specOf(s, &old)
	next, err := p.node.Subscriptions().Check(ctx, s.ID, spec)
	if err != nil {
		return p.found(err, s.Path, subscriptionFields())
	}
	*all = append(*all, changeOf("subscription", s.ID, old.Version, next.Version, map[string]bool{
		"callback_url": old.URL != next.URL, "auth": !reflect.DeepEqual(old.Authorization, next.Authorization),
		"kanalen": !reflect.DeepEqual(old.Abonnement, next.Abonnement), "filter": old.Abonnement != nil && string(old.Filter) != string(next.Filter), "send_cloudevents": old.Mode != next.Mode,
	}, func(ctx context.Context) error {
		_, err := p.node.Subscriptions().Put(ctx, s.ID, spec)
		return err
	}))
	return nil
}

// specOf returns what becomes of an old subscription; of a zero one, a new one.
func (p *importing) specOf(s *opennotificaties.Subscription, old *api.Subscription) api.SubscriptionSpec {
	spec := api.SubscriptionSpec(*old)
	spec.ID, spec.URL, spec.Topics, spec.Filter = s.ID, s.URL, nil, nil
	if s.Authorization != nil {
		spec.Authorization = authorizationOf(s.Authorization)
	}
	a := api.Abonnement{}
	if old.Abonnement != nil {
		a = *old.Abonnement
	}
	a.Owner = p.ownerOf(old)
	if s.CloudEvents != nil {
		a.SendCloudEvents = *s.CloudEvents
	}
	switch {
	case s.CloudEvents != nil && *s.CloudEvents:
		spec.Mode = "notificaties"
	case s.CloudEvents != nil || old.ID == "":
		spec.Mode = "plain"
	}
	if s.Groups != nil {
		a.Kanalen = nil
	}
	for _, g := range s.Groups {
		a.Kanalen = append(a.Kanalen, api.FilterGroup{Naam: g.Channel, Filters: g.Filters})
	}
	if s.Types != nil {
		a.CloudEventFilters = nil
	}
	for _, t := range s.Types {
		a.CloudEventFilters = append(a.CloudEventFilters, api.CloudEventFilter{TypeSubstring: t.Contains, Filters: t.Filters})
	}
	spec.Abonnement = &a
	return spec
}

// ownerOf returns the client that may change a subscription: who was named, or whoever may now.
func (p *importing) ownerOf(old *api.Subscription) string {
	switch {
	case p.owner != "":
		return p.owner
	case old.Abonnement != nil:
		return old.Abonnement.Owner
	}
	return nobody
}

func authorizationOf(a *opennotificaties.Authorization) *api.Authorization {
	if a.Kind == "" {
		return nil
	}
	out := &api.Authorization{Kind: a.Kind, Client: a.Client, URL: a.URL, Scopes: a.Scopes, Secret: api.KeptSecret{Value: a.Secret}}
	if a.Kind == "key" {
		out.Header = "Authorization"
	}
	return out
}

// changeOf tells what changes: the version of a dry run says whether anything does.
func changeOf(kind, name, old, next string, fields map[string]bool, apply func(ctx context.Context) error) change {
	c := change{Kind: kind, Name: name, Change: "changed", apply: apply}
	switch old {
	case "":
		c.Change = "new"
	case next:
		c.Change = "same"
	default:
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			if fields[f] {
				c.Fields = append(c.Fields, f)
			}
		}
	}
	return c
}

// channelFields returns the keys of the file by the fields of the operator API that are made of them.
func channelFields() map[string]string {
	return map[string]string{"name": "naam", "documentation": "documentatie_link", "attributes": "filters"}
}

// subscriptionFields is channelFields for subscriptions.
func subscriptionFields() map[string]string {
	return map[string]string{
		"id": "uuid", "url": "callback_url", "authorization.url": "oauth2_token_url", "authorization.client": "auth_client_id", "authorization.scopes": "oauth2_scope",
		"authorization.secret": "secret", "abonnement.kanalen": "kanalen", "abonnement.cloudeventFilters": "cloudevent_filters", "topics": "kanalen",
	}
}

// found notes the faults that the node names, with their lines. Another error ends the import.
func (p *importing) found(err error, path string, keys map[string]string) error {
	problem, ok := errors.AsType[*api.Problem](err)
	if !ok || problemCode(problem.Status) != exitUsage || len(problem.Errors) == 0 {
		return err
	}
	for _, f := range problem.Errors {
		p.fault(path+"."+inFile(f.Field, keys), f.Value, f.Problem)
	}
	return nil
}

// inFile returns the key of the file for a field.
func inFile(field string, keys map[string]string) string {
	for name := field; ; {
		if key := keys[name]; key != "" {
			return key + field[len(name):]
		}
		cut := strings.LastIndexAny(name, ".[")
		if cut < 0 {
			return field
		}
		name = name[:cut]
	}
}
