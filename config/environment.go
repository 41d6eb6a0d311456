package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// EnvConfig is the variable that names the configuration file if no flag does. Commands read it; Load does not.
const EnvConfig = "HOLDFAST_CONFIG"

const envPrefix = "HOLDFAST_"

// given is a value that a variable or a flag can give.
type given struct {
	path string
	env  string
	flag string
	set  func(text string)
}

func settings(l *setting.Loader, c *Config) []given {
	return []given{
		{"node.id", "HOLDFAST_NODE_ID", "--node-id", func(s string) { c.Node.ID = s }},
		{"listen", "HOLDFAST_LISTEN", "--listen", func(s string) { c.Listen = s }},
		{"data", "HOLDFAST_DATA", "--data", func(s string) { c.Data = l.Absolute("data", "", s) }},
		{"store", "HOLDFAST_STORE", "--store", func(s string) { c.Store = address(l, s) }},
		{"tokens", "HOLDFAST_TOKENS", "--tokens", func(s string) { c.Tokens = Tokens(s) }},
		{"listenUnencrypted", "HOLDFAST_LISTEN_UNENCRYPTED", "--listen-unencrypted", func(s string) { c.ListenUnencrypted = truth(l, "listenUnencrypted", s) }},
		{"storeUnencrypted", "HOLDFAST_STORE_UNENCRYPTED", "--store-unencrypted", func(s string) { c.StoreUnencrypted = truth(l, "storeUnencrypted", s) }},
		{"insecure", "HOLDFAST_INSECURE", "--insecure", func(s string) { l.Unreadable("insecure", s, noInsecure) }},
		{"log.level", "HOLDFAST_LOG_LEVEL", "--log-level", func(s string) { c.Log.Level = LogLevel(s) }},
		{"log.format", "HOLDFAST_LOG_FORMAT", "--log-format", func(s string) { c.Log.Format = LogFormat(s) }},
	}
}

// environment puts the variables over the file. An empty variable counts as absent: container tools write it
// for a value that was left out.
func environment(l *setting.Loader, c *Config) {
	for _, s := range settings(l, c) {
		if text, ok := l.Lookup(s.env); ok && text != "" {
			override(l, s, s.env, text)
			if s.path == "store" {
				c.Store.env, c.Store.at = s.env, ""
			}
		}
	}
}

func flags(l *setting.Loader, c *Config, o Overrides) {
	given := map[string]string{
		"--node-id": o.NodeID, "--listen": o.Listen, "--data": o.Data, "--store": o.Store,
		"--log-level": o.LogLevel, "--log-format": o.LogFormat, "--tokens": o.Tokens,
	}
	for flag, value := range map[string]*bool{"--listen-unencrypted": o.ListenUnencrypted, "--store-unencrypted": o.StoreUnencrypted, "--insecure": o.Insecure} {
		if value != nil {
			given[flag] = strconv.FormatBool(*value)
		}
	}
	for _, s := range settings(l, c) {
		if text := given[s.flag]; text != "" {
			override(l, s, s.flag, text)
			if s.path == "store" && c.Store.HasPassword() {
				l.Warn(s.path, "", setting.Problem{What: "holds a password, which other users of the machine can see there", Fix: "prefer HOLDFAST_STORE, or store: {file: PATH}"})
			}
		}
	}
}

func override(l *setting.Loader, s given, origin, text string) {
	l.Places[s.path] = setting.Place{Origin: origin}
	delete(l.Bad, s.path)
	s.set(text)
}

// noInsecure is the problem of the switch that once gave up several safeguards at once.
var noInsecure = setting.Problem{ //nolint:gochecknoglobals // a constant
	What: "is not a setting any more: it gave up several safeguards at once",
	Fix:  "name what you give up: listenUnencrypted: true (a listener without TLS), storeUnencrypted: true (a database without TLS), tokens: never (nobody needs a token)",
}

func truth(l *setting.Loader, path, s string) bool {
	switch s {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	l.Unreadable(path, s, setting.Problem{What: "is neither true nor false", Fix: "write true or false"})
	return false
}

// unknownVariables warns about variables that were probably meant for us.
func unknownVariables(l *setting.Loader, env Env) {
	if env.List == nil {
		return
	}
	known := append([]string{EnvConfig}, env.Known...)
	for _, s := range settings(l, &Config{}) {
		known = append(known, s.env)
	}
	for _, entry := range slices.Sorted(slices.Values(env.List())) {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) || l.Secrets[name] || ofKubernetes(name) {
			continue
		}
		w := Warning{Origin: name, Problem: "is a variable that Holdfast does not know", Fix: "it has no effect"}
		if k, ok := setting.Nearest(name, known); ok {
			w.Fix = "did you mean " + k + "?"
		}
		l.Warnings = append(l.Warnings, w)
	}
}

// ofKubernetes reports whether a variable is one of those that Kubernetes sets in every pod for a service
// called "holdfast".
func ofKubernetes(name string) bool {
	rest := strings.TrimPrefix(name, envPrefix)
	return rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_")
}
