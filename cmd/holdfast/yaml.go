package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// readObject reads an object that a person wrote as YAML or JSON, from a file, or from standard
// input for "-".
func (a *app) readObject(file string) (json.RawMessage, error) {
	text, err := a.readInput(file)
	if err != nil {
		return nil, err
	}
	if file == "-" {
		file = "standard input"
	}
	if text = bytes.TrimSpace(text); json.Valid(text) { // keeps its numbers as they are written
		if text[0] != '{' {
			return nil, usage(fmt.Errorf("%s: must be an object: names with values", file))
		}
		return text, nil
	}
	object, err := yamlObject(text)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", file, err))
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: cannot be written as JSON: %w", file, err))
	}
	return data, nil
}

// yamlObject reads YAML. The parser panics on some broken input.
func yamlObject(text []byte) (object map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("is not YAML: %v", p)
		}
	}()
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("is not an object in YAML or JSON: %w", err)
	}
	if object == nil {
		return nil, errors.New("is empty; write {} for an empty object")
	}
	return object, nil
}
