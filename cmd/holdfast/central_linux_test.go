package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/mailpittest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// blockOfGuide is a piece of a guide between ``` lines.
type blockOfGuide struct{ kind, text string }

func blocksOf(t *testing.T, name string) (blocks []blockOfGuide) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, blockOfGuide{found[1], found[2]})
	}
	return blocks
}

// newcomer types what a guide says, in one shell after the other, in folders
// that were empty.
type newcomer struct {
	t           *testing.T
	dir, memory string
	replace     *strings.Replacer
	said        strings.Builder
}

func (n *newcomer) shell(script string) {
	n.t.Helper()
	memory := "export -p >" + n.memory + "; pwd >" + n.memory + ".dir"
	cmd := exec.CommandContext(n.t.Context(), "sh", "-ec", ". "+n.memory+"\n"+script+"\n"+memory)
	cmd.Dir = n.folder()
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s\n%s\n%v", script, out, err)
	}
	_, _ = fmt.Fprintf(&n.said, "$ %s%s\n", script, out)
}

// quietly is what a script says, whatever becomes of it.
func (n *newcomer) quietly(script string) string {
	cmd := exec.CommandContext(n.t.Context(), "sh", "-ec", ". "+n.memory+"\n"+script)
	cmd.Dir = n.folder()
	out, _ := cmd.Output()
	return string(out)
}

func (n *newcomer) folder() string {
	if text, err := os.ReadFile(n.memory + ".dir"); err == nil {
		return strings.TrimSpace(string(text))
	}
	return n.dir
}

// serve starts what does not end by itself, and waits until it listens.
func (n *newcomer) serve(script, address string) {
	n.t.Helper()
	cmd := exec.Command("sh", "-ec", ". "+n.memory+"; exec "+script)
	cmd.Dir = n.folder()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("%s\n%s", script, out.String())
		}
	})
	eventually(n.t, script, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// Whoever types the guide in two empty folders has a central, a site, and a
// mail. The machine's own addresses, ports and mail server stand in for those
// of the guide.
func TestTheGuideOfCentralCanBeTyped(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its programs runs one command, and starts ten times slower under it")
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not here")
	}
	mail := mailpittest.Start(t)
	central, site := freeAddress(t), freeAddress(t)
	_, centralPort, _ := net.SplitHostPort(central)
	n := &newcomer{t: t, dir: t.TempDir(), memory: filepath.Join(t.TempDir(), "memory"), replace: strings.NewReplacer(
		"https://central.example:8420", "https://"+central, "https://localhost:8420", "https://localhost:"+centralPort,
		"0.0.0.0:8420", central, "127.0.0.1:8430", site,
		"{host: smtp.example.com, port: 587, tls: starttls, from: plant@example.com, auth: {mechanism: plain, user: plant, password: {secret: smtp}}}",
		fmt.Sprintf("{host: 127.0.0.1, port: %d, tls: none, from: plant@example.com}", mail.Port),
	)}
	write(t, n.memory, "export LC_ALL=C\n")
	for _, b := range blocksOf(t, "docs/guide/central.md") {
		text := n.replace.Replace(b.text)
		first, _, _ := strings.Cut(text, "\n")
		switch name, named := strings.CutPrefix(first, "# "); {
		case b.kind == "yaml" && named:
			write(t, filepath.Join(n.folder(), name), text)
		case strings.HasPrefix(first, "holdfast serve --config central"):
			n.serve(first, central)
		case strings.HasPrefix(first, "holdfast serve --config site"):
			n.serve(first, site)
			eventually(t, "the site is connected", func() bool {
				return strings.Contains(n.quietly("curl -s http://"+site+"/_rf/health"), "connected as plant-7")
			})
		case b.kind == "sh" && strings.HasPrefix(text, "cd .. "): // in a third terminal
			folder := n.folder()
			n.memory += "-of-site"
			write(t, n.memory, "export LC_ALL=C\n")
			write(t, n.memory+".dir", folder)
			n.shell(text)
		case b.kind == "sh" && strings.Contains(text, "sites ls"): // in the second terminal
			n.memory = strings.TrimSuffix(n.memory, "-of-site")
			eventually(t, "the mail", func() bool { return strings.Contains(n.quietly("holdfast notifications ls"), "delivered") })
			n.shell(text)
		case b.kind == "sh":
			n.shell(text)
		}
	}
	for _, want := range []string{
		"enrolled as site plant-7", "result   accepted", "tank-4 accepted", "plant-7  online", `"role":"central"`, "holdfast_lane_up{destination=\"channel:mail\"} 1",
		"jane@example.com  Doe, Jane  accepted", " 0 failing",
	} {
		if !strings.Contains(n.said.String(), want) {
			t.Errorf("nobody said %q:\n%s", want, n.said.String())
		}
	}
}
