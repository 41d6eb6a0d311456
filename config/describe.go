package config

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Key is what people are told of a key of the file. The texts are Markdown; NAME,
// SITE and other words in capitals stand in the path for the names that people
// choose.
type Key struct {
	Path    string // destinations.NAME.retry.base
	Meaning string
	Values  string // that it takes
	Default string
}

// Keys lists the keys of the file, in the order in which YAML prints them.
func Keys() []Key {
	rows := configKeys().rows()
	list := make([]Key, len(rows))
	for i, r := range rows {
		list[i] = Key{r.path, r.doc, r.values, r.usual}
	}
	return list
}

// Schema returns a JSON Schema (draft 2020-12) of the file, for editors that
// complete and check YAML. It knows keys, types and words; what only Load can
// tell, such as bounds of times, files and secrets, it takes.
func Schema() []byte {
	root := configKeys().schema().
		with("$schema", "https://json-schema.org/draft/2020-12/schema").
		with("title", "Configuration of a Holdfast node")
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil // it holds texts, numbers and lists of them
	}
	return append(text, '\n')
}

// Plain returns a text of a Key without its Markdown: code is shown as it is, and
// of links only the text.
func Plain(text string) string {
	return strings.ReplaceAll(regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1"), "`", "")
}
