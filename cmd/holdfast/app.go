package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/logs"
)

// app is the process around the commands. A test can use another one.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            config.Env
	serve          func(ctx context.Context, o ServeOptions) error
	demo           func(ctx context.Context, o demo.Options) (*demo.Counts, error)
	notify         func(c chan<- os.Signal, of ...os.Signal) (stop func())
	ignore         func(of ...os.Signal)
	exit           func(code int) // ends the process at once

	log   atomic.Pointer[slog.Logger] // of serve, if lines are for programs; nil: they are for people
	lines []*logs.Writer              // of serve
}

// getenv returns a variable; empty if it is not set.
func (a *app) getenv(name string) string {
	value, _ := a.env.Lookup(name)
	return value
}

// ServeOptions are the options of a node's start.
type ServeOptions struct {
	Config         *config.Config
	Version        string
	Commit         string
	Stdout, Stderr io.Writer
	Reload         <-chan *config.Config
}
