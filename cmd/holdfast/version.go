package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// The version of a release, set by -ldflags "-X main.version=1.2.3".
//
//nolint:gochecknoglobals // the linker sets them
var version, commit, date string

// buildInfo tells what this binary was built from.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// build returns what the linker has set, and for the rest what Go has recorded.
func build() buildInfo {
	b := buildInfo{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = strings.TrimPrefix(info.Main.Version, "v")
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && b.Commit == "":
				b.Commit = s.Value
			case s.Key == "vcs.time" && b.Date == "":
				b.Date = s.Value
			}
		}
	}
	if b.Version == "" {
		b.Version = "dev"
	}
	return b
}

func (a *app) versionCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  args(0, 0, "none"),
		RunE: func(*cobra.Command, []string) error {
			b := build()
			if g.json {
				return printJSON(a.stdout, b)
			}
			text := "holdfast " + b.Version
			if b.Commit != "" {
				text += ", commit " + b.Commit
			}
			if b.Date != "" {
				text += ", " + b.Date
			}
			_, err := fmt.Fprintf(a.stdout, "%s, %s, %s\n", text, b.Go, b.Platform)
			return err
		},
	}
}
