package main

import (
	"context"
	"time"
)

// Queue is one contender, opened in its own directory. Its methods are called concurrently.
type Queue interface {
	// Enqueue returns when the message is durable. The queue owns the payload from then on. A
	// contender without destinations ignores dest.
	Enqueue(ctx context.Context, dest int, payload []byte) error
	// Unsettled counts the messages that are not yet settled durably.
	Unsettled(ctx context.Context) (int, error)
	// Close stops the work and closes the files.
	Close() error
}

// Deliver is called by a contender for each message. It may be called concurrently, and may block
// as long as ctx lives; Close ends ctx at the latest.
type Deliver func(ctx context.Context, dest int, payload []byte) error

// Setup says how a contender is opened.
type Setup struct {
	Dir          string  // exists; may contain the files of an earlier Open of the same contender
	DSN          string  // of a database on the run's PostgreSQL, possibly with data of an earlier Open; empty: the contender uses files
	Destinations int     // numbered from 0
	Deliver      Deliver // nil: nothing is delivered, messages only accumulate
	// Claimed is called with the duration of each claim, by a contender that can tell. May be nil.
	Claimed func(time.Duration)
}

// Opener opens a contender. When it returns, deliveries may already run.
type Opener func(ctx context.Context, s Setup) (Queue, error)

// Filler is a Queue that can make a backlog faster than with Enqueue.
type Filler interface {
	// Fill makes count messages for dest durable; payload(i) is the i-th.
	Fill(ctx context.Context, dest, count int, payload func(i int) []byte) error
}

// Cycler is a Queue whose users send, receive and settle in one goroutine.
type Cycler interface {
	// Cycle does all three for one message.
	Cycle(ctx context.Context, payload []byte) error
}

// Claimer measures the claim alone.
type Claimer interface {
	// Claim takes up to limit due messages of destination 0 and restores them, so that the next
	// Claim finds them again. It returns how many it took, and how many microseconds the taking
	// cost.
	Claim(ctx context.Context, limit int) (taken int, micros float64, err error)
	Close() error
}

// ClaimRows says which rows a table has before claims are measured. Destination 0 is healthy,
// destination 1 is dead.
type ClaimRows struct {
	Parked    int // of destination 1
	Delivered int // of destination 1
	Dead      int // pending and due, of destination 1
	Due       int // pending and due, of destination 0
}

// Hop is a pair of nodes joined by HTTP.
type Hop struct {
	// Receive serves the receiving node until ctx ends.
	Receive func(ctx context.Context, h Receiving) error
	// Send opens the sending node, which delivers destination 0 to url. It calls s.Deliver once for
	// each message that the receiver has acknowledged.
	Send func(ctx context.Context, s Setup, url string, batch bool) (Queue, error)
}
