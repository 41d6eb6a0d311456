package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// childEnv makes the test binary a process that is there to be killed.
const childEnv = "HOLDFAST_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		child(role, os.Args[1:])
		return
	}
	code := m.Run()
	if left := leftOver(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines are left over:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leftOver returns the stacks of goroutines that closed stores have left.
func leftOver() (left string) {
	for range 100 {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for g := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(g, "holdfast/sqlite.") || strings.Contains(g, "database/sql.") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}

// start runs a child and returns what it says.
func start(t testing.TB, role string, args ...string) (*exec.Cmd, *saying) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), childEnv+"="+role)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, &saying{bufio.NewScanner(out)}
}

type saying struct{ s *bufio.Scanner }

func (s *saying) line(t testing.TB) string {
	t.Helper()
	if !s.s.Scan() {
		t.Fatalf("the child said nothing more: %v", s.s.Err())
	}
	return s.s.Text()
}

// all waits for the child's end and returns everything that it said.
func (s *saying) all() (lines []string) {
	for s.s.Scan() {
		lines = append(lines, s.s.Text())
	}
	return lines
}

func kill(t testing.TB, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
}

// die is kill -9 of this very process.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// say says one line.
func say(a ...any) {
	_, _ = fmt.Fprintln(os.Stdout, strings.ReplaceAll(strings.TrimSpace(fmt.Sprintln(a...)), "\n", "; "))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func child(role string, args []string) {
	switch role {
	case "attached":
		attachedChild(args[0], args[1], args[2])
		return
	case "wanting":
		wantingChild(args[0], args[1])
		return
	case "race":
		raceChild(args[0], args[1])
		return
	case "backup", "restore":
		copyChild(role, args)
		return
	case "surge":
		surge(args)
		return
	case "audit":
		auditSurge(args)
		return
	case "events":
		eventSurge(args)
		return
	}
	p := &tap{}
	db, err := sqlite.Open(context.Background(), args[0], sqlite.Options{Source: "test", Adopt: true}.With(p.wrap))
	if role == "faulty" {
		faultyChild(db, err, p)
		return
	}
	must(err)
	switch role {
	case "own":
		say("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	case "step":
		n, err := strconv.Atoi(args[2])
		must(err)
		stepChild(db, p, args[1], n)
	case "deliver":
		deliverChild(db)
	case "project":
		projectChild(db)
	}
	must(db.Close())
}

// stepChild does one piece of work and dies before its nth statement, or after
// its commit, whichever comes first.
func stepChild(db *sqlite.DB, p *tap, work string, n int) {
	do := works[work]
	prepared := do.prepare(db)
	var step atomic.Int64
	p.set(func(sql string) error {
		if step.Add(1) == int64(n) {
			die()
		}
		return nil
	}, func(sql string) error {
		if sql == sqlite.CommitNow && step.Add(1) == int64(n) {
			die()
		}
		return nil
	})
	err := do.work(db, prepared)
	p.set(nil, nil)
	must(err)
	say("acknowledged after", step.Load())
	die()
}

// deliverChild runs a dispatcher whose deliverer kills the process when it
// meets the message "poison".
func deliverChild(db *sqlite.DB) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	route := holdfast.Route{
		Retry: holdfast.RetryPolicy{First: time.Millisecond, Jitter: -1, Attempts: 3},
		Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			if strings.HasPrefix(string(m.ID), "poison") {
				die()
			}
			return holdfast.Receipt{ID: m.ID}, nil
		}),
	}
	d := &holdfast.Dispatcher{
		Store: db, Logger: slog.New(slog.DiscardHandler),
		Routes: map[string]holdfast.Route{"a": route, "b": route, "c": route},
	}
	go func() {
		for db.Counts().Pending > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	must(d.Run(ctx))
	say("drained")
}
