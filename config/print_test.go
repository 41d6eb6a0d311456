package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

// keyed is a configuration with secrets in places where they can be written.
const keyed = `
destinations:
  erp:
    call:
      url: https://erp.example/api/{endpoint}?key=hunter2&of={id}
      headers: {X-Api-Key: hunter2, X-Plant: hunter2, Accept: text/plain}
      auth: {oauth2: {url: "https://login.example/token?pass=hunter2", client: plant, secret: {env: PLAIN}}}
receive:
  secrets: {one: {env: GOOD}}
  endpoints: {E: {forward: "http://127.0.0.1:9000/orders?code=hunter2"}}
`

// F1-17: what may be a secret is not printed, whatever it is called, and what
// was printed so is not taken for the value.
func TestWhatMayBeSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	c, warnings, err := config.Parse("holdfast.yaml", []byte(keyed), world(nil), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "holdfast.yaml:6: destinations.erp.call.headers.X-Api-Key: looks like a secret") {
		t.Errorf("got warnings %v", warnings)
	}
	printed := string(c.YAML())
	for _, want := range []string{
		"https://erp.example/api/{endpoint}?key=[secret]&of={id}", "X-Api-Key: '[secret]'", "X-Plant: '[secret]'", "Accept: text/plain",
		"https://login.example/token?pass=[secret]", "http://127.0.0.1:9000/orders?code=[secret]",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(printed, "hunter2") || strings.Contains(warnings[0].String(), "hunter2") {
		t.Errorf("a secret is shown:\n%v\n%s", warnings, printed)
	}
	_, _, err = config.Parse("again.yaml", []byte(printed), world(nil), config.Overrides{})
	var paths []string
	for _, f := range faults(t, err) {
		if !strings.Contains(f.Problem, "in the place of what was not shown") {
			t.Errorf("got the fault %v", f)
		}
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	want := []string{
		"destinations.erp.call.auth.oauth2.url", "destinations.erp.call.headers.X-Api-Key", "destinations.erp.call.headers.X-Plant",
		"destinations.erp.call.url", "receive.endpoints.E.forward",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// F1-17: a value that is not shown is compared all the same, and so a reload
// tells that it is another one.
func TestChangesOfWhatIsNotShownAreNamed(t *testing.T) {
	t.Parallel()
	want := []string{
		"destinations.erp.call.auth.oauth2.url", "destinations.erp.call.headers.X-Api-Key", "destinations.erp.call.headers.X-Plant",
		"destinations.erp.call.url", "receive.endpoints.E.forward",
	}
	if diff := cmp.Diff(want, parse(t, keyed).Changes(parse(t, strings.ReplaceAll(keyed, "hunter2", "hunter3")))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// F1-17: nor does a fault hold the value of a header.
func TestAFaultOfAHeaderHasNoValue(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"4711471147114711", "true", "[4711471147114711]", "\"4711471147114711\\a\"", "~"} {
		_, _, err := config.Parse("f", []byte("destinations: {a: {call: {url: \"http://h\", headers: {X-Api-Key: "+value+"}}}}"), world(nil), config.Overrides{})
		if err == nil || strings.Contains(err.Error(), "4711") || !strings.Contains(err.Error(), "headers.X-Api-Key") {
			t.Errorf("%s: got %v", value, err)
		}
	}
}

// F1-17: other users of the machine see a command line, as they may a file.
func TestAPasswordOnTheCommandLineIsWarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vars map[string]string
		flag string
		want string
	}{
		"flag":             {nil, address, "--store: store: holds a password, which other users of the machine can see there; prefer HOLDFAST_STORE, or store: {file: PATH}"},
		"without password": {nil, strings.Replace(address, ":hunter2%21", "", 1), ""},
		"variable":         {map[string]string{"HOLDFAST_STORE": address}, "", ""},
	} {
		_, warnings, err := config.Parse("", nil, world(c.vars), config.Overrides{Store: c.flag})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range warnings {
			got += w.String()
		}
		if got != c.want {
			t.Errorf("%s: got the warnings %q, want %q", name, got, c.want)
		}
	}
}
