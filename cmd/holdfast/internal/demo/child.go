package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// child is a node: a process of this program that can be killed and started again. The system
// chooses its address each time.
type child struct {
	name   string
	argv   []string
	dir    string
	client *exchange.Client
	fail   context.CancelCauseFunc // called if the process ends by itself

	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	out   *output
	mu    sync.Mutex
	told  bool // we caused its end
}

// startWait bounds the start of a node, even on a slow machine.
const startWait = time.Minute

// start runs the node, waits until it answers, and returns its URL.
func (c *child) start(ctx context.Context) (url string, err error) {
	log, err := os.OpenFile(filepath.Join(c.dir, c.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", c.name, err)
	}
	c.out = &output{log: log, address: make(chan string, 1)}
	c.cmd = exec.Command(c.argv[0], c.argv[1:]...) //nolint:gosec,noctx // this program itself; no context ends it, it is killed
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.Env = c.out, c.out, plainEnvironment()
	apart(c.cmd)
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return "", errors.Join(fmt.Errorf("start %s: %w", c.name, err), log.Close())
	}
	if err := c.cmd.Start(); err != nil {
		return "", errors.Join(fmt.Errorf("start %s: %w", c.name, err), log.Close())
	}
	c.mu.Lock()
	c.told = false
	c.mu.Unlock()
	c.ended = make(chan struct{})
	go c.wait(c.cmd, c.out, log, c.ended)
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("%s does not answer within %s", c.name, startWait))
	defer cancel()
	select {
	case url = <-c.out.address:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	for !c.ready(ctx, url) {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return "", err
		}
	}
	return url, nil
}

// wait waits for the end of the process. kill and end wait for it.
func (c *child) wait(cmd *exec.Cmd, out *output, log io.Closer, ended chan<- struct{}) {
	defer close(ended)
	_ = cmd.Wait() // its state tells
	_ = log.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.told {
		c.fail(fmt.Errorf("%s ended by itself, %s\n%s", c.name, cmd.ProcessState, out.tail()))
	}
}

func (c *child) ready(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, f := c.client.Do(req, nil)
	if f != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// expect records that the process is about to end, and reports whether it runs.
func (c *child) expect() bool {
	if c.ended == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = true
	return true
}

// runs reports whether a process runs that was not told to end.
func (c *child) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != nil && !c.told
}

// kill is kill -9: nothing of the process runs afterwards.
func (c *child) kill() {
	if c.expect() {
		_ = c.cmd.Process.Kill() // it may be gone already
		<-c.ended
	}
}

// end makes the process stop as if its terminal were gone. If it does not stop, end kills it.
func (c *child) end() error {
	if !c.expect() {
		return nil
	}
	_ = c.stdin.Close()
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill()
		return fmt.Errorf("%s did not stop within %s and was killed\n%s", c.name, stopWait, c.out.tail())
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s stopped with exit code %d\n%s", c.name, code, c.out.tail())
	}
	return nil
}

const stopWait = 20 * time.Second

// plainEnvironment returns this process's environment without settings for a node.
func plainEnvironment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(strings.ToUpper(pair), "HOLDFAST_") {
			env = append(env, pair)
		}
	}
	return env
}

// output takes what a node prints: it writes a log, and finds the address in it.
type output struct {
	log     io.Writer
	address chan string
	mu      sync.Mutex
	text    []byte
	found   bool
}

// Write never fails: if the log cannot be written, the node must not stop.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.log.Write(b)
	o.text = append(o.text, b...)
	if !o.found {
		if m := regexp.MustCompile(`(?m)^ *listening +(http://\S+)\r?\n`).FindSubmatch(o.text); m != nil {
			o.found = true
			o.address <- string(m[1])
		}
	}
	if len(o.text) > 64<<10 {
		o.text = append([]byte(nil), o.text[len(o.text)-8<<10:]...)
	}
	return len(b), nil
}

// tail returns the end of the output.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.TrimSpace(o.text[max(0, len(o.text)-2000):]))
}
