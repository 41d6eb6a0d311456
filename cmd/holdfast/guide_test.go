package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// The guide names every command and every flag, and each has an example.
func TestTheGuideIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if !c.HasSubCommands() && !strings.Contains(guide, "`"+c.CommandPath()) {
			t.Errorf("%s is not in the guide", c.CommandPath())
		}
		if c.Short == "" {
			t.Errorf("%s has no help", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(guide, "--"+f.Name) {
				t.Errorf("%s --%s is not in the guide", c.CommandPath(), f.Name)
			}
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", c.CommandPath(), f.Name)
			}
		})
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	a, _, _, _ := served(nil)
	visit(a.root())
}

// Each command that a guide shows is one of this program, with flags and
// arguments that it takes.
func TestTheCommandsOfTheGuidesExist(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "it reads files, in one goroutine")
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "guide", "*.md"))
	if err != nil || len(guides) < 10 {
		t.Fatalf("guides %v, %v", guides, err)
	}
	seen := 0
	for _, name := range append(guides, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```(?:sh)?\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.SplitSeq(strings.ReplaceAll(block[1], "\\\n", " "), "\n") {
				for _, words := range commandsOf(line) {
					seen++
					if err := understood(words); err != nil {
						t.Errorf("%s: %s: %v", filepath.Base(name), strings.Join(words, " "), err)
					}
				}
			}
		}
	}
	for _, bad := range []string{"holdfast sites addd plant-7", "holdfast nothing", "holdfast sites ls --nothing", "holdfast sites add", "x | xargs holdfast sites revoke a"} {
		if words := commandsOf(bad); len(words) != 1 || understood(words[0]) == nil {
			t.Errorf("%s: %q was understood", bad, words)
		}
	}
	if seen < 80 {
		t.Errorf("only %d commands were found", seen)
	}
}

// commandsOf are the commands of this program in a line for a shell: the words
// behind its name. Behind xargs come further arguments.
func commandsOf(line string) (all [][]string) {
	var words []string
	flush := func(more ...string) {
		for len(words) > 0 && words[0] != "holdfast" && words[0] != "./cmd/holdfast" {
			if words[0] == "xargs" {
				more = append(more, "order-42")
			}
			words = words[1:]
		}
		if len(words) > 1 {
			all = append(all, append(words[1:], more...))
		}
		words = nil
	}
	for _, w := range regexp.MustCompile(`#.*$|[|;]|&&|[<>]+\s*\S+|(?:'[^']*'|"[^"]*"|[^\s|;<>'"])+`).FindAllString(line, -1) {
		switch {
		case strings.HasPrefix(w, "#"):
		case w == "|" || w == ";" || w == "&&":
			flush()
		case w[0] == '<' || w[0] == '>':
		default:
			words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(w))
		}
	}
	flush()
	return all
}

func understood(words []string) error {
	a, _, _, _ := served(nil)
	cmd, rest, err := a.root().Find(words)
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() {
		return fmt.Errorf("%s has no such command", cmd.CommandPath())
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// Each link from a guide to another file leads there, also to the heading.
func TestTheLinksOfTheGuidesLead(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "it reads files, in one goroutine")
	top := filepath.Join("..", "..")
	guides, err := filepath.Glob(filepath.Join(top, "docs", "guide", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	prose := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")
	}
	links := 0
	for _, name := range append(guides, filepath.Join(top, "README.md")) {
		for _, found := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(name), -1) {
			file, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			links++
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil || heading != "" && !slices.Contains(headings(prose(target)), heading) {
				t.Errorf("%s: %s leads nowhere", filepath.Base(name), found[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// headings are the names by which GitHub links to the headings of a text.
func headings(text string) (all []string) {
	for _, found := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(strings.ToLower(found[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}
