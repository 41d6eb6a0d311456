package config

import (
	"maps"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

const defaultEndpointTimeout = 30 * time.Second

func receiveKeys() setting.Section[Receive] {
	sources := setting.Named("secrets", func(c *Receive) *map[string]Source { return &c.Sources }, setting.Many[Source]{
		Read:  source,
		Show:  func(_ setting.Printer, s Source) *yaml.Node { return sourceNode(s) },
		Check: checkSource,
		Place: "SOURCE",
		Told: []setting.Row{
			{Doc: "The secret of this source, or a list of secrets, each of which is accepted.", Values: "`{env: NAME}`, `{file: PATH}` or a list of these", Usual: "none: its messages are refused"},
			{Path: "env", Doc: "Variable that holds the secret.", Values: setting.VariableCell},
			{Path: "file", Doc: "File that holds it.", Values: "path"},
			{Path: "hmac", Doc: "Form of its signatures; `v1` only for old peers.", Values: "`v2`, `v1`", Usual: "`v2`"},
			{Path: "secrets", Doc: "Several secrets, if `hmac` is given too.", Values: "list of `{env: NAME}` and `{file: PATH}`"},
		},
		Schema: sourceSchema(),
	})
	sources.Reset = func(c *Receive) { c.Sources = map[string]Source{} }
	endpoints := setting.Named("endpoints", func(c *Receive) *map[string]Endpoint { return &c.Endpoints }, endpoint())
	endpoints.Reset = func(c *Receive) { c.Endpoints = map[string]Endpoint{} }
	return setting.Section[Receive]{
		setting.Key("window", func(c *Receive) *time.Duration { return &c.Window }, setting.Period(time.Second, setting.MaxTime), setting.Day,
			"The longest that any sender may retry one message: its `ttl` plus one `timeout`. A node with endpoints does not start unless `retention.inbox` is at least twice as long."),
		sources, endpoints,
	}
}

func sourceSchema() setting.Schema {
	place := setting.PlaceSchema()
	many := setting.Schema{"type": "array", "items": place}
	properties := setting.Schema{"hmac": setting.Schema{"enum": []HMAC{HMACv2, HMACv1}}, "secrets": many}
	maps.Copy(properties, place["properties"].(setting.Schema))
	return setting.Schema{"anyOf": []setting.Schema{many, {"type": "object", "properties": properties, "additionalProperties": false}}}
}

func endpoint() setting.Many[Endpoint] {
	keeps := func(_ any, e *Endpoint) bool { return e.Keep }
	calls := func(_ any, e *Endpoint) bool { return !e.Keep }
	keys := setting.Section[Endpoint]{
		setting.Address("forward", func(e *Endpoint) *string { return &e.Forward }, "http://127.0.0.1:9000/orders", "URL of a local program, which is called by HTTP POST. A query is allowed.").
			Tells("", "this or `keep` must be set").Only(calls),
		setting.Key("keep", func(e *Endpoint) *bool { return &e.Keep }, setting.Truth(), false, "The message waits in the inbox until somebody marks it done.").Only(keeps),
		setting.Key("timeout", func(e *Endpoint) *time.Duration { return &e.Timeout }, setting.Period(time.Millisecond, time.Hour), defaultEndpointTimeout, "Longest time of one call.").Only(calls),
	}
	m := setting.Each("ENDPOINT", keys)
	m.Read = func(l *setting.Loader, path string, n *yaml.Node) (e Endpoint) {
		l.Object(path, n, keys.Decoders(l, &e))
		if !l.Given(setting.Join(path, "timeout")) && !e.Keep {
			e.Timeout = defaultEndpointTimeout
		}
		return e
	}
	m.Show = func(p setting.Printer, e Endpoint) *yaml.Node {
		n := keys.Node(p, &e)
		n.Style = yaml.FlowStyle
		return n
	}
	m.Check = checkEndpoint
	return m
}
