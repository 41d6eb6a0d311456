package config

import (
	"maps"
	"time"

	"go.yaml.in/yaml/v3"
)

// Receive says what comes in and from whom.
type Receive struct {
	Window    time.Duration       // the longest that a sender may retry one message
	Sources   map[string]Source   // by the node id of the sender; key "secrets" of the file
	Endpoints map[string]Endpoint // by name
}

// Source is a peer whose messages are taken: the form of its signature and
// the secrets that it may sign with, the newest first.
type Source struct {
	HMAC    HMAC
	Secrets []Secret
}

// Endpoint says what becomes of the messages for one endpoint: exactly one of
// Forward and Keep.
type Endpoint struct {
	Forward string        // URL of a local program
	Timeout time.Duration // of one call; zero with Keep
	Keep    bool          // the row waits in the inbox until it is marked done
}

const defaultEndpointTimeout = 30 * time.Second

func receiveKeys() section[Receive] {
	sources := named("secrets", func(c *Receive) *map[string]Source { return &c.Sources }, many[Source]{
		read:  (*loader).source,
		show:  func(_ printer, s Source) *yaml.Node { return sourceNode(s) },
		check: (*report).checkSource,
		place: "SOURCE",
		told: []row{
			{"", "The secret of this source, or a list of them, of which any is accepted.", "`{env: NAME}`, `{file: PATH}` or a list of these", "none: its messages are refused"},
			{"env", "Variable that holds the secret.", variableCell, ""},
			{"file", "File that holds it.", "path", ""},
			{"hmac", "Form of its signatures; `v1` only for old peers.", "`v2`, `v1`", "`v2`"},
			{"secrets", "Several secrets, where `hmac` is given too.", "list of `{env: NAME}` and `{file: PATH}`", ""},
		},
		schema: sourceSchema(),
	})
	sources.reset = func(c *Receive) { c.Sources = map[string]Source{} }
	endpoints := named("endpoints", func(c *Receive) *map[string]Endpoint { return &c.Endpoints }, endpoint())
	endpoints.reset = func(c *Receive) { c.Endpoints = map[string]Endpoint{} }
	return section[Receive]{
		key("window", func(c *Receive) *time.Duration { return &c.Window }, period(time.Second, maxTime), day,
			"The longest that any sender may retry one message: its `ttl` plus one `timeout`. A node with endpoints does not start unless `retention.inbox` is at least twice as long."),
		sources, endpoints,
	}
}

func sourceSchema() schema {
	place := placeSchema()
	many := schema{"type": "array", "items": place}
	properties := schema{"hmac": schema{"enum": []HMAC{HMACv2, HMACv1}}, "secrets": many}
	maps.Copy(properties, place["properties"].(schema))
	return schema{"anyOf": []schema{many, {"type": "object", "properties": properties, "additionalProperties": false}}}
}

func endpoint() many[Endpoint] {
	keeps := func(_ *Config, e *Endpoint) bool { return e.Keep }
	calls := func(_ *Config, e *Endpoint) bool { return !e.Keep }
	keys := section[Endpoint]{
		address("forward", func(e *Endpoint) *string { return &e.Forward }, "http://127.0.0.1:9000/orders", "URL of a local program, which is called by HTTP POST. A query is allowed.").
			tells("", "this or `keep` must be set").only(calls),
		key("keep", func(e *Endpoint) *bool { return &e.Keep }, truth(), false, "The message waits in the inbox until somebody marks it done.").only(keeps),
		key("timeout", func(e *Endpoint) *time.Duration { return &e.Timeout }, period(time.Millisecond, time.Hour), defaultEndpointTimeout, "Longest time of one call.").only(calls),
	}
	m := each("ENDPOINT", keys)
	m.read = func(l *loader, path string, n *yaml.Node) (e Endpoint) {
		l.object(path, n, keys.decoders(l, &e))
		if !l.given(join(path, "timeout")) && !e.Keep {
			e.Timeout = defaultEndpointTimeout
		}
		return e
	}
	m.show = func(p printer, e Endpoint) *yaml.Node {
		n := keys.node(p, &e)
		n.Style = yaml.FlowStyle
		return n
	}
	m.check = (*report).checkEndpoint
	return m
}
