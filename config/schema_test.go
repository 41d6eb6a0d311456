package config_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

// valid compiles the schema, and says whether a file is one of it.
func valid(tb testing.TB) func(text string) error {
	tb.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema(node.DestinationKinds())))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("holdfast.json", document); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("holdfast.json")
	if err != nil {
		tb.Fatal(err)
	}
	return func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			tb.Fatal(err)
		}
		return s.Validate(v)
	}
}

// What a node takes, the schema takes: as it is written, and as it is printed.
func TestTheSchemaTakesWhatIsRight(t *testing.T) {
	t.Parallel()
	check := valid(t)
	texts := []string{"tls:\nlog:\nnode: {id: a}\n", "backup: off\n"}
	for _, file := range everyKey(t) {
		texts = append(texts, read(t, file), string(parse(t, read(t, file)).YAML()))
	}
	for _, b := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, guide), -1) {
		texts = append(texts, b[1])
	}
	if warned, err := filepath.Glob("testdata/faults/*.yaml"); err != nil || len(warned) == 0 {
		t.Errorf("got files %v, error %v", warned, err)
	} else {
		for _, file := range warned {
			if _, _, err := config.Parse(file, []byte(read(t, file)), world(nil), config.Overrides{}); err == nil {
				texts = append(texts, read(t, file))
			}
		}
	}
	for _, text := range texts {
		if err := check(text); err != nil {
			t.Errorf("%v\nfrom\n%s", err, text)
		}
	}
}

// What nobody could mean, it refuses.
func TestTheSchemaRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	check := valid(t)
	for _, text := range []string{
		"lisen: 127.0.0.1:1", "limits: {paylod: 1MiB}", "limits: {payload: 1}", "limits: {connections: -3}", "role: centre", "stop: 10", "stop: 10 minutes",
		"backup: on", "listenUnencrypted: maybe", "destinations: {a: {url: \"http://h\", secret: hunter2}}", "destinations: {a: {secret: {env: A, file: b}}}",
		"destinations: {a: {retry: {policy: often}}}", "destinations: {a: {call: {headers: {A: 1}}}}", "receive: {secrets: {a: {env: lower}}}",
		"retention: {parked: never}", "notifications: {bindings: {a: {kinds: email}}}",
	} {
		if check(text) == nil {
			t.Errorf("the schema takes %s", text)
		}
	}
}
