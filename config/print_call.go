package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// printer decides what is printed of values that may hold a secret.
type printer struct {
	whole bool // all of them, which nobody is shown: to compare
}

func (p printer) url(text string) string {
	if p.whole {
		return text
	}
	return secrets.URL(text)
}

func (p printer) header(name, value string) string {
	if p.whole || value == "" || secrets.Plain(name) {
		return value
	}
	return hidden
}

func (p printer) call(c Call) *yaml.Node {
	n := mapping(pair{"url", str(p.url(c.URL))}, pair{"method", str(c.Method)})
	if len(c.Headers) > 0 {
		headers := mapping()
		for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
			add(headers, name, str(p.header(name, c.Headers[name])))
		}
		add(n, "headers", headers)
	}
	if auth := p.auth(c.Auth); len(auth.Content) > 0 {
		add(n, "auth", auth)
	}
	addAll(n, optional("ca", c.CA), optional("cert", c.Cert), optional("key", c.Key))
	if len(c.Success) > 0 {
		add(n, "success", listOf(c.Success, Statuses.String))
	}
	if len(c.Permanent) > 0 {
		add(n, "permanent", listOf(c.Permanent, Statuses.String))
	}
	add(n, "response", str(FormatSize(c.Response)))
	return n
}

func (p printer) auth(a Auth) *yaml.Node {
	n := mapping()
	if a.Basic != nil {
		add(n, "basic", mapping(pair{"user", str(a.Basic.User)}, pair{"password", secretNode(a.Basic.Password)}))
	}
	if !a.Bearer.IsZero() {
		add(n, "bearer", secretNode(a.Bearer))
	}
	if a.Key != nil {
		add(n, "key", mapping(pair{"header", str(a.Key.Header)}, pair{"value", secretNode(a.Key.Value)}))
	}
	if o := a.OAuth2; o != nil {
		grant := mapping(pair{"url", str(p.url(o.URL))}, pair{"client", str(o.Client)}, pair{"secret", secretNode(o.Secret)})
		if len(o.Scopes) > 0 {
			add(grant, "scopes", listOf(o.Scopes, func(s string) string { return s }))
		}
		add(n, "oauth2", grant)
	}
	return n
}

func listOf[T any](list []T, show func(T) string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, v := range list {
		n.Content = append(n.Content, str(show(v)))
	}
	return n
}
