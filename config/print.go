package config

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// YAML returns the whole configuration, defaults included, as a file that
// Parse reads back to an equal Config. Of a secret it shows where it comes
// from. What may be one and stands in the configuration itself shows as
// "[secret]", which Parse refuses: passwords and query values of URLs, values
// of headers, and what was made by NewSecret.
func (c *Config) YAML() []byte { return c.print(printer{}) }

func (c *Config) print(p printer) []byte {
	destinations := mapping()
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		add(destinations, name, p.destination(c.Destinations[name]))
	}
	sources := mapping()
	for _, name := range slices.Sorted(maps.Keys(c.Receive.Sources)) {
		add(sources, name, sourceNode(c.Receive.Sources[name]))
	}
	endpoints := mapping()
	for _, name := range slices.Sorted(maps.Keys(c.Receive.Endpoints)) {
		add(endpoints, name, p.endpoint(c.Receive.Endpoints[name]))
	}
	root := mapping(
		pair{"node", flow(pair{"id", str(c.Node.ID)}, optional("source", c.Node.Source))},
		pair{"role", str(string(c.Role))},
		pair{"listen", str(c.Listen)},
	)
	limits := flow(pair{"payload", str(FormatSize(c.Limits.Payload))})
	if c.Store.IsZero() {
		add(root, "data", str(c.Data))
		add(limits, "reserve", str(FormatSize(c.Limits.Reserve)))
	} else {
		addAll(root, pair{"store", storeNode(c.Store)}, pair{"lease", timeNode(c.Lease, "")})
	}
	add(limits, "connections", plain("!!int", strconv.Itoa(c.Limits.Connections)))
	add(limits, "strangers", str(FormatSize(c.Limits.Strangers)))
	add(limits, "bodies", str(FormatSize(c.Limits.Bodies)))
	addAll(
		root,
		pair{"tokens", str(string(c.Tokens))},
		pair{"listenUnencrypted", plain("!!bool", strconv.FormatBool(c.ListenUnencrypted))},
		pair{"storeUnencrypted", plain("!!bool", strconv.FormatBool(c.StoreUnencrypted))},
	)
	if c.TLS != (TLS{}) {
		tls := mapping(optional("cert", c.TLS.Cert), optional("key", c.TLS.Key), optional("clients", c.TLS.Clients))
		if c.TLS.AnySite {
			add(tls, "anySite", plain("!!bool", "true"))
		}
		add(root, "tls", tls)
	}
	addAll(
		root,
		pair{"log", flow(pair{"level", str(string(c.Log.Level))}, pair{"format", str(string(c.Log.Format))})},
		pair{"durability", str(string(c.Durability))},
		pair{"limits", limits},
		pair{"retention", mapping(
			pair{"delivered", timeNode(c.Retention.Delivered, "")},
			pair{"discarded", timeNode(c.Retention.Discarded, "")},
			pair{"expired", timeNode(c.Retention.Expired, "")},
			pair{"inbox", timeNode(c.Retention.Inbox, "")},
			pair{"parked", timeNode(c.Retention.Parked, "forever")},
			pair{"sweep", timeNode(c.Retention.Sweep, "")},
		)},
		pair{"stop", timeNode(c.Stop, "")},
		pair{"drain", timeNode(c.Drain, "")},
		pair{"poll", timeNode(c.Poll, "")},
		pair{"clockHold", timeNode(c.ClockHold, "")},
		pair{"backup", c.backupNode()},
		pair{"central", c.centralNode()},
		pair{"notifications", c.notificationsNode()},
		pair{"sites", c.sitesNode()},
		pair{"destinations", destinations},
		pair{"receive", mapping(pair{"window", timeNode(c.Receive.Window, "")}, pair{"secrets", sources}, pair{"endpoints", endpoints})},
	)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
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

// backupNode is nil for a database that nodes do not copy.
func (c *Config) backupNode() *yaml.Node {
	if !c.Store.IsZero() {
		return nil
	}
	if c.Backup.Every == Never {
		return str("off")
	}
	return mapping(
		pair{"folder", str(c.BackupFolder())},
		pair{"every", timeNode(c.Backup.Every, "")},
		pair{"hourly", plain("!!int", strconv.Itoa(c.Backup.Hourly))},
		pair{"daily", plain("!!int", strconv.Itoa(c.Backup.Daily))},
	)
}

func (p printer) destination(d Destination) *yaml.Node {
	n := mapping()
	switch {
	case d.Call != nil:
		add(n, "call", p.call(*d.Call))
	case d.Write != nil:
		add(n, "write", writeNode(*d.Write))
	default:
		addAll(n, pair{"url", str(d.URL)}, pair{"secret", secretNode(d.Secret)}, pair{"hmac", str(string(d.HMAC))}, optional("to", d.To))
	}
	addAll(
		n,
		pair{"retry", retryNode(d.Retry)},
		pair{"ttl", timeNode(d.TTL, "none")},
		pair{"timeout", timeNode(d.Timeout, "")},
		pair{"concurrency", plain("!!int", strconv.Itoa(d.Concurrency))},
		pair{"charge", str(string(d.Charge))},
		pair{"order", str(string(d.Order))},
		pair{"schedule", str(string(d.Schedule))},
	)
	addAll(n, optional("ca", d.CA))
	return n
}

func retryNode(r Retry) *yaml.Node {
	n := flow(pair{"policy", str(string(r.Policy))})
	switch r.Policy {
	case Exponential:
		addAll(
			n,
			pair{"base", timeNode(r.Base, "")},
			pair{"cap", timeNode(r.Cap, "")},
			pair{"factor", plain("", formatFactor(r.Factor))},
		)
	case Fixed:
		add(n, "interval", timeNode(r.Interval, ""))
	case List:
		waits := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, w := range r.Waits {
			waits.Content = append(waits.Content, timeNode(w, ""))
		}
		add(n, "waits", waits)
	}
	addAll(
		n,
		pair{"jitter", timeNode(r.Jitter, "")},
		pair{"retries", plain("!!int", strconv.Itoa(max(r.Retries, 0)))},
	)
	return n
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

func (p printer) endpoint(e Endpoint) *yaml.Node {
	n := flow(optional("forward", p.url(e.Forward)))
	if e.Keep {
		add(n, "keep", plain("!!bool", "true"))
	} else {
		add(n, "timeout", timeNode(e.Timeout, ""))
	}
	return n
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

func optional(key, value string) pair {
	if value == "" {
		return pair{}
	}
	return pair{key, str(value)}
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
