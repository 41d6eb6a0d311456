package config

import (
	"bytes"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// YAML returns the whole configuration, defaults included, as a file that
// Parse reads back to an equal Config. Of a secret it shows where it comes
// from. What may be one and stands in the configuration itself shows as
// "[secret]", which Parse refuses: passwords and query values of URLs, values
// of headers, and what was made by NewSecret.
func (c *Config) YAML() []byte { return c.print(printer{}) }

func (c *Config) print(p printer) []byte {
	p.all = c
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(configKeys().node(p, c)); err != nil {
		return nil // a buffer takes everything, and all nodes are made here
	}
	return out.Bytes()
}

// storeNode shows where the address comes from, and else the address without
// its password.
func storeNode(d Database) *yaml.Node {
	switch {
	case d.env != "":
		return flow(pair{"env", str(d.env)})
	case d.at != "":
		return flow(pair{"file", str(d.at)})
	}
	return str(d.String())
}

func sourceNode(s Source) *yaml.Node {
	if s.HMAC == HMACv2 && len(s.Secrets) == 1 {
		return secretNode(s.Secrets[0])
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, secret := range s.Secrets {
		list.Content = append(list.Content, secretNode(secret))
	}
	if s.HMAC == HMACv2 {
		return list
	}
	return flow(pair{"hmac", str(string(s.HMAC))}, pair{"secrets", list})
}

func secretNode(s Secret) *yaml.Node {
	switch {
	case s.env != "":
		return flow(pair{"env", str(s.env)})
	case s.at != "":
		return flow(pair{"file", str(s.at)})
	}
	return str(hidden)
}

type pair struct {
	key   string
	value *yaml.Node // nil: the key is left out
}

func mapping(pairs ...pair) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	addAll(n, pairs...)
	return n
}

func flow(pairs ...pair) *yaml.Node {
	n := mapping(pairs...)
	n.Style = yaml.FlowStyle
	return n
}

func add(n *yaml.Node, key string, value *yaml.Node) { addAll(n, pair{key, value}) }

func addAll(n *yaml.Node, pairs ...pair) {
	for _, p := range pairs {
		if p.value != nil {
			n.Content = append(n.Content, str(p.key), p.value)
		}
	}
}

func str(s string) *yaml.Node {
	return plain("!!str", strings.ToValidUTF8(s, "\uFFFD"))
}

func plain(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// timeNode writes a duration, or the word that stands for Never.
func timeNode(d time.Duration, never string) *yaml.Node {
	if d == Never && never != "" {
		return str(never)
	}
	return str(FormatDuration(d))
}

// printer decides what is printed of values that may hold a secret.
type printer struct {
	all   *Config
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

func listOf[T any](list []T, show func(T) string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, v := range list {
		n.Content = append(n.Content, str(show(v)))
	}
	return n
}
