package config

import (
	"encoding/json"

	"github.com/holdfast-mq/holdfast/adapter"
)

// Key is the description of a key of the file, for people. The texts are Markdown. In the path, NAME, SITE
// and other words in capitals stand for the names that people choose.
type Key struct {
	Path    string // destinations.NAME.retry.base
	Meaning string
	Values  string // the values that it takes
	Default string
}

// Keys lists the keys of the file in the order of YAML, with the given kinds of destinations.
func Keys(kinds []adapter.Kind) []Key {
	rows := configKeys(kinds).Rows()
	list := make([]Key, len(rows))
	for i, r := range rows {
		list[i] = Key{r.Path, r.Doc, r.Values, r.Usual}
	}
	return list
}

// Schema returns a JSON Schema (draft 2020-12) of the file, for editors that complete and check YAML, with
// the given kinds of destinations. It checks keys, types and words. It does not check what only Load can:
// bounds of times, files and secrets.
func Schema(kinds []adapter.Kind) []byte {
	root := configKeys(kinds).Schema().
		With("$schema", "https://json-schema.org/draft/2020-12/schema").
		With("title", "Configuration of a Holdfast node")
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil // cannot happen: it holds only texts, numbers and lists of them
	}
	return append(text, '\n')
}
