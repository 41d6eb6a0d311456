package config

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Pages says how the operator pages are shown.
type Pages struct {
	Enabled     bool
	Base        string // path below which a proxy offers the node; empty: the root
	Environment string // what the node is a part of, such as production; empty: nothing is shown
	Colour      Colour // of Environment
}

// Colour is the colour of a label on the pages.
type Colour string

// The colours.
const (
	Red    Colour = "red"
	Amber  Colour = "amber"
	Green  Colour = "green"
	Blue   Colour = "blue"
	Violet Colour = "violet"
	Grey   Colour = "grey"
)

func pageKeys() setting.Section[Pages] {
	return setting.Section[Pages]{
		setting.Key("enabled", func(p *Pages) *bool { return &p.Enabled }, setting.Truth(), true, "Whether the node serves the [operator pages](pages.md), at `/ui/`."),
		setting.Maybe("base", func(p *Pages) *string { return &p.Base }, setting.Words("/plant-4", checkBase),
			"Path below which a proxy offers the node. The proxy removes it from requests; links in the pages begin with it.").Tells("begins with /", "none"),
		setting.Maybe("environment", func(p *Pages) *string { return &p.Environment }, setting.Words("production", checkLabel),
			"Label that each page shows, so that nobody takes this node for another.").Tells("at most 24 characters on one line", "none"),
		setting.Key("colour", func(p *Pages) *Colour { return &p.Colour }, setting.Word(Red, Red, Amber, Green, Blue, Violet, Grey), Grey, "Colour of that label."),
	}
}

func checkBase(r *setting.Report, path, text string) {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsFunc(text, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("/-_.~", c)
	}) {
		r.Fault(path, text, setting.Problem{What: "is no path for the pages", Fix: "write one such as /plant-4, of letters, digits and -_.~"})
	}
}

func checkLabel(r *setting.Report, path, text string) {
	if utf8.RuneCountInString(text) > 24 || strings.ContainsFunc(text, unicode.IsControl) {
		r.Fault(path, text, setting.Problem{What: "does not fit into the bar of the pages", Fix: "write at most 24 characters on one line"})
	}
}
