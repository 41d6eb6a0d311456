package config_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/config"
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

func TestGuideHasEveryKeyAndNoOther(t *testing.T) {
	t.Parallel()
	described := rows(t)
	keys := map[string][]string{}
	for _, file := range []string{"testdata/every-key.yaml", "testdata/every-key-of-a-store.yaml", "testdata/every-key-of-a-site.yaml"} {
		maps.Copy(keys, leaves(t, parse(t, read(t, file)).YAML()))
		maps.Copy(keys, leaves(t, []byte(read(t, file)))) // some are printed in another form
	}
	for key := range keys {
		if _, ok := described[key]; !ok {
			t.Errorf("the guide has no row for %s", key)
		}
	}
	for key := range described {
		if _, ok := keys[key]; !ok && key != "receive.secrets.SOURCE.file" && key != "store.env" && key != "store" {
			t.Errorf("the guide has a row for %s, which no every-key file has", key)
		}
	}
}

func TestGuideNamesTheDefaults(t *testing.T) {
	t.Parallel()
	given := `
destinations:
  a: {url: "http://h", secret: {env: GOOD}}
  b: {url: "http://h", secret: {env: GOOD}, retry: {policy: fixed}}
receive:
  endpoints:
    C: {forward: "http://h"}
`
	described := rows(t)
	for key, values := range leaves(t, parse(t, given).YAML()) {
		if slices.Contains([]string{
			"node.id", "data", "backup.folder", "destinations.NAME.url", "destinations.NAME.secret.env", "receive.secrets", "receive.endpoints.ENDPOINT.forward",
		}, key) {
			continue // no defaults, or not the same everywhere
		}
		for _, v := range values {
			cells := strings.Split(described[key], "|")
			if last := cells[max(len(cells)-2, 0)]; !strings.Contains(last, "`"+v+"`") && key != "destinations.NAME.retry.policy" {
				t.Errorf("%s: got default %q in the guide, want `%s`", key, last, v)
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
