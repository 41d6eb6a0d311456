package setting

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReferenceFix says how to write where one of our secrets comes from.
const ReferenceFix = "write {env: NAME} for a variable or {file: PATH} for a file that holds it in base64"

// Secret reads where a secret comes from, and the secret itself.
func (l *Loader) Secret(path string, n *yaml.Node) Secret {
	n, ok := l.Value(path, n)
	if !ok || !IsMapping(l, path, n) {
		return Secret{}
	}
	var ref Reference
	l.Object(path, n, Keys{"env": HiddenText(l, &ref.Env, ReferenceFix), "file": HiddenText(l, &ref.File, ReferenceFix)})
	s := l.Resolve(path, ref)
	l.Bad[path] = s.IsZero()
	return s
}

// IsMapping reports a value that is not a mapping, without the value itself: it is probably the secret.
func IsMapping(l *Loader, path string, n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode || IsNull(n) {
		return true
	}
	l.Unreadable(path, "", Problem{"does not say where the secret is; a secret never stands in the file itself", ReferenceFix})
	return false
}

// HiddenText reads a text. If the value is not text, the fault does not show it.
func HiddenText(l *Loader, to *string, fix string) Decode {
	return func(path string, n *yaml.Node) {
		n, ok := l.Value(path, n)
		if !ok {
			return
		}
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
			l.Unreadable(path, "", Problem{"is not a name", fix})
			return
		}
		*to = n.Value
	}
}

// Reference says where a secret comes from.
type Reference struct {
	Env, File string
}

// Wanted says what a reference should lead to.
type Wanted struct {
	What    string // "the secret in base64"
	None    string // problem of a mapping that names no place
	Fix     string // how to write a reference
	MakeFix string // how to make what it leads to
}

// Found is the content that a reference leads to, and its place.
type Found struct {
	Text, path string
	Env, File  string // one of the two
}

// Resolve reads a secret in base64.
func (l *Loader) Resolve(path string, ref Reference) Secret {
	f, ok := l.LookUp(path, ref, Wanted{"the secret in base64", "names no secret", ReferenceFix, makeSecret})
	if !ok {
		return Secret{}
	}
	s, p := parseSecret(f.Text)
	if p != nil {
		l.WrongContent(f, *p)
		return Secret{}
	}
	s.env, s.at = f.Env, f.File
	return s
}

// WrongContent reports a problem of the content that a reference leads to.
func (l *Loader) WrongContent(f Found, p Problem) {
	kind := "a file"
	if f.Env != "" {
		kind = "a variable"
	}
	l.Unreadable(f.path, f.Env+f.File, Problem{"is " + kind + " of the wrong content: " + p.What, p.Fix})
}

// LookUp reads a variable or a file that the configuration names.
func (l *Loader) LookUp(path string, ref Reference, w Wanted) (Found, bool) {
	env, file := Join(path, "env"), Join(path, "file")
	switch {
	case l.Given(env) && l.Given(file):
		l.Fault(path, "", Problem{"has both env and file", "keep one of them"})
	case ref.Env != "":
		return l.fromVariable(env, ref.Env, w)
	case ref.File != "":
		return l.fromFile(file, ref.File)
	default:
		// An empty env or file, or a wrong key, is already reported.
		if !l.Given(env) && !l.Given(file) {
			l.Fault(path, "", Problem{w.None, w.Fix})
		}
	}
	return Found{}, false
}

func (l *Loader) fromVariable(path, name string, w Wanted) (Found, bool) {
	if !isVariable(name) {
		value := name
		if LooksSecret(name) || strings.Contains(name, "://") {
			value = ""
		}
		l.Unreadable(path, value, Problem{"is not the name of a variable", "write {env: NAME}, with the name in upper-case letters, digits and _"})
		return Found{}, false
	}
	l.Secrets[name] = true
	text, ok := l.Lookup(name)
	if !ok {
		l.Unreadable(path, name, Problem{"is a variable that is not set", "set it to " + w.What + "; " + w.MakeFix})
	}
	return Found{Text: text, path: path, Env: name}, ok
}

// isVariable accepts only the usual upper-case names. A secret that was put in the place of a name must not
// pass, because names are printed.
func isVariable(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

func (l *Loader) fromFile(path, name string) (Found, bool) {
	if strings.Contains(name, "://") { // the address itself, not a file that holds it
		l.Unreadable(path, "", Problem{"is not the path of a file", "write the path of a file that holds it"})
		return Found{}, false
	}
	file := l.Absolute(path, l.dir, name)
	if l.Bad[path] {
		return Found{}, false
	}
	data, err := l.ReadFile(file)
	if err != nil {
		// Somebody may have put the secret itself here.
		if LooksSecret(name) && (!filepath.IsAbs(name) || strings.ContainsAny(name, "=+")) {
			file = ""
		}
		l.cannotRead(path, file, err)
		return Found{}, false
	}
	text, newline := strings.CutSuffix(string(data), "\n")
	if newline {
		text = strings.TrimSuffix(text, "\r")
	}
	return Found{Text: text, path: path, File: file}, true
}
