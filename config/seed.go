package config

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Seed holds channels and lists to make if they do not exist.
type Seed struct {
	Channels map[string]SeedChannel
	Lists    map[string]SeedList

	report *setting.Report
}

// Fault returns the fault of a value of the seed that only an adapter can find, with its line.
func (s *Seed) Fault(path, value, problem string) Fault {
	f := s.report.At(path)
	f.Value, f.Problem = value, problem
	return f
}

// SeedChannel is one channel. A zero field means the channel's default.
type SeedChannel struct {
	Kind     string
	Settings []byte // JSON
	Attempts *int   // failed attempts in all; nil: not given
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

// LoadSeed reads a seed. The error is an *Error with every fault. Settings and addresses that only an adapter
// can check are not checked.
func LoadSeed(file string, env Env) (*Seed, error) {
	l := setting.NewLoader(file, env.Lookup, env.ReadFile)
	data, err := l.ReadFile(file)
	if err != nil {
		return nil, &Error{Faults: []Fault{{File: file, Problem: "cannot be read: " + setting.Cause(err).Error(), Fix: "check the path and its permissions", Err: setting.Cause(err)}}}
	}
	s := &Seed{Channels: map[string]SeedChannel{}, Lists: map[string]SeedList{}, report: l.Report}
	l.Document(data, setting.Keys{
		"channels": setting.Names(l, func(name, path string, n *yaml.Node) { s.Channels[name] = seedChannel(l, path, n) }),
		"lists":    setting.Names(l, func(name, path string, n *yaml.Node) { s.Lists[name] = seedList(l, path, n) }),
	})
	for _, name := range slices.Sorted(maps.Keys(s.Lists)) {
		checkSeedList(l, setting.Join("lists", name), s.Lists[name])
	}
	return s, l.Err()
}

func seedChannel(l *setting.Loader, path string, n *yaml.Node) (c SeedChannel) {
	l.Object(path, n, setting.Keys{
		"kind":     setting.Text(l, &c.Kind, "email"),
		"settings": func(path string, n *yaml.Node) { c.Settings = asJSON(l, path, n) },
		"retry": l.Mapping(setting.Keys{
			"attempts": func(path string, n *yaml.Node) { c.Attempts = new(int); setting.Integer(l, c.Attempts, "10")(path, n) },
			"interval": func(path string, n *yaml.Node) {
				c.Interval = new(time.Duration)
				l.Duration(c.Interval)(path, n)
			},
			"waits": func(path string, n *yaml.Node) { c.Waits = waits(l, path, n) },
		}),
		"workers":  setting.Integer(l, &c.Workers, "4"),
		"disabled": setting.Boolean(l, &c.Disabled),
	})
	if c.Kind == "" {
		l.Fault(setting.Join(path, "kind"), "", setting.Problem{What: "is not set", Fix: "write the kind of channel, such as email"})
	}
	return c
}

func seedList(l *setting.Loader, path string, n *yaml.Node) (s SeedList) {
	l.Object(path, n, setting.Keys{
		"description": setting.Text(l, &s.Description, "who is on call"),
		"partial":     setting.Boolean(l, &s.Partial),
		"recipients": func(path string, n *yaml.Node) {
			for i, item := range l.List(path, n, "write a list, such as [{channel: mail, address: ops@example.com}]") {
				var r SeedRecipient
				l.Object(setting.Element(path, i), item, setting.Keys{
					"channel":  setting.Text(l, &r.Channel, "mail"),
					"address":  setting.Text(l, &r.Address, "ops@example.com"),
					"name":     setting.Text(l, &r.Name, "Operations"),
					"disabled": setting.Boolean(l, &r.Disabled),
				})
				s.Recipients = append(s.Recipients, r)
			}
		},
	})
	return s
}

func checkSeedList(l *setting.Loader, path string, s SeedList) {
	type target struct{ channel, address string }
	seen := map[target]bool{}
	for i, r := range s.Recipients {
		at := setting.Element(setting.Join(path, "recipients"), i)
		if r.Channel == "" {
			l.Fault(at, r.Address, setting.Problem{What: "names no channel", Fix: "write channel: NAME"})
		}
		if k := (target{r.Channel, r.Address}); seen[k] {
			l.Fault(at, r.Address, setting.Problem{What: "appears twice on channel " + r.Channel, Fix: "keep one of them"})
		} else {
			seen[k] = true
		}
	}
}

// asJSON reads any mapping. The caller knows what it means.
func asJSON(l *setting.Loader, path string, n *yaml.Node) []byte {
	n, ok := l.Value(path, n)
	if !ok || !setting.IsMapping(l, path, n) {
		return nil
	}
	var v map[string]any
	err := n.Decode(&v)
	var data []byte
	if err == nil {
		data, err = json.Marshal(v)
	}
	if err != nil {
		l.Unreadable(path, "", setting.Problem{What: "cannot be written as JSON", Fix: "write keys as plain text, and plain values"})
		return nil
	}
	return data
}
