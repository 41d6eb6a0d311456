package holdfast_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func goBlocks(tb testing.TB, file string) (blocks []string) {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) == 0 {
		tb.Fatalf("%s has no Go in it", file)
	}
	return blocks
}

// guidePackages are what a page of the guide may use without an import.
func guidePackages() []string {
	return []string{
		"context", "database/sql", "errors", "fmt", "testing", "testing/synctest", "time",
		"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool",
		modulePath, modulePath + "/sqlite", modulePath + "/postgres", modulePath + "/holdfasttest", modulePath + "/site", modulePath + "/notify",
		"net/http", modulePath + "/webhookverify", modulePath + "/webhookinbox",
	}
}

// guideSource makes one file of the Go of a page. A block of declarations
// stands as it is; one of statements becomes a function, in which ctx, handle
// and db are known.
func guideSource(blocks []string) string {
	var body strings.Builder
	for i, b := range blocks {
		if regexp.MustCompile(`(?m)\A(//.*\n)*(func|type|var|const) `).MatchString(b) {
			body.WriteString("\n" + b)
			continue
		}
		fmt.Fprintf(&body, "\nfunc block%d(ctx context.Context, handle *sql.DB, db *sqlite.DB) error {\n%s\nreturn nil\n}\n", i, b)
	}
	var imports strings.Builder
	for _, p := range guidePackages() {
		name := p[strings.LastIndex(p, "/")+1:]
		if name == "v5" { // a version, not a name
			name = "pgx"
		}
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(body.String()) {
			fmt.Fprintf(&imports, "import %q\n", p)
		}
	}
	return "package guide\n\n" + imports.String() + body.String()
}

// overlaid runs the go command with files that are not there, below the folder
// of this module.
func overlaid(tb testing.TB, files map[string]string, args ...string) {
	tb.Helper()
	dir := tb.TempDir()
	root, err := filepath.Abs(".")
	if err != nil {
		tb.Fatal(err)
	}
	replace := map[string]string{}
	for name, text := range files {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[filepath.Join(root, filepath.FromSlash(name))] = at
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		tb.Fatal(err)
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), "go", append([]string{args[0], "-buildvcs=false", "-overlay", at}, args[1:]...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		var sources strings.Builder
		for name, text := range files {
			sources.WriteString("--- " + name + "\n")
			for i, line := range strings.Split(text, "\n") {
				fmt.Fprintf(&sources, "%3d %s\n", i+1, line)
			}
		}
		tb.Fatalf("go %s: %v\n%s\n%s", args[0], err, out, sources.String())
	}
}

// What the guide tells people to write compiles.
func TestGuideCompiles(t *testing.T) {
	t.Parallel()
	files, args := map[string]string{}, []string{"build"}
	for _, page := range []string{"outbox", "inbox", "retry", "ordering", "site", "receiving"} {
		files["docs/guide/"+page+"/page.go"] = guideSource(goBlocks(t, "docs/guide/"+page+".md"))
		args = append(args, "./docs/guide/"+page)
	}
	overlaid(t, files, args...)
}

// The tests that the guide shows pass.
func TestGuideOfTestsPasses(t *testing.T) {
	t.Parallel()
	overlaid(t, map[string]string{
		"docs/guide/page_test.go": guideSource(goBlocks(t, "docs/guide/testing.md")),
	}, "test", "-count=1", "./docs/guide") // a folder that is there: the tests run in it
}

// The program of the README runs, delivers, and stops at Ctrl-C; the package's
// documentation shows the same.
func TestReadmesProgramRuns(t *testing.T) {
	t.Parallel()
	program := goBlocks(t, "README.md")[0]
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(doc), "//\tpackage main\n")
	shown, _, _ = strings.Cut(shown, "\n// The other side")
	shown = "package main\n" + regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(shown, "")
	if diff := cmp.Diff(strings.TrimSpace(program), strings.TrimSpace(shown)); diff != "" {
		t.Errorf("doc.go shows another program (-README +doc.go):\n%s", diff)
	}

	dir := t.TempDir()
	binary := filepath.Join(dir, "shop.exe")
	overlaid(t, map[string]string{"examples/shop/main.go": program}, "build", "-o", binary, "./examples/shop")
	for range 2 { // the second time, the table and the tables of the store are there
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, binary)
		cmd.Dir = dir
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if want := "OrderApproved {\"Order\":42}\n"; line != want || err != nil {
			t.Errorf("it printed %q (%v), want %q", line, err, want)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v\n%s", err, stderr.String())
		}
		cancel()
	}
}
