// Holdfast is the one binary: a node, and the commands that ask a node.
//
// It is thin: package node does the work of a node, and package admin answers its API.
// docs/guide/cli.md describes it.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

func main() {
	os.Exit(thisProcess().run(context.Background(), os.Args[1:]))
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
