package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

// FuzzParse looks for input that panics, that is refused without a fault, or
// that prints to something else than it is.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, everyKey(f)...) {
		f.Add([]byte(read(f, file)))
	}
	f.Add([]byte("destinations: &a {b: *a}"))
	f.Add([]byte("? &a\n: *a"))
	f.Add([]byte("\xff\xfel\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := config.Parse("holdfast.yaml", data, world(nil), config.Overrides{})
		if err != nil {
			if len(faults(t, err)) == 0 || strings.Contains(err.Error(), good) {
				t.Errorf("got error %v", err)
			}
			return
		}
		if strings.Contains(string(c.YAML()), "[secret]") {
			return // a password that stood in the file itself
		}
		again, _, err := config.Parse("holdfast.yaml", c.YAML(), world(nil), config.Overrides{})
		if err != nil {
			t.Fatalf("read back: %v\n%s", err, c.YAML())
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("read back (-want +got):\n%s\n%s", diff, c.YAML())
		}
	})
}
