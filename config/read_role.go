package config

import "go.yaml.in/yaml/v3"

func (l *loader) central(c *Config) decode {
	return l.mapping(keys{
		"url":        text(l, &c.Central.URL, "https://central.example:8420"),
		"credential": l.path(&c.Central.Credential, "credential"),
		"ca":         l.path(&c.Central.CA, "ca.pem"),
		"cert":       l.path(&c.Central.Cert, "client.pem"),
		"key":        l.path(&c.Central.Key, "client-key.pem"),
		"timeout":    l.duration(&c.Central.Timeout),
	})
}

func (l *loader) notifications(c *Config) decode {
	n := &c.Notifications
	return l.mapping(keys{
		"secrets": l.path(&n.Secrets, "secrets"),
		"bindings": l.names(func(name, path string, node *yaml.Node) {
			if n.Bindings == nil {
				n.Bindings = map[string]Binding{}
			}
			n.Bindings[name] = l.binding(path, node)
		}),
		"seed":      l.path(&n.Seed, "notifications.yaml"),
		"poll":      l.duration(&n.Poll),
		"retention": l.duration(&n.Retention),
		"sweep":     l.duration(&n.Sweep),
		"stuck":     l.duration(&n.Stuck),
		"window":    l.duration(&n.Window),
	})
}

func (l *loader) binding(path string, n *yaml.Node) (b Binding) {
	texts := func(to *[]string) decode {
		return func(path string, n *yaml.Node) { *to = l.texts(path, n) }
	}
	l.object(path, n, keys{"kinds": texts(&b.Kinds), "hosts": texts(&b.Hosts)})
	return b
}
