package config

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const referenceFix = "write {env: NAME} for a variable or {file: PATH} for a file that holds it in base64"

// source reads who may send and with which secrets: one secret, a list of
// them, or a mapping that also says the form of the signature.
func (l *loader) source(path string, n *yaml.Node) Source {
	s := Source{HMAC: HMACv2}
	if n, ok := l.value(path, n); !ok {
		return s
	} else if n.Kind == yaml.SequenceNode {
		s.Secrets = l.secretList(path, n)
		l.reported(path, s.Secrets)
		return s
	} else if !l.isMapping(path, n) {
		return s
	}
	var ref reference
	many := join(path, "secrets")
	l.object(path, n, keys{
		"hmac":    text(l, &s.HMAC, "v1"),
		"env":     l.hiddenText(&ref.env, referenceFix),
		"file":    l.hiddenText(&ref.file, referenceFix),
		"secrets": func(path string, n *yaml.Node) { s.Secrets = l.secretList(path, n) },
	})
	if !l.given(many) {
		s.Secrets = append(s.Secrets, l.resolve(path, ref))
	} else if ref != (reference{}) {
		l.fault(path, "", problem{"has secrets beside env or file", "put all of them into the list secrets"})
	}
	l.reported(path, s.Secrets)
	return s
}

// reported keeps the checks from finding again that a secret is missing.
func (l *loader) reported(path string, list []Secret) {
	for i, s := range list {
		l.bad[element(path, i)] = s.IsZero()
	}
}

func (l *loader) secretList(path string, n *yaml.Node) []Secret {
	n, ok := l.value(path, n)
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		l.unreadable(path, "", problem{"is not a list of secrets", "write [{env: NEW}, {env: OLD}]"})
		return nil
	}
	list := make([]Secret, len(n.Content))
	for i, item := range n.Content {
		at := element(path, i)
		l.places[at] = place{file: l.file, line: item.Line}
		list[i] = l.secret(at, item)
	}
	return list
}

// secret reads where one secret is, and the secret itself.
func (l *loader) secret(path string, n *yaml.Node) Secret {
	n, ok := l.value(path, n)
	if !ok || !l.isMapping(path, n) {
		return Secret{}
	}
	var ref reference
	l.object(path, n, keys{"env": l.hiddenText(&ref.env, referenceFix), "file": l.hiddenText(&ref.file, referenceFix)})
	s := l.resolve(path, ref)
	l.bad[path] = s.IsZero()
	return s
}

// isMapping reports anything else without its value, which is likely to be
// the secret itself.
func (l *loader) isMapping(path string, n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode || isNull(n) {
		return true
	}
	l.unreadable(path, "", problem{"does not say where the secret is; a secret never stands in the file itself", referenceFix})
	return false
}

// hiddenText reads a text, and keeps it out of the fault if it is none.
func (l *loader) hiddenText(to *string, fix string) decode {
	return func(path string, n *yaml.Node) {
		n, ok := l.value(path, n)
		if !ok {
			return
		}
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
			l.unreadable(path, "", problem{"is not a name", fix})
			return
		}
		*to = n.Value
	}
}

// reference says where a secret is.
type reference struct {
	env, file string
}

// wanted says what a reference should lead to.
type wanted struct {
	what    string // "the secret in base64"
	none    string // what is said of a mapping that names no place
	fix     string // how a reference is written
	makeFix string // how such a thing is made
}

// found is what a reference leads to, and which place it is about.
type found struct {
	text, path string
	env, file  string // one of them
}

func (l *loader) resolve(path string, ref reference) Secret {
	f, ok := l.lookUp(path, ref, wanted{"the secret in base64", "names no secret", referenceFix, makeSecret})
	if !ok {
		return Secret{}
	}
	s, p := parseSecret(f.text)
	if p != nil {
		l.wrongContent(f, *p)
		return Secret{}
	}
	s.env, s.at = f.env, f.file
	return s
}

func (l *loader) wrongContent(f found, p problem) {
	kind := "a file"
	if f.env != "" {
		kind = "a variable"
	}
	l.unreadable(f.path, f.env+f.file, problem{"is " + kind + " of the wrong content: " + p.what, p.fix})
}

// lookUp reads a variable or a file that the configuration names.
func (l *loader) lookUp(path string, ref reference, w wanted) (found, bool) {
	env, file := join(path, "env"), join(path, "file")
	switch {
	case l.given(env) && l.given(file):
		l.fault(path, "", problem{"has both env and file", "keep one of them"})
	case ref.env != "":
		return l.fromVariable(env, ref.env, w)
	case ref.file != "":
		return l.fromFile(file, ref.file)
	default:
		// An empty env or file is reported already, as is a wrong key.
		if !l.given(env) && !l.given(file) {
			l.fault(path, "", problem{w.none, w.fix})
		}
	}
	return found{}, false
}

func (l *loader) fromVariable(path, name string, w wanted) (found, bool) {
	if !isVariable(name) {
		value := name
		if looksSecret(name) || strings.Contains(name, "://") {
			value = ""
		}
		l.unreadable(path, value, problem{"is not the name of a variable", "write {env: NAME}, with the name in upper-case letters, digits and _"})
		return found{}, false
	}
	l.secrets[name] = true
	text, ok := l.env.Lookup(name)
	if !ok {
		l.unreadable(path, name, problem{"is a variable that is not set", "set it to " + w.what + "; " + w.makeFix})
	}
	return found{text: text, path: path, env: name}, ok
}

// isVariable accepts only the usual upper-case names: a secret that was put
// in the place of one must not pass, since the name is printed.
func isVariable(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

func (l *loader) fromFile(path, name string) (found, bool) {
	if strings.Contains(name, "://") { // the address itself, not a file that holds it
		l.unreadable(path, "", problem{"is not the path of a file", "write the path of a file that holds it"})
		return found{}, false
	}
	file := l.absolute(path, l.dir, name)
	if l.bad[path] {
		return found{}, false
	}
	data, err := l.env.ReadFile(file)
	if err != nil {
		// Somebody may have put the secret itself here.
		if looksSecret(name) && (!filepath.IsAbs(name) || strings.ContainsAny(name, "=+")) {
			file = ""
		}
		l.cannotRead(path, file, err)
		return found{}, false
	}
	text, newline := strings.CutSuffix(string(data), "\n")
	if newline {
		text = strings.TrimSuffix(text, "\r")
	}
	return found{text: text, path: path, file: file}, true
}
