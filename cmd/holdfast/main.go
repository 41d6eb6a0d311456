// Holdfast is the one binary: a node, and the commands that ask a node.
//
// It is thin: what a node does is in package node, what its API answers in
// package admin. docs/guide/cli.md describes it.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/logs"
	"github.com/holdfast-mq/holdfast/node"
)

func main() {
	os.Exit(thisProcess().run(context.Background(), os.Args[1:]))
}

// app is the process around the commands, so that a test can give another.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            config.Env
	serve          func(ctx context.Context, o ServeOptions) error
	demo           func(ctx context.Context, o demo.Options) (*demo.Counts, error)
	notify         func(c chan<- os.Signal, of ...os.Signal) (stop func())
	ignore         func(of ...os.Signal)
	exit           func(code int) // at once

	log   atomic.Pointer[slog.Logger] // of serve, where lines are for programs; nil: they are for people
	lines []*logs.Writer              // of serve
}

// thisProcess is the app of a real process.
func thisProcess() *app {
	env := config.Process(node.DestinationKinds())
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: env, serve: serveNode, demo: demo.Run, exit: os.Exit,
		ignore: signal.Ignore,
		notify: func(c chan<- os.Signal, of ...os.Signal) func() {
			signal.Notify(c, of...)
			return func() { signal.Stop(c) }
		},
	}
}

// getenv returns a variable, empty where it is not set.
func (a *app) getenv(name string) string {
	value, _ := a.env.Lookup(name)
	return value
}
