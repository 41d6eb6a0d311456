package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// source reads who may send and with which secrets: one secret, a list of
// them, or a mapping that also says the form of the signature.
func source(l *setting.Loader, path string, n *yaml.Node) Source {
	s := Source{HMAC: HMACv2}
	if n, ok := l.Value(path, n); !ok {
		return s
	} else if n.Kind == yaml.SequenceNode {
		s.Secrets = secretList(l, path, n)
		reported(l, path, s.Secrets)
		return s
	} else if !setting.IsMapping(l, path, n) {
		return s
	}
	var ref setting.Reference
	many := setting.Join(path, "secrets")
	l.Object(path, n, setting.Keys{
		"hmac":    setting.Text(l, &s.HMAC, "v1"),
		"env":     setting.HiddenText(l, &ref.Env, setting.ReferenceFix),
		"file":    setting.HiddenText(l, &ref.File, setting.ReferenceFix),
		"secrets": func(path string, n *yaml.Node) { s.Secrets = secretList(l, path, n) },
	})
	if !l.Given(many) {
		s.Secrets = append(s.Secrets, l.Resolve(path, ref))
	} else if ref != (setting.Reference{}) {
		l.Fault(path, "", setting.Problem{What: "has secrets next to env or file", Fix: "put all of them into the list secrets"})
	}
	reported(l, path, s.Secrets)
	return s
}

// reported marks missing secrets as reported, so that the checks do not report them again.
func reported(l *setting.Loader, path string, list []Secret) {
	for i, s := range list {
		l.Bad[setting.Element(path, i)] = s.IsZero()
	}
}

func secretList(l *setting.Loader, path string, n *yaml.Node) []Secret {
	n, ok := l.Value(path, n)
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		l.Unreadable(path, "", setting.Problem{What: "is not a list of secrets", Fix: "write [{env: NEW}, {env: OLD}]"})
		return nil
	}
	list := make([]Secret, len(n.Content))
	for i, item := range n.Content {
		at := setting.Element(path, i)
		l.Places[at] = setting.Place{File: l.File, Line: item.Line}
		list[i] = l.Secret(at, item)
	}
	return list
}
