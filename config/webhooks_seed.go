package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// WebhookSeed holds topics and subscriptions to make if they do not exist, by name and id, as the API takes
// them, in JSON.
type WebhookSeed struct {
	Topics, Subscriptions map[string][]byte

	report *setting.Report
}

// Fault returns the fault of a value of the seed that the API found, with its line.
func (s *WebhookSeed) Fault(path, value, problem string) Fault {
	f := s.report.At(path)
	f.Value, f.Problem = value, problem
	return f
}

// LoadWebhookSeed reads a seed. The error is an *Error with every fault of its form.
func LoadWebhookSeed(file string, env Env) (*WebhookSeed, error) {
	l := setting.NewLoader(file, env.Lookup, env.ReadFile)
	data, err := l.ReadFile(file)
	if err != nil {
		return nil, &Error{Faults: []Fault{{File: file, Problem: "cannot be read: " + setting.Cause(err).Error(), Fix: "check the path and its permissions", Err: setting.Cause(err)}}}
	}
	s := &WebhookSeed{Topics: map[string][]byte{}, Subscriptions: map[string][]byte{}, report: l.Report}
	into := func(all map[string][]byte) setting.Decode {
		return setting.Names(l, func(name, path string, n *yaml.Node) { all[name] = asJSON(l, path, n) })
	}
	l.Document(data, setting.Keys{"topics": into(s.Topics), "subscriptions": into(s.Subscriptions)})
	return s, l.Err()
}
