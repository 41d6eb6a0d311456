package config

import (
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

func writeNode(w Write) *yaml.Node {
	n := mapping(pair{"driver", str(string(w.Driver))}, pair{"dsn", secretNode(w.DSN)})
	if len(w.Statements) > 0 {
		statements := mapping()
		for _, name := range slices.Sorted(maps.Keys(w.Statements)) {
			add(statements, name, str(w.Statements[name]))
		}
		add(n, "statements", statements)
	}
	addAll(n, pair{"raw", plain("!!bool", strconv.FormatBool(w.Raw))}, pair{"duplicate", str(string(w.Duplicate))})
	return n
}
