package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

// The texts that people read stand in testdata/faults/*.txt, to be read by
// people; -update rewrites them.
func TestFaultsAreToldAllAtOnceInWordsThatHelp(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/faults/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, error %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := told(t, name+".yaml", read(t, file))
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// told returns the faults and warnings, one a line, after it has looked for
// secrets in them.
func told(t *testing.T, name, text string) string {
	t.Helper()
	c, warnings, err := config.Parse(name, []byte(text), world(nil), config.Overrides{})
	var b strings.Builder
	if err != nil {
		b.WriteString(err.Error() + "\n")
	}
	for _, w := range warnings {
		b.WriteString("warning: " + w.String() + "\n")
	}
	if (err == nil) != (c != nil) {
		t.Errorf("got config %v with error %v; want exactly one of them", c, err)
	}
	for _, secret := range []string{stray, "hunter2", "correct horse", "c2hvcnQ", good[:20]} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("a secret is shown (%s):\n%s", secret, b.String())
		}
	}
	return portable(t, b.String())
}

func TestFaultSaysWhereTheValueWasGiven(t *testing.T) {
	t.Parallel()
	const wrong = "no-port"
	cases := map[string]struct {
		text, env, flag string
		want            config.Fault
	}{
		"file": {text: "\n\nlisten: " + wrong, want: config.Fault{File: "holdfast.yaml", Line: 3}},
		"environment over file": {
			text: "listen: 127.0.0.1:1", env: wrong, want: config.Fault{Origin: "HOLDFAST_LISTEN"},
		},
		"flag over environment": {env: "127.0.0.1:1", flag: wrong, want: config.Fault{Origin: "--listen"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := config.Parse("holdfast.yaml", []byte(c.text),
				world(map[string]string{"HOLDFAST_LISTEN": c.env}), config.Overrides{Listen: c.flag})
			c.want.Path, c.want.Value = "listen", wrong
			c.want.Problem = "is not an address with a port"
			c.want.Fix = "write host:port, such as 127.0.0.1:8420, [::1]:8420 for IPv6, or unix:///path/of/socket"
			if diff := cmp.Diff([]config.Fault{c.want}, faults(t, err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfTheFileComeInTheOrderOfItsLines(t *testing.T) {
	t.Parallel()
	text := "stop: 10\nlisten: x\nlog: {level: loud}\ndurability: half\n"
	_, _, err := config.Parse("f.yaml", []byte(text), world(nil), config.Overrides{NodeID: "a b"})
	var lines []int
	for _, f := range faults(t, err) {
		lines = append(lines, f.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 0}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestMissingFileIsAFaultWithItsCause(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "holdfast.yaml")
	_, _, err := config.Load(missing, config.Env{}, config.Overrides{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want one that is fs.ErrNotExist", err)
	}
	if f := faults(t, err)[0]; f.File != missing {
		t.Errorf("got file %q, want %q", f.File, missing)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 100)
	f := config.Fault{Path: "listen", Value: long, Problem: "is long"}
	if got, want := f.String(), `listen: "`+long[:80]+`…" is long`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.Value = "x" + long
	if got, want := f.String(), `listen: "x`+long[:78]+`…" is long`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFolderAsFileIsAFault(t *testing.T) {
	t.Parallel()
	if _, _, err := config.Load(t.TempDir(), config.Process(nil), config.Overrides{}); err == nil {
		t.Error("got no error")
	}
}
