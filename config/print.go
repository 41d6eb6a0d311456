package config

import (
	"bytes"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// YAML returns the whole configuration, defaults included, as a file that Parse reads back to an equal
// Config. For a secret it shows where it comes from. It shows possible secrets that stand in the
// configuration itself as "[secret]", which Parse refuses: passwords and query values of URLs, values of
// headers, and secrets made by NewSecret.
func (c *Config) YAML() []byte { return c.print(setting.Printer{}) }

func (c *Config) print(p setting.Printer) []byte {
	p.Root = c
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(configKeys(c.kinds()).Node(p, c)); err != nil {
		return nil // cannot happen: a buffer takes everything, and all nodes are made here
	}
	return out.Bytes()
}

// storeNode shows where the address comes from, or else the address without its password.
func storeNode(d Database) *yaml.Node {
	switch {
	case d.env != "":
		return setting.Flow(setting.Pair{Key: "env", Value: setting.Str(d.env)})
	case d.at != "":
		return setting.Flow(setting.Pair{Key: "file", Value: setting.Str(d.at)})
	}
	return setting.Str(d.String())
}

func sourceNode(s Source) *yaml.Node {
	if s.HMAC == HMACv2 && len(s.Secrets) == 1 {
		return setting.SecretNode(s.Secrets[0])
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, secret := range s.Secrets {
		list.Content = append(list.Content, setting.SecretNode(secret))
	}
	if s.HMAC == HMACv2 {
		return list
	}
	return setting.Flow(setting.Pair{Key: "hmac", Value: setting.Str(string(s.HMAC))}, setting.Pair{Key: "secrets", Value: list})
}
