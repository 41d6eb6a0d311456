package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

func (c *Config) centralNode() *yaml.Node {
	if c.Role != Site {
		return nil
	}
	to := c.Central
	n := mapping(pair{"url", str(to.URL)}, optional("credential", to.Credential))
	addAll(n, optional("ca", to.CA), optional("cert", to.Cert), optional("key", to.Key), pair{"timeout", timeNode(to.Timeout, "")})
	return n
}

func (c *Config) notificationsNode() *yaml.Node {
	if c.Role == Site {
		return nil
	}
	n := c.Notifications
	return mapping(
		optional("secrets", n.Secrets), pair{"bindings", bindingsNode(n.Bindings)}, optional("seed", n.Seed), pair{"poll", timeNode(n.Poll, "")},
		pair{"retention", timeNode(n.Retention, "")}, pair{"sweep", timeNode(n.Sweep, "")},
		pair{"stuck", timeNode(n.Stuck, "")}, pair{"window", timeNode(n.Window, "")},
	)
}

// bindingsNode is nil where there are none.
func bindingsNode(all map[string]Binding) *yaml.Node {
	if len(all) == 0 {
		return nil
	}
	n := mapping()
	itself := func(s string) string { return s }
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := flow(pair{"kinds", listOf(all[name].Kinds, itself)})
		if len(all[name].Hosts) > 0 {
			add(b, "hosts", listOf(all[name].Hosts, itself))
		}
		add(n, name, b)
	}
	return n
}
