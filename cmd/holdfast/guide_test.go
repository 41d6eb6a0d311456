package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
