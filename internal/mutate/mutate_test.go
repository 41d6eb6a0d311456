package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// program builds the program, and returns a call of it on the fixture: what it
// writes, without the seconds, and its exit code.
func program(t *testing.T) func(args ...string) (lines []string, code int) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "mutate.exe")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) ([]string, int) {
		t.Helper()
		cmd := exec.Command(binary, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = "testdata/fixture", append(os.Environ(), "GOWORK=off"), os.Stderr
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`; \d+ s, \d+ s of them computed\n`).ReplaceAllString(string(out), "\n")
		return strings.Split(strings.TrimSpace(text), "\n"), cmd.ProcessState.ExitCode()
	}
}

// F1-99: what must die dies, also in a process that a test starts; what lives
// is named with its place, and what has a line in the list does not count.
func TestWhatDiesAndWhatLives(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "its programs would be the same")
	mutate := program(t)
	living := []string{
		"alive    fixture.go:27: fill: 0 → 0 + 1, after 1 tests",
		"alive    fixture.go:47: larger: a > b → a >= b, after 2 tests",
		"unmet    fixture.go:53: nobodyAsks: a < 3 → a <= 3",
		"unmet    fixture.go:53: nobodyAsks: 3 → 3 + 1",
		"alive    fixture.go:55: inAChild: 1 → 1 + 1, after 1 tests",
	}
	got, code := mutate("-skip", "^TestSuite$", ".")
	want := slices.Concat(living, []string{"not used fixture: TestBroken: fails without a fault", ".: 31 mutants: 26 dead, 3 alive, 2 unmet, 0 equal; 83 % died"})
	if diff := cmp.Diff(got, want); diff != "" || code != 1 {
		t.Errorf("exit code %d, want 1; (-got +want):\n%s", code, diff)
	}

	list := filepath.Join(t.TempDir(), "survivors.md")
	text := "# Survivors\n\n- `fixture.go: larger: a > b → a >= b`: either is the larger.\n- `fixture.go: inAChild: 1 → 1 + 1`: the larger is 2.\n" +
		"- `fixture.go: nobodyAsks: 3 → 3 + 1`: nobody asks.\n- `elsewhere.go: gone: x → y`: was mended.\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, code = mutate("-skip", "^TestSuite$", "-accepted", list, ".")
	want = []string{living[0], living[2], "not used fixture: TestBroken: fails without a fault", ".: 31 mutants: 26 dead, 1 alive, 1 unmet, 3 equal; 92 % died"}
	if diff := cmp.Diff(got, want); diff != "" || code != 0 {
		t.Errorf("with a list: exit code %d, want 0; (-got +want):\n%s", code, diff)
	}
}

// F1-99: a suite that is too long as a whole is used part by part, and no part of it is left out.
func TestALongSuiteIsUsedInParts(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "its programs would be the same")
	got, code := program(t)("-longest", "5s", "-only", "nobodyAsks", ".")
	want := []string{"not used fixture: TestBroken: fails without a fault", ".: 2 mutants: 2 dead, 0 alive, 0 unmet, 0 equal; 100 % died"}
	if diff := cmp.Diff(got, want); diff != "" || code != 0 {
		t.Errorf("exit code %d, want 0; (-got +want):\n%s", code, diff)
	}
}

// F1-99: the same seed draws the same mutants, another one others.
func TestTheSeedDecidesWhatIsDrawn(t *testing.T) {
	t.Parallel()
	mutate := program(t)
	first, _ := mutate("-list", "-n", "8", ".")
	again, _ := mutate("-list", "-n", "8", "-seed", "1", ".")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("one seed, two draws:\n%s", diff)
	}
	if len(first) != 8 {
		t.Errorf("got %q, want 8 mutants", first)
	}
	one, _ := mutate("-list", "-n", "8", "-only", regexp.QuoteMeta(strings.SplitN(first[3], ": ", 2)[1]), ".")
	if diff := cmp.Diff(one, first[3:4]); diff != "" {
		t.Errorf("one of them alone (-got +want):\n%s", diff)
	}
	for _, seed := range []string{"2", "3", "4", "5"} {
		if other, _ := mutate("-list", "-n", "8", "-seed", seed, "."); !cmp.Equal(first, other) {
			return
		}
	}
	t.Error("five seeds draw the same")
}
