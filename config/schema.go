package config

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// config returns the keys of the file. What they may hold is checked later,
// together with the values from elsewhere; here only types matter.
func (l *loader) config(c *Config) keys {
	return keys{
		"node":   l.mapping(keys{"id": text(l, &c.Node.ID, "shop-12"), "source": text(l, &c.Node.Source, "shop")}),
		"role":   text(l, &c.Role, "site"),
		"listen": text(l, &c.Listen, "127.0.0.1:8420"),
		"data":   l.path(&c.Data, "./holdfast-data"),
		"store":  l.store(c),
		"lease":  l.duration(&c.Lease),
		"tokens": text(l, &c.Tokens, "always"),

		"listenUnencrypted": l.boolean(&c.ListenUnencrypted),
		"storeUnencrypted":  l.boolean(&c.StoreUnencrypted),
		"insecure":          func(path string, n *yaml.Node) { l.unreadable(path, n.Value, noInsecure) },

		"durability": text(l, &c.Durability, "full"),
		"stop":       l.duration(&c.Stop),
		"drain":      l.duration(&c.Drain),
		"poll":       l.duration(&c.Poll),
		"clockHold":  l.duration(&c.ClockHold),
		"backup":     l.backup(c),
		"limits": l.mapping(keys{
			"payload": l.size(&c.Limits.Payload), "reserve": l.size(&c.Limits.Reserve),
			"connections": l.integer(&c.Limits.Connections, "1000"), "strangers": l.size(&c.Limits.Strangers), "bodies": l.size(&c.Limits.Bodies),
		}),
		"tls": l.mapping(keys{
			"cert":    l.path(&c.TLS.Cert, "cert.pem"),
			"key":     l.path(&c.TLS.Key, "key.pem"),
			"clients": l.path(&c.TLS.Clients, "clients-ca.pem"),
			"anySite": l.boolean(&c.TLS.AnySite),
		}),
		"log": l.mapping(keys{
			"level":  text(l, &c.Log.Level, "info"),
			"format": text(l, &c.Log.Format, "json"),
		}),
		"retention": l.mapping(keys{
			"delivered": l.duration(&c.Retention.Delivered),
			"discarded": l.duration(&c.Retention.Discarded),
			"expired":   l.duration(&c.Retention.Expired),
			"inbox":     l.duration(&c.Retention.Inbox),
			"parked":    l.durationOr(&c.Retention.Parked, "forever"),
			"sweep":     l.duration(&c.Retention.Sweep),
		}),
		"central":       l.central(c),
		"notifications": l.notifications(c),
		"sites": l.names(func(name, path string, n *yaml.Node) {
			if c.Sites == nil {
				c.Sites = map[string]SiteLimits{}
			}
			c.Sites[name] = l.siteLimits(path, n)
		}),
		"destinations": l.names(func(name, path string, n *yaml.Node) {
			c.Destinations[name] = l.destination(path, n)
		}),
		"receive": l.mapping(keys{
			"window": l.duration(&c.Receive.Window),
			"secrets": l.names(func(name, path string, n *yaml.Node) {
				c.Receive.Sources[name] = l.source(path, n)
			}),
			"endpoints": l.names(func(name, path string, n *yaml.Node) {
				c.Receive.Endpoints[name] = l.endpoint(path, n)
			}),
		}),
	}
}

func (l *loader) mapping(known keys) decode {
	return func(path string, n *yaml.Node) { l.object(path, n, known) }
}

// backup reads a mapping, or the word off.
func (l *loader) backup(c *Config) decode {
	return func(path string, n *yaml.Node) {
		value, ok := l.value(path, n)
		if !ok {
			return
		}
		if value.Kind == yaml.ScalarNode && !isNull(value) {
			if c.Backup.Every = Never; value.Value != "off" {
				l.unreadable(path, value.Value, problem{"is neither off nor a mapping", "write off, or keys such as every: 1h"})
			}
			return
		}
		l.object(path, value, keys{
			"folder": l.path(&c.Backup.Folder, "/mnt/backups"),
			"every":  l.duration(&c.Backup.Every),
			"hourly": l.integer(&c.Backup.Hourly, "24"),
			"daily":  l.integer(&c.Backup.Daily, "7"),
		})
	}
}

func (l *loader) destination(path string, n *yaml.Node) Destination {
	d, policy := DefaultDestination(), Exponential
	if hasKey(n, "call") {
		d, policy = DefaultCallDestination(), Fixed
	} else if hasKey(n, "write") {
		d, policy = DefaultWriteDestination(), Fixed
	}
	l.object(path, n, keys{
		"call":        func(path string, n *yaml.Node) { d.Call = l.call(path, n) },
		"write":       func(path string, n *yaml.Node) { d.Write = l.write(path, n) },
		"url":         text(l, &d.URL, "http://127.0.0.1:8421"),
		"secret":      func(path string, n *yaml.Node) { d.Secret = l.secret(path, n) },
		"hmac":        text(l, &d.HMAC, "v2"),
		"to":          text(l, &d.To, "central-a"),
		"retry":       func(path string, n *yaml.Node) { d.Retry = l.retry(path, n, policy) },
		"ttl":         l.durationOr(&d.TTL, "none"),
		"timeout":     l.duration(&d.Timeout),
		"concurrency": l.integer(&d.Concurrency, "20"),
		"charge":      text(l, &d.Charge, "connected"),
		"order":       text(l, &d.Order, "none"),
		"schedule":    text(l, &d.Schedule, "lane"),
		"ca":          l.path(&d.CA, "ca.pem"),
	})
	return d
}

func (l *loader) retry(path string, n *yaml.Node, usual Policy) Retry {
	// The policy decides the defaults of the other keys, and may stand below them.
	r := DefaultRetry(policyOf(n, usual))
	retries := r.Retries
	l.object(path, n, keys{
		"policy":   text(l, &r.Policy, "exponential"),
		"base":     l.duration(&r.Base),
		"cap":      l.duration(&r.Cap),
		"factor":   l.number(&r.Factor, "2"),
		"interval": l.duration(&r.Interval),
		"waits":    func(path string, n *yaml.Node) { r.Waits = l.waits(path, n) },
		"jitter":   l.duration(&r.Jitter),
		"retries":  l.integer(&retries, "5"),
	})
	switch {
	case !l.given(join(path, "retries")) && r.Policy == List:
		r.Retries = len(r.Waits)
	case l.given(join(path, "retries")) && retries == 0:
		r.Retries = Unlimited
	case retries < 0: // -1 must not pass for Unlimited
		l.fault(join(path, "retries"), strconv.Itoa(retries), problem{"is negative", "write 1 or more, or 0 for no limit"})
		r.Retries = Unlimited
	default:
		r.Retries = retries
	}
	return r
}

func policyOf(n *yaml.Node, usual Policy) Policy {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if v := n.Content[i+1]; n.Content[i].Value == "policy" && v.Kind == yaml.AliasNode {
				return Policy(v.Alias.Value)
			} else if n.Content[i].Value == "policy" {
				return Policy(v.Value)
			}
		}
	}
	return usual
}

func (l *loader) waits(path string, n *yaml.Node) []time.Duration {
	items := l.list(path, n, "write a list, such as [1s, 5s, 30s]")
	waits := make([]time.Duration, len(items))
	for i, item := range items {
		l.duration(&waits[i])(element(path, i), item)
	}
	return waits
}

func (l *loader) endpoint(path string, n *yaml.Node) Endpoint {
	var e Endpoint
	l.object(path, n, keys{
		"forward": text(l, &e.Forward, "http://127.0.0.1:9000/orders"),
		"keep":    l.boolean(&e.Keep),
		"timeout": l.duration(&e.Timeout),
	})
	if !l.given(join(path, "timeout")) && !e.Keep {
		e.Timeout = defaultEndpointTimeout
	}
	return e
}
