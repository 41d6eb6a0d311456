package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

const guide = "../docs/guide/configuration.md"

// rows returns the table rows of the guide by the key they begin with.
func rows(tb testing.TB) map[string]string {
	tb.Helper()
	found := map[string]string{}
	for line := range strings.Lines(read(tb, guide)) {
		if key, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(line, "| `") {
			found[key] += rest
		}
	}
	return found
}

// leaves returns the values of a file by their paths, with the names that
// people choose replaced as in the guide.
func leaves(tb testing.TB, text []byte) map[string][]string {
	tb.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		tb.Fatal(err)
	}
	found := map[string][]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		m, ok := value.(map[string]any)
		if !ok {
			found[path] = append(found[path], fmt.Sprint(value))
			return
		}
		for key, v := range m {
			switch path {
			case "destinations":
				key = "NAME"
			case "sites":
				key = "SITE"
			case "notifications.bindings":
				key = "SECRET"
			case "receive.secrets":
				key = "SOURCE"
			case "receive.endpoints":
				key = "ENDPOINT"
			case "notificaties.clients":
				key = "CLIENT"
			case "destinations.NAME.call.headers":
				key = "HEADER"
			case "destinations.NAME.write.statements":
				key = "ENDPOINT"
			case "destinations.NAME.write.types":
				key = "PARAMETER"
			}
			walk(strings.TrimPrefix(path+"."+key, "."), v)
		}
	}
	walk("", tree)
	return found
}

// everyKey are files that have each key, with a value that is not its default.
// Those of a kind of destination are in its own folder.
func everyKey(tb testing.TB) []string {
	tb.Helper()
	files := []string{"testdata/every-key.yaml", "testdata/every-key-of-a-store.yaml", "testdata/every-key-of-a-site.yaml"}
	for _, below := range []string{"../adapter/*/testdata/every-key.yaml", "../adapter/*/*/testdata/every-key.yaml"} {
		found, err := filepath.Glob(below)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// What the code knows of keys is what the guide has in its tables. A new key is
// put there as a line "| `key` |" where it belongs; -update writes the rest.
func TestTheGuideTellsTheKeys(t *testing.T) {
	t.Parallel()
	text, want := read(t, guide), map[string]string{}
	for _, k := range config.Keys(node.DestinationKinds()) {
		want[k.Path] = strings.ReplaceAll(fmt.Sprintf("| `%s` | %s | %s | %s |\n", k.Path, k.Meaning, k.Values, k.Default), "|  |", "| |")
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		key, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |")
		if row, known := want[key]; ok && known && !strings.Contains(line, "| `HOLDFAST_") {
			line = row
			delete(want, key)
		}
		out.WriteString(line)
	}
	for key := range want {
		t.Errorf("the guide has no row for %s", key)
	}
	if *update {
		if err := os.WriteFile(guide, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, guide), out.String()); diff != "" {
		t.Errorf("the guide tells other things than the code (-guide +code):\n%s", diff)
	}
}

// Other tests read every key out of these files.
func TestTheFilesHaveEveryKeyAndNoOther(t *testing.T) {
	t.Parallel()
	known, given := map[string]bool{}, map[string]bool{}
	for _, k := range config.Keys(node.DestinationKinds()) {
		known[k.Path] = true
	}
	for _, file := range everyKey(t) {
		for _, text := range [][]byte{parse(t, read(t, file)).YAML(), []byte(read(t, file))} { // some are printed in another form
			for key := range leaves(t, text) {
				given[key] = true
			}
		}
	}
	for key := range given {
		if !known[key] {
			t.Errorf("Keys has no %s", key)
		}
	}
	for key := range known {
		if !given[key] && key != "receive.secrets.SOURCE.file" && key != "store.env" && key != "store" {
			t.Errorf("no file has %s", key)
		}
	}
}

func TestTheGuideHasNoOtherKeys(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, k := range config.Keys(node.DestinationKinds()) {
		known[k.Path] = true
	}
	for key := range rows(t) {
		if !known[key] {
			t.Errorf("the guide has a row for %s, which is no key", key)
		}
	}
}

func TestKeysTellTheDefaults(t *testing.T) {
	t.Parallel()
	given := `
destinations:
  a: {url: "http://h", secret: {env: GOOD}}
  b: {url: "http://h", secret: {env: GOOD}, retry: {policy: fixed}}
receive:
  endpoints:
    C: {forward: "http://h"}
`
	usual := map[string]string{}
	for _, k := range config.Keys(node.DestinationKinds()) {
		usual[k.Path] = k.Default
	}
	for key, values := range leaves(t, parse(t, given).YAML()) {
		if slices.Contains([]string{
			"node.id", "data", "backup.folder", "destinations.NAME.url", "destinations.NAME.secret.env", "receive.secrets", "receive.endpoints.ENDPOINT.forward",
		}, key) {
			continue // no defaults, or not the same everywhere
		}
		for _, v := range values {
			if !strings.Contains(usual[key], "`"+v+"`") && key != "destinations.NAME.retry.policy" {
				t.Errorf("%s: Keys tells the default %q, want `%s`", key, usual[key], v)
			}
		}
	}
}

func TestGuidesExamplesWork(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, guide), -1)
	if len(blocks) < 5 {
		t.Errorf("got %d examples, want 5 or more", len(blocks))
	}
	env := world(nil)
	env.Lookup = func(name string) (string, bool) {
		return good, strings.Contains(name, "SECRET") || strings.HasPrefix(name, "SHOP_") || strings.HasPrefix(name, "PRESS_") || strings.HasPrefix(name, "ERP_")
	}
	env.ReadFile = func(path string) ([]byte, error) {
		if strings.HasSuffix(path, "store") {
			return []byte(address), nil
		}
		return []byte(good), nil
	}
	for _, b := range blocks {
		_, warnings, err := config.Parse(filepath.Base(guide), []byte(b[1]), env, config.Overrides{})
		if err != nil || len(warnings) > 0 {
			t.Errorf("got warnings %v, error %v, from\n%s", warnings, err, b[1])
		}
	}
}

func TestGuideShowsFaultsAsTheyAre(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\n", 8) + "destinations: {inventory: {url: \"http://h\", secret: {env: GOOD}, retry: {base: 10m}}}\n" +
		strings.Repeat("\n", 3) + "receive:\n  endpoint: {}\n"
	_, _, err := config.Parse("holdfast.yaml", []byte(text), world(map[string]string{"HOLDFAST_LOG_LEVEL": "loud"}), config.Overrides{})
	if got := err.Error(); !strings.Contains(read(t, guide), got) {
		t.Errorf("the guide does not show\n%s", got)
	}
}
