// Package adapter says what a kind of destination is that is no peer: its section
// of the configuration, its deliverer, and what the doctor asks of it. A kind is a
// package below its adapter, and one line in node (ADR 0031). Kinds are those of this
// module: their settings are made of an internal package. A program has its own
// Deliverer instead.
package adapter

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Kind is a kind of destination.
type Kind struct {
	Key      setting.Entry[Settings] // below a destination; its name is the kind's
	Noun     string                  // what such a destination is: "a call"
	Instead  string                  // of the keys of a peer: "a call has its own url and ca"
	Category holdfast.Category
	Renewed  bool   // by a reload, where nothing but secrets differs
	Blamed   string // key that config check blames for what Open refuses; empty: it does not ask
	Reached  string // what the doctor says of one that Probe has reached
	Held     string // its hint where settings or credentials are refused; empty: the usual one
}

// Settings are those of one destination. They are a pointer to the struct that the
// section of the kind fills.
type Settings interface {
	Kind() Kind
	// Check finds what is wrong between the keys; path is that of the kind's own.
	Check(r *setting.Report, path string)
	Safety() Safety
	// Open makes the way to the destination. It connects to nobody.
	Open(o Options) (Deliverer, error)
	// Probe looks whether somebody is there, without any effect, and says where
	// that is, in words that may be shown.
	Probe(ctx context.Context, timeout time.Duration) (address string, err error)
}

// Safety is what those who run a node are told of a destination.
type Safety struct {
	Private map[string]string // files for nobody else's eyes, by what they are: "the dsn of"
	GivenUp []GivenUp
}

// GivenUp is a safeguard that a destination does without.
type GivenUp struct {
	Key, Value string
	Problem    setting.Problem
}

// Options are what a node says of itself and of the destination.
type Options struct {
	Own         string // file of the node's database, which is no destination; empty: none
	Connections int    // at one time; 0: the adapter's own
	Excerpt     int    // how much of a refusal people get to see
}

// Deliverer delivers, and holds connections.
type Deliverer interface {
	holdfast.Deliverer
	Close()
}
