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

// Options of Open. The zero value works.
type Options struct {
	// Source is stamped on messages that name none. Zero: the host's name. To
	// a receiver, source and id together are the message: give each sender a
	// name of its own, and keep it. Nodes that share a database share it.
	Source string
	// Node names this process among those that share the database. Two live
	// ones of one name are refused. Zero: a name that nobody else has.
	Node string
	// ClockHold is how long time that only the database's clock claims to have
	// passed, as it does when no node was running, is doubted at most: what would
	// end because of it is held meanwhile, neither delivered nor ended. DB.Doubt
	// tells. Zero: a day.
	ClockHold time.Duration
	// Lease is how long the database takes this node for alive after it was
	// last heard of; then others take over what it had in hand. Zero: 15 s; at
	// least 1 s.
	Lease time.Duration
	// Connections bounds those of the store itself; handlers and Do have as
	// many again. Zero: 8.
	Connections int
	// Timeout bounds one call of the store, and the wait for a connection.
	// Zero: 15 s. Where a commit was sent and its answer is lost, the call goes
	// on for at most twice as long again to find out what became of it.
	Timeout  time.Duration
	Observer holdfast.Observer
	Logger   *slog.Logger // zero: none

	relaxed bool // tests only: the server need not be durable
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
