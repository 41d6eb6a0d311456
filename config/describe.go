package config

import (
	"encoding/json"

	"github.com/holdfast-mq/holdfast/adapter"
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

// Keys lists the keys of the file, with those kinds of destinations, in the order in which YAML prints them.
func Keys(kinds []adapter.Kind) []Key {
	rows := configKeys(kinds).Rows()
	list := make([]Key, len(rows))
	for i, r := range rows {
		list[i] = Key{r.Path, r.Doc, r.Values, r.Usual}
	}
	return list
}

// Schema returns a JSON Schema (draft 2020-12) of the file, with those kinds of destinations, for editors that
// complete and check YAML. It knows keys, types and words; what only Load can
// tell, such as bounds of times, files and secrets, it takes.
func Schema(kinds []adapter.Kind) []byte {
	root := configKeys(kinds).Schema().
		With("$schema", "https://json-schema.org/draft/2020-12/schema").
		With("title", "Configuration of a Holdfast node")
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil // it holds texts, numbers and lists of them
	}
	return append(text, '\n')
}
