package postgres

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Options are the options of Open. The zero value works.
type Options struct {
	// Source is stamped on messages that name no source. Zero: the host's name. Receivers identify a
	// message by source and id together: give each sender its own name, and keep it. Nodes that share
	// a database share the source.
	Source string
	// Node names this process among the nodes that share the database. A second live node of the
	// same name is refused. Zero: a unique name.
	Node string
	// ClockHold bounds the doubt about time that only the database's clock claims to have passed,
	// for example while no node was running. Messages that would end because of that time are held
	// meanwhile: neither delivered nor ended. DB.Doubt reports it. Zero: a day.
	ClockHold time.Duration
	// Lease is how long the database takes this node for alive after its last heartbeat. After
	// that, other nodes take over its claims. Zero: 15 s. The minimum is 1 s.
	Lease time.Duration
	// Connections bounds the store's own connections. Handlers and Do have as many again. Zero: 8.
	Connections int
	// Timeout bounds one call of the store, and the wait for a connection. Zero: 15 s. If the
	// answer to a commit is lost, the call may take up to twice as long again to find out the
	// outcome.
	Timeout  time.Duration
	Observer holdfast.Observer
	Logger   *slog.Logger // zero: no logging

	relaxed bool // for tests only: the server need not be durable
}

func (o Options) withDefaults() (Options, error) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	if o.Source == "" {
		o.Source = host
		if host == "unknown" {
			o.Source = "$unknown-site" // SF-26
		}
	}
	if o.Node == "" {
		o.Node = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:8]))
	}
	if len(o.Node) > holdfast.MaxNameLen {
		return o, fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{
			Field: "node", Value: o.Node[:40] + "…", Problem: fmt.Sprintf("has %d bytes; at most %d fit", len(o.Node), holdfast.MaxNameLen),
		})
	}
	switch {
	case o.Lease == 0:
		o.Lease = 15 * time.Second
	case o.Lease < time.Second:
		return o, fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{Field: "lease", Value: o.Lease.String(), Problem: "must be at least 1s"})
	}
	if o.Connections <= 0 {
		o.Connections = 8
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
