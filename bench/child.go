package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// Receiving is the input of the receiving node of a hop.
type Receiving struct {
	Dir      string
	Listener net.Listener
	// Batch means that one request carries many messages, which are kept, not handled.
	Batch bool
}

// childArgs are the arguments of a child process.
type childArgs struct {
	task, contender, dir, profile string
	batch                         bool
	started                       int64 // nanoseconds of the wall clock
}

// ready is the one line that a child prints, as JSON.
type ready struct {
	Address   string   `json:"address,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	ReadyMS   float64  `json:"ready_ms,omitempty"`
	OpenMS    float64  `json:"open_ms,omitempty"`
	RSS       float64  `json:"rss_mb,omitempty"`
	Peak      float64  `json:"peak_mb,omitempty"`
}

// child is the parent's view of its child process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ready ready
}

// startChild starts this program again and waits for its line. The child ends when its standard
// input closes, so it cannot outlive the parent.
func startChild(ctx context.Context, a childArgs) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "child", "-task", a.task, "-contender", a.contender, "-dir", a.dir,
		"-profile", a.profile, "-batch="+strconv.FormatBool(a.batch),
		"-started", strconv.FormatInt(time.Now().UnixNano(), 10))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	c := &child{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.ready)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read child's answer: %w", err), c.end())
	}
	return c, nil
}

// end makes the child end and waits for it.
func (c *child) end() error {
	late := time.AfterFunc(30*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	_ = c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("child: %w", err)
	}
	return nil
}

// runChild is the main function of a child process.
func runChild(args []string) (err error) {
	var a childArgs
	f := flag.NewFlagSet("child", flag.ContinueOnError)
	f.StringVar(&a.task, "task", "", "receive, backlog or webhook")
	f.StringVar(&a.dir, "dir", "", "directory of its files")
	f.StringVar(&a.profile, "profile", "", "file for a CPU profile")
	f.StringVar(&a.contender, "contender", "", "name of what is measured")
	f.BoolVar(&a.batch, "batch", false, "many messages in one request")
	f.Int64Var(&a.started, "started", 0, "when the parent started it")
	if err := f.Parse(args); err != nil {
		return err
	}
	if a.profile != "" {
		end, err := profileTo(a.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	switch a.task {
	case "backlog":
		return backlogChild(ctx, a)
	case "webhook":
		return webhookChild(ctx)
	}
	return receiveChild(ctx, a)
}

func (r ready) print() error {
	return json.NewEncoder(os.Stdout).Encode(r)
}

func receiveChild(ctx context.Context, a childArgs) error {
	o, err := find(a.contender)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := (ready{Address: l.Addr().String()}).print(); err != nil {
		return err
	}
	return o.Hop.Receive(ctx, Receiving{Dir: a.dir, Listener: l, Batch: a.batch})
}
