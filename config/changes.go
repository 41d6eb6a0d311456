package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Changes names the settings in which two configurations differ, as sorted paths of the file. If only the
// value of a secret differs, Changes names its destination or source, followed by "secret". It never returns
// values: they may be confidential.
func (c *Config) Changes(to *Config) []string {
	was, is := c.leaves(), to.leaves()
	changed := map[string]bool{}
	for path, value := range was {
		if now, there := is[path]; !there || now != value {
			changed[path] = true
		}
	}
	for path := range is {
		if _, there := was[path]; !there {
			changed[path] = true
		}
	}
	if c.Store.DSN() != to.Store.DSN() {
		changed["store"] = true
	}
	if !sameSecrets(c.Secrets, to.Secrets) {
		changed["secrets.key"] = true
	}
	for name, d := range to.Destinations {
		if old, there := c.Destinations[name]; there && !sameSecrets(old, d) {
			changed[setting.Join("destinations", name)+" secret"] = true
		}
	}
	for name, s := range to.Receive.Sources {
		if old, there := c.Receive.Sources[name]; there && !sameSecrets(old, s) {
			changed[setting.Join("receive.secrets", name)+" secret"] = true
		}
	}
	for name, n := range to.Notificaties.Clients {
		if old, there := c.Notificaties.Clients[name]; there && !sameSecrets(old, n) {
			changed[setting.Join("notificaties.clients", name)+" secret"] = true
		}
	}
	if a, b := c.Notificaties.Authority, to.Notificaties.Authority; a != nil && b != nil && !sameSecrets(*a, *b) {
		changed["notificaties.authority secret"] = true
	}
	return slices.Sorted(maps.Keys(changed))
}

// Renewed returns, by name, the destinations in which only secrets, or where they come from, differ. The
// values are the settings as Changes names them.
func (c *Config) Renewed(to *Config) map[string]string {
	changed := c.Changes(to)
	renewed := map[string]string{}
	for name := range to.Destinations {
		path := setting.Join("destinations", name)
		of := slices.DeleteFunc(slices.Clone(changed), func(p string) bool {
			return p != path && !strings.HasPrefix(p, path+" ") && !strings.HasPrefix(p, path+".") && !strings.HasPrefix(p, path+"[")
		})
		_, there := c.Destinations[name]
		rest := slices.DeleteFunc(slices.Clone(of), func(p string) bool { return p == path+" secret" || isPlace(p) })
		if there && len(of) > 0 && len(rest) == 0 {
			renewed[name] = path + " secret"
		}
	}
	return renewed
}

// isPlace reports whether a setting of a destination says where a secret comes from.
func isPlace(path string) bool {
	return strings.HasSuffix(path, ".file") || strings.HasSuffix(path, ".env")
}

// leaves returns the values of the configuration, by path. They must not be shown.
func (c *Config) leaves() map[string]string {
	var root yaml.Node
	if err := yaml.Unmarshal(c.print(setting.Printer{Whole: true}), &root); err != nil || len(root.Content) == 0 {
		return nil // cannot happen: we have printed it
	}
	all := map[string]string{}
	flatten(all, "", root.Content[0])
	return all
}

func flatten(into map[string]string, path string, n *yaml.Node) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			flatten(into, setting.Join(path, n.Content[i].Value), n.Content[i+1])
		}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		for i, item := range n.Content {
			flatten(into, setting.Element(path, i), item)
		}
	default:
		into[path] = fmt.Sprint(n.Tag, " ", n.Value)
	}
}

// sameSecrets compares the secrets inside two values of one type.
func sameSecrets(a, b any) bool {
	return slices.EqualFunc(secretsIn(reflect.ValueOf(a)), secretsIn(reflect.ValueOf(b)), Secret.Equal)
}

func secretsIn(v reflect.Value) (list []Secret) {
	if s, ok := reflect.TypeAssert[Secret](v); ok {
		return []Secret{s}
	}
	switch kind := v.Kind(); {
	case (kind == reflect.Pointer || kind == reflect.Interface) && !v.IsNil():
		return secretsIn(v.Elem())
	case kind == reflect.Slice:
		for i := range v.Len() {
			list = append(list, secretsIn(v.Index(i))...)
		}
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				list = append(list, secretsIn(v.Field(i))...)
			}
		}
	}
	return list
}
