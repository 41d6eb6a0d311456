package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-mq/holdfast/internal/porttest"
)

// nodesKey is for the nodes of a script, by the variable with their address.
type nodesKey struct{}

// serves starts a node that a script asks, and waits until it answers.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: serves VARIABLE CONFIG")
	}
	file := ts.MkAbs(args[1])
	ts.Check(os.WriteFile(file, []byte(os.Expand(ts.ReadFile(args[1]), ts.Getenv)), 0o600))
	port, err := porttest.Free()
	ts.Check(err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	path, err := exec.LookPath("holdfast")
	ts.Check(err)
	log := &tailWriter{}
	cmd := exec.Command(path, "serve", "--listen", address, "--config", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), log, log
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := "http://" + address
	becomes(ts, func() bool {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, func() string { return "the node does not answer: " + log.String() })
	ts.Setenv(args[0], url)
	ts.Value(nodesKey{}).(map[string]*exec.Cmd)[args[0]] = cmd
}

// stops ends a node as an operator would.
func stops(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stops VARIABLE")
	}
	cmd := ts.Value(nodesKey{}).(map[string]*exec.Cmd)[args[0]]
	ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	ts.Check(cmd.Wait())
}

// until runs holdfast again and again, until its output has a line like that.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN ARGS...")
	}
	line, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	becomes(ts, func() bool {
		return ts.Exec("holdfast", args[1:]...) == nil && line.MatchString(ts.ReadFile("stdout"))
	}, func() string { return "there is no such line in\n" + ts.ReadFile("stdout") + ts.ReadFile("stderr") })
}

func becomes(ts *testscript.TestScript, done func() bool, why func() string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for !done() {
		if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
			ts.Fatalf("%s", why())
		}
	}
}
