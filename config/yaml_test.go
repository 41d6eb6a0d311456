package config_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

// A key that the printer or this test forgets shows as a difference or as a
// field that is zero everywhere.
func TestEveryKeyReadsBack(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, file := range everyKey(t) {
		want := parse(t, read(t, file))
		got := parse(t, string(want.YAML()))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read back (-want +got):\n%s\nprinted:\n%s", diff, want.YAML())
		}
		visit(reflect.ValueOf(*want), "Config", seen)
	}
	for field, set := range seen {
		if !set {
			t.Errorf("no every-key file sets %s", field)
		}
	}
}

// visit notes for each field of ours whether any value of it is not zero.
func visit(v reflect.Value, field string, seen map[string]bool) {
	seen[field] = seen[field] || !v.IsZero()
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[config.Secret](), v.Type() == reflect.TypeFor[config.Database]():
	case kind == reflect.Struct:
		for i := range v.NumField() {
			visit(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, seen)
		}
	case kind == reflect.Map:
		for _, k := range v.MapKeys() {
			visit(v.MapIndex(k), field+"[]", seen)
		}
	case kind == reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), field+"[]", seen)
		}
	}
}

func TestDefaultsReadBack(t *testing.T) {
	t.Parallel()
	want := parse(t, "")
	if diff := cmp.Diff(want, parse(t, string(want.YAML()))); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestNoBackupsReadBack(t *testing.T) {
	t.Parallel()
	want := parse(t, "backup: off")
	if want.Backup.Every != config.Never {
		t.Errorf("got %+v", want.Backup)
	}
	if diff := cmp.Diff(want, parse(t, string(want.YAML()))); diff != "" {
		t.Errorf("read back (-want +got):\n%s\nprinted:\n%s", diff, want.YAML())
	}
}

func TestBackupsGoIntoTheDataFolder(t *testing.T) {
	t.Parallel()
	c := parse(t, "data: d")
	if got, want := c.BackupFolder(), filepath.Join(c.Data, "backups"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c = parse(t, "{data: d, backup: {folder: e}}"); filepath.Base(c.BackupFolder()) != "e" {
		t.Errorf("got %s, want the folder that was named", c.BackupFolder())
	}
}

func TestNamesThatYAMLTakesForSomethingElseReadBack(t *testing.T) {
	t.Parallel()
	want := config.Default()
	want.Data = within(t, "2001-01-01")
	for _, name := range []string{"true", "null", "~", "12", "1.5", "2001-01-01", "<<", "a:b", "#", "*a", "&a", "!", "a.b", "[0]", `"`, "yes", "-", "?", strings.Repeat("x", 128)} {
		want.Node.ID = name
		want.Destinations[name] = config.DefaultDestination()
		want.Receive.Endpoints[name] = config.Endpoint{Keep: true}
		want.Receive.Sources[name] = config.Source{}
	}
	text := strings.ReplaceAll(string(want.YAML()), "'[secret]'", "{env: GOOD}")
	text = strings.ReplaceAll(text, "url: \"\"", "url: http://h")
	text = strings.ReplaceAll(text, "{hmac: \"\", secrets: []}", "{env: GOOD}")
	got := parse(t, text)
	for name := range want.Destinations {
		if _, ok := got.Destinations[name]; !ok {
			t.Errorf("destination %q is lost", name)
		}
		if _, ok := got.Receive.Endpoints[name]; !ok {
			t.Errorf("endpoint %q is lost", name)
		}
		if _, ok := got.Receive.Sources[name]; !ok {
			t.Errorf("source %q is lost", name)
		}
	}
	if len(got.Destinations) != len(want.Destinations) {
		t.Errorf("got %d destinations, want %d", len(got.Destinations), len(want.Destinations))
	}
}

func TestAliasRepeatsAValue(t *testing.T) {
	t.Parallel()
	c := parse(t, `
destinations:
  a: {url: "http://a", secret: &s {env: GOOD}, retry: &r {policy: &p fixed, interval: &i 3s}, ttl: *i}
  b: {url: "http://b", secret: *s, retry: *r}
  c: {url: "http://b", secret: *s, retry: {policy: *p, interval: *i}}
`)
	for _, name := range []string{"b", "c"} {
		if diff := cmp.Diff(c.Destinations["a"].Retry, c.Destinations[name].Retry); diff != "" {
			t.Errorf("%s: retry (-a +%s):\n%s", name, name, diff)
		}
	}
}

func TestAliasesCannotMakeASmallFileLarge(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("destinations:\n  a: &a {url: \"http://h\", secret: {env: GOOD}, retry: {policy: list, waits: &w [" + strings.Repeat("1s,", 90) + "1s]}}\n")
	for i := range 5_000 {
		fmt.Fprintf(&b, "  d%d: *a\n", i)
	}
	_, _, err := config.Parse("f", []byte(b.String()), world(nil), config.Overrides{})
	if !slices.ContainsFunc(faults(t, err), func(f config.Fault) bool { return strings.Contains(f.Fix, "fewer aliases") }) {
		t.Errorf("got %v", err)
	}
}

func TestAnAliasOfItsOwnParentIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"destinations: &d {a: *d}", "&a receive: *a", "destinations: {a: &a {retry: *a}}", "destinations: {a: {retry: {policy: list, waits: &w [*w]}}}",
		"receive: &r {secrets: {a: &s [*s]}}",
	} {
		if _, _, err := config.Parse("f", []byte(text), world(nil), config.Overrides{}); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}
