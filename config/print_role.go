package config

import "go.yaml.in/yaml/v3"

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
		optional("secrets", n.Secrets), optional("seed", n.Seed), pair{"poll", timeNode(n.Poll, "")},
		pair{"retention", timeNode(n.Retention, "")}, pair{"sweep", timeNode(n.Sweep, "")},
		pair{"stuck", timeNode(n.Stuck, "")}, pair{"window", timeNode(n.Window, "")},
	)
}
