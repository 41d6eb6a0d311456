package config

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Seed is channels and lists to make where they do not exist.
type Seed struct {
	Channels map[string]SeedChannel
	Lists    map[string]SeedList

	report *report
}

// Fault says what is wrong with a value of the seed, which only an adapter
// knows, with its line.
func (s *Seed) Fault(path, value, problem string) Fault {
	f := s.report.at(path)
	f.Value, f.Problem = value, problem
	return f
}

// SeedChannel is one channel. What is zero is the channel's own default.
type SeedChannel struct {
	Kind     string
	Settings []byte // JSON
	Attempts *int   // failed attempts in all; nil: it does not say
	Interval *time.Duration
	Waits    []time.Duration
	Workers  int
	Disabled bool
}

// SeedList is one list.
type SeedList struct {
	Description string
	Partial     bool
	Recipients  []SeedRecipient
}

// SeedRecipient is one address on a channel.
type SeedRecipient struct {
	Channel, Address, Name string
	Disabled               bool
}

// LoadSeed reads a seed. The error is an *Error with every fault; what only an
// adapter knows of settings and addresses is not looked at.
func LoadSeed(file string, env Env) (*Seed, error) {
	l := newLoader(file, env)
	data, err := l.env.ReadFile(file)
	if err != nil {
		return nil, &Error{Faults: []Fault{{File: file, Problem: "cannot be read: " + cause(err).Error(), Fix: "check the path and its permissions", Err: cause(err)}}}
	}
	s := &Seed{Channels: map[string]SeedChannel{}, Lists: map[string]SeedList{}, report: l.report}
	l.document(data, keys{
		"channels": l.names(func(name, path string, n *yaml.Node) { s.Channels[name] = l.seedChannel(path, n) }),
		"lists":    l.names(func(name, path string, n *yaml.Node) { s.Lists[name] = l.seedList(path, n) }),
	})
	for _, name := range slices.Sorted(maps.Keys(s.Lists)) {
		l.checkSeedList(join("lists", name), s.Lists[name])
	}
	return s, l.err()
}

func (l *loader) seedChannel(path string, n *yaml.Node) (c SeedChannel) {
	l.object(path, n, keys{
		"kind":     text(l, &c.Kind, "email"),
		"settings": func(path string, n *yaml.Node) { c.Settings = l.json(path, n) },
		"retry": l.mapping(keys{
			"attempts": func(path string, n *yaml.Node) { c.Attempts = new(int); l.integer(c.Attempts, "10")(path, n) },
			"interval": func(path string, n *yaml.Node) {
				c.Interval = new(time.Duration)
				l.duration(c.Interval)(path, n)
			},
			"waits": func(path string, n *yaml.Node) { c.Waits = l.waits(path, n) },
		}),
		"workers":  l.integer(&c.Workers, "4"),
		"disabled": l.boolean(&c.Disabled),
	})
	if c.Kind == "" {
		l.fault(join(path, "kind"), "", problem{"is not set", "write the kind of channel, such as email"})
	}
	return c
}

func (l *loader) seedList(path string, n *yaml.Node) (s SeedList) {
	l.object(path, n, keys{
		"description": text(l, &s.Description, "who is on call"),
		"partial":     l.boolean(&s.Partial),
		"recipients": func(path string, n *yaml.Node) {
			for i, item := range l.list(path, n, "write a list, such as [{channel: mail, address: ops@example.com}]") {
				var r SeedRecipient
				l.object(element(path, i), item, keys{
					"channel":  text(l, &r.Channel, "mail"),
					"address":  text(l, &r.Address, "ops@example.com"),
					"name":     text(l, &r.Name, "Operations"),
					"disabled": l.boolean(&r.Disabled),
				})
				s.Recipients = append(s.Recipients, r)
			}
		},
	})
	return s
}

func (l *loader) checkSeedList(path string, s SeedList) {
	type target struct{ channel, address string }
	seen := map[target]bool{}
	for i, r := range s.Recipients {
		at := element(join(path, "recipients"), i)
		if r.Channel == "" {
			l.fault(at, r.Address, problem{"names no channel", "write channel: NAME"})
		}
		if k := (target{r.Channel, r.Address}); seen[k] {
			l.fault(at, r.Address, problem{"is there twice on channel " + r.Channel, "keep one of them"})
		} else {
			seen[k] = true
		}
	}
}

// json reads any mapping, for those who know what it means.
func (l *loader) json(path string, n *yaml.Node) []byte {
	n, ok := l.value(path, n)
	if !ok || !l.isMapping(path, n) {
		return nil
	}
	var v map[string]any
	err := n.Decode(&v)
	var data []byte
	if err == nil {
		data, err = json.Marshal(v)
	}
	if err != nil {
		l.unreadable(path, "", problem{"cannot be written as JSON", "write keys as plain text, and plain values"})
		return nil
	}
	return data
}
