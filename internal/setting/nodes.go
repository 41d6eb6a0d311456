package setting

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// SecretNode shows where a secret comes from.
func SecretNode(s Secret) *yaml.Node {
	switch {
	case s.env != "":
		return Flow(Pair{"env", Str(s.env)})
	case s.at != "":
		return Flow(Pair{"file", Str(s.at)})
	}
	return Str(Hidden)
}

// Pair is a key with its shown value.
type Pair struct {
	Key   string
	Value *yaml.Node // nil: the key is left out
}

// Mapping shows keys, each on a line of its own.
func Mapping(pairs ...Pair) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	addAll(n, pairs...)
	return n
}

// Flow shows keys in one line.
func Flow(pairs ...Pair) *yaml.Node {
	n := Mapping(pairs...)
	n.Style = yaml.FlowStyle
	return n
}

// Add shows one more key.
func Add(n *yaml.Node, key string, value *yaml.Node) { addAll(n, Pair{key, value}) }

func addAll(n *yaml.Node, pairs ...Pair) {
	for _, p := range pairs {
		if p.Value != nil {
			n.Content = append(n.Content, Str(p.Key), p.Value)
		}
	}
}

// Str shows a text.
func Str(s string) *yaml.Node {
	return Scalar("!!str", strings.ToValidUTF8(s, "\uFFFD"))
}

// Scalar shows a value with its tag.
func Scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// timeNode shows a duration, or the word that stands for Never.
func timeNode(d time.Duration, never string) *yaml.Node {
	if d == Never && never != "" {
		return Str(never)
	}
	return Str(FormatDuration(d))
}

// Printer decides how to print values that may hold a secret.
type Printer struct {
	Root  any  // the struct whose keys are printed
	Whole bool // prints secrets as well, for comparisons only; nobody is shown the result
}

func (p Printer) url(text string) string {
	if p.Whole {
		return text
	}
	return secrets.URL(text)
}

// Header returns the value of a header, or Hidden if it may be a secret.
func (p Printer) Header(name, value string) string {
	if p.Whole || value == "" || secrets.Plain(name) {
		return value
	}
	return Hidden
}

// ListOf shows a list in one line.
func ListOf[T any](list []T, show func(T) string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, v := range list {
		n.Content = append(n.Content, Str(show(v)))
	}
	return n
}
