package config

import (
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

func writeNode(w Write) *yaml.Node {
	n := mapping(pair{"driver", str(string(w.Driver))}, pair{"dsn", secretNode(w.DSN)})
	for _, of := range []struct {
		key   string
		texts map[string]string
	}{{"statements", w.Statements}, {"types", w.Types}} {
		if len(of.texts) == 0 {
			continue
		}
		list := mapping()
		for _, name := range slices.Sorted(maps.Keys(of.texts)) {
			add(list, name, str(of.texts[name]))
		}
		add(n, of.key, list)
	}
	addAll(n, pair{"raw", plain("!!bool", strconv.FormatBool(w.Raw))}, pair{"duplicate", str(string(w.Duplicate))}, pair{"unencrypted", plain("!!bool", strconv.FormatBool(w.Unencrypted))})
	return n
}
