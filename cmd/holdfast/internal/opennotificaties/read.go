package opennotificaties

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// reader fills a File.
type reader struct {
	*setting.Loader
	file     File
	services map[string]service
	api      string // identifier of the Autorisaties API; empty: none
}

// Read reads a file; lookup finds variables of the environment. The error has one line for each fault.
func Read(name string, text []byte, lookup func(name string) (string, bool)) (*File, error) {
	r := &reader{Loader: setting.NewLoader(name, lookup, nil), services: map[string]service{}}
	root := topOf(text)
	keys := setting.Keys{}
	for _, b := range r.blocks() {
		keys[b.flag], keys[b.name] = nothing, nothing
		if r.enabled(root, b.flag) {
			keys[b.name] = r.or(b.read)
		} else if n := setting.ValueOf(root, b.name); n != nil {
			r.note(n.Line, b.name+": is not read, since "+b.flag+" is not true")
		}
	}
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if _, known := keys[key.Value]; key.Kind == yaml.ScalarNode && !known {
			keys[key.Value] = nothing
			if !strings.HasSuffix(key.Value, "_enable") {
				r.note(key.Line, key.Value+": is not read, it has no part in notifications")
			}
		}
	}
	r.Document(text, keys)
	r.file.report = r.Report
	r.authorizations()
	if err := r.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.file.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	return &r.file, nil
}

func nothing(string, *yaml.Node) {}

// topOf returns the mapping of a document, or an empty node if there is none: Document then says why.
func topOf(text []byte) (top *yaml.Node) {
	defer func() {
		if recover() != nil { // the parser panics on some broken input
			top = &yaml.Node{}
		}
	}()
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil || len(doc.Content) == 0 {
		return &yaml.Node{}
	}
	return doc.Content[0]
}

// block is one part of a file.
type block struct {
	flag, name string
	read       setting.Decode
}

func (r *reader) blocks() []block {
	return []block{
		{"zgw_consumers_config_enable", "zgw_consumers", r.mapping(setting.Keys{"services": r.list(r.service)})},
		{"autorisaties_api_config_enable", "autorisaties_api", r.mapping(setting.Keys{"authorizations_api_service_identifier": r.text(&r.api)})},
		{"vng_api_common_credentials_config_enable", "vng_api_common_credentials", r.items(r.client)},
		{"notifications_kanalen_config_enable", "notifications_kanalen_config", r.items(r.channel)},
		{"notifications_config_enable", "notifications_config", r.schedule},
		{"notifications_subscriptions_config_enable", "notifications_subscriptions_config", r.ignored("it says how Open Notificaties subscribes to itself, which no node needs")},
		{"notifications_abonnementen_config_enable", "notifications_abonnementen_config", r.items(r.subscription)},
	}
}

func (r *reader) enabled(root *yaml.Node, flag string) (is bool) {
	if n := setting.ValueOf(root, flag); n != nil {
		r.Places[flag] = setting.Place{File: r.File, Line: n.Line}
		r.boolean(&is)(flag, n)
	}
	return is
}

func (r *reader) ignored(why string) setting.Decode {
	return func(path string, n *yaml.Node) { r.note(n.Line, path+": is not read: "+why) }
}

func (r *reader) note(line int, text string) {
	r.file.Notes = append(r.file.Notes, Note{line, text})
}

func (r *reader) wrong(path, value, what, fix string) {
	r.Fault(path, value, setting.Problem{What: what, Fix: fix})
}

// or resolves what a value is taken from before it is read. A value that is left out is not read.
func (r *reader) or(read setting.Decode) setting.Decode {
	return func(path string, n *yaml.Node) {
		if n = r.resolve(path, n); n != nil && !setting.IsNull(n) {
			read(path, n)
		}
	}
}

// resolve returns the value itself, or the one of the variable that value_from names. Nil: there is none.
func (r *reader) resolve(path string, n *yaml.Node) *yaml.Node {
	n, ok := r.Value(path, n)
	if !ok {
		return nil
	}
	from := setting.ValueOf(n, "value_from")
	if from == nil || len(n.Content) != 2 {
		return n
	}
	var name string
	required := true
	var other *yaml.Node
	at := setting.Join(path, "value_from")
	r.Places[at] = setting.Place{File: r.File, Line: from.Line}
	r.Object(at, from, setting.Keys{
		"env": setting.Text(r.Loader, &name, "SECRET_OF_ZAKEN"), "required": setting.Boolean(r.Loader, &required), "default": func(_ string, n *yaml.Node) { other = n },
	})
	value, _ := r.Lookup(name)
	switch {
	case name == "":
		r.wrong(at, "", "names no variable", "write env: NAME")
	case other != nil && setting.HasKey(from, "required"):
		r.wrong(at, "", "has required and default, of which only one can hold", "remove one")
	case value != "":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: n.Line}
	case other != nil:
		return other
	case required:
		r.wrong(path, "", "is to come from the variable "+name+", which is not set", "set it")
		r.Bad[path] = true
	}
	return nil
}

// mapping reads a mapping of which every value may come from a variable.
func (r *reader) mapping(keys setting.Keys) setting.Decode {
	for name, read := range keys {
		keys[name] = r.or(read)
	}
	return r.Mapping(keys)
}

// list reads each element of a list.
func (r *reader) list(one setting.Decode) setting.Decode {
	return func(path string, n *yaml.Node) {
		all := r.List(path, n, "write a list")
		for i, item := range all {
			r.or(one)(setting.Element(path, i), item)
		}
	}
}

// items reads a block whose one key holds a list that is not empty.
func (r *reader) items(one setting.Decode) setting.Decode {
	return func(path string, n *yaml.Node) {
		before := setting.ValueOf(n, "items")
		r.mapping(setting.Keys{"items": r.list(one)})(path, n)
		if before == nil || before.Kind == yaml.SequenceNode && len(before.Content) == 0 {
			r.wrong(path, "", "has no items", "write at least one, or do not enable the block")
		}
	}
}

// given reads a value that may be left out, which leaves to nil.
func given[T any](read func(to *T) setting.Decode, to **T) setting.Decode {
	return func(path string, n *yaml.Node) {
		*to = new(T)
		read(*to)(path, n)
	}
}

func (r *reader) text(to *string) setting.Decode { return setting.Text(r.Loader, to, "zaken") }

// secret reads a text that no fault may show.
func (r *reader) secret(to *string) setting.Decode {
	return func(path string, n *yaml.Node) {
		n, ok := r.Value(path, n)
		if !ok {
			return
		}
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			r.Unreadable(path, "", setting.Problem{What: "is not text", Fix: "put the value in quotes"})
			return
		}
		*to = n.Value
	}
}

func (r *reader) boolean(to *bool) setting.Decode {
	return func(path string, n *yaml.Node) {
		if n = r.resolve(path, n); n == nil || setting.IsNull(n) {
			return
		}
		switch strings.ToLower(n.Value) {
		case "true", "t", "yes", "y", "on", "1":
			*to = true
		case "false", "f", "no", "n", "off", "0":
			*to = false
		default:
			r.wrong(path, n.Value, "is not true or false", "write true or false")
		}
	}
}

// whole reads a whole number, also one that a variable gives as a text.
func (r *reader) whole(to *int) setting.Decode {
	return func(path string, n *yaml.Node) {
		if n.Tag == "!!str" && n.Kind == yaml.ScalarNode {
			n = &yaml.Node{Kind: n.Kind, Tag: "!!int", Value: strings.TrimSpace(n.Value), Line: n.Line}
		}
		setting.Integer(r.Loader, to, "7")(path, n)
		if *to < 0 {
			r.wrong(path, fmt.Sprint(*to), "is below 0", "write 0 or more")
		}
	}
}

// texts reads names with texts. Of a name that is there twice, the reader of the mapping says so.
func (r *reader) texts(to *map[string]string) setting.Decode {
	return func(path string, n *yaml.Node) {
		all := map[string]string{}
		keys := setting.Keys{}
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			keys[name] = r.or(func(path string, n *yaml.Node) {
				var value string
				r.text(&value)(path, n)
				all[name] = value
			})
		}
		r.Object(path, n, keys)
		*to = all
	}
}
