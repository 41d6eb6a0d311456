// Package adapter defines a kind of destination that is not a node: its section of the
// configuration, its deliverer, and what the doctor checks. Each kind is a package below its
// adapter, and one line in package node (ADR 0031). All kinds belong to this module, since their
// settings use an internal package. A program that needs another kind implements
// holdfast.Deliverer.
package adapter

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Kind describes a kind of destination.
type Kind struct {
	Key      setting.Entry[Settings] // the section below a destination; its name is the kind's name
	Noun     string                  // a destination of this kind, in words: "a call"
	Instead  string                  // why the keys of a node do not apply: "a call has its own url and ca"
	Category holdfast.Category
	Renewed  bool   // a reload takes effect if only secrets differ
	Blamed   string // key that config check blames when Open fails; empty: config check does not call Open
	Reached  string // the doctor's text when Probe has succeeded
	Held     string // the doctor's hint when settings or credentials are refused; empty: the usual one
}

// Settings are the settings of one destination: a pointer to the struct that the kind's section
// fills.
type Settings interface {
	Kind() Kind
	// Check reports faults that involve several keys. path is the path of the kind's section.
	Check(r *setting.Report, path string)
	Safety() Safety
	// Open makes the deliverer. It does not connect.
	Open(o Options) (Deliverer, error)
	// Probe checks without any effect that the destination is reachable. It returns its address in
	// a form that may be shown.
	Probe(ctx context.Context, timeout time.Duration) (address string, err error)
}

// Safety is what the operators of a node are told about a destination.
type Safety struct {
	Private map[string]string // files that nobody else may read, by what they are: "the dsn of"
	GivenUp []GivenUp
}

// GivenUp is a safeguard that a destination has switched off.
type GivenUp struct {
	Key, Value string
	Problem    setting.Problem
}

// Options describe the node and the destination.
type Options struct {
	Own         string // file of the node's own database, which must not be a destination; empty: none
	Connections int    // most connections at one time; 0: the adapter's default
	Excerpt     int    // bytes of a refusal that people see
	Answer      int    // bytes of a refusal that the failure keeps besides; 0: none
}

// Deliverer is a holdfast.Deliverer that holds connections.
type Deliverer interface {
	holdfast.Deliverer
	Close()
}
