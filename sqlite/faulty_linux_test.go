package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// faulty runs a child whose system calls fail where the fault says, in
// strace's words, and returns what it said and which calls were failed.
func faulty(t *testing.T, path, calls, fault string) (lines, failed []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "strace")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Only the files of the database: the Go runtime writes elsewhere, too.
	c := exec.CommandContext(ctx, stracePath(t), "-f", "--seccomp-bpf", "-y", "-o", log, "-P", path, "-P", path+"-wal",
		"-e", "trace="+calls, "-e", "inject="+calls+":"+fault, os.Args[0], path)
	c.Env = append(os.Environ(), childEnv+"=faulty")
	var said, complaint bytes.Buffer
	c.Stdout, c.Stderr = &said, &complaint
	err := c.Run()
	if err != nil {
		if strings.Contains(complaint.String(), "PTRACE") || strings.Contains(complaint.String(), "ptrace(") {
			t.Skipf("trace a child: %s; it takes the right to", complaint.String())
		}
		t.Fatalf("%s on %s: %v\n%s\n%s", fault, calls, err, said.String(), complaint.String())
	}
	trace, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(trace), "\n") {
		if strings.HasSuffix(line, "(INJECTED)") {
			failed = append(failed, line)
		}
	}
	return strings.Split(strings.TrimSpace(said.String()), "\n"), failed
}

func stracePath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("%v; install strace: it makes system calls fail", err)
	}
	return path
}

// judgeFaulty checks what a child said against the rules and against the file.
func judgeFaulty(t *testing.T, path string, lines []string) {
	t.Helper()
	acked, doubtful := []string{}, false
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		id, _, _ := strings.Cut(rest, " ")
		switch word {
		case "ack":
			if doubtful {
				t.Errorf("%s was acknowledged after a failed write, without a checkpoint", id)
			}
			acked = append(acked, id)
		case "error":
			// A full disk is no broken one: SQLite has undone what it wrote.
			doubtful = doubtful || strings.Contains(line, "input/output")
		case "checkpoint":
			doubtful = false
		case "slow":
			t.Errorf("a call took too long: %s", rest)
		case "refused", "stopped", "claim", "close", "end", "ready":
		default:
			t.Errorf("the child said %q", line)
		}
	}
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatalf("open after it: %v", err)
	}
	defer shut(t, db)
	audit(t, db)
	for _, id := range acked {
		id, settled := strings.CutPrefix(id, "settle-")
		switch got := stateOf(t, db, holdfast.ID(id)); {
		case got == "nothing", settled && got != "delivered":
			t.Errorf("%s was acknowledged and is %s", id, got)
		}
	}
}

// G: system calls of a real process fail. A commit whose sync or write failed
// is never acknowledged, nor is anything after it until a checkpoint has
// rewritten everything; no call hangs; a disk that goes on failing stops the
// store, which says why; and what was acknowledged is in the file.
//
// It proves the rule of acknowledgement, not the survival of a power cut: the
// kernel that is told to report a failed sync has kept the pages all the same.
// That a real one may drop them is why the rule is what it is.
//
// SF-08; edge cases 60, 61.
func TestSystemCallsFail(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "the process under test would be the same, only slower")
	const syncs = "fsync,fdatasync"
	for _, c := range []struct {
		calls, fault string
		made         bool // the file is there before the child starts: the faults are in its work, not in its schema
		from, to, by int
		wants        string // what some child of the sweep must have said
	}{
		{syncs, "error=EIO:when=%d", false, 1, 10, 1, "refused"},
		{syncs, "error=EIO:when=%d", true, 1, 19, 1, "error m"},
		{"pwrite64", "error=EIO:when=%d", false, 5, 205, 40, "refused"},
		{"pwrite64", "error=EIO:when=%d", true, 1, 121, 10, "error m"},
		{"pread64", "error=EIO:when=%d", false, 1, 40, 6, ""},
		{"pwrite64", "error=ENOSPC:when=%d", true, 5, 125, 20, "end"}, // a log that begins anew has room
		{"pwrite64", "error=ENOSPC:when=%d+", true, 5, 85, 40, "disk full"},
	} {
		name := c.calls + " " + c.fault
		if c.made {
			name += " made"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []string
			for n := c.from; n <= c.to; n += c.by {
				path := filepath.Join(t.TempDir(), "holdfast.db")
				if c.made {
					db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
					if err != nil {
						t.Fatal(err)
					}
					shut(t, db)
				}
				fault := fmt.Sprintf(c.fault, n)
				lines, failed := faulty(t, path, c.calls, fault)
				if len(failed) > 0 { // the count is each thread's own
					all = append(all, lines...)
				}
				noticed := regexp.MustCompile(`(?m)^(refused|error|close) .`).MatchString(strings.Join(lines, "\n"))
				// A read that fails while SQLite merges the log by itself is made again, and nobody is told.
				if len(failed) > 0 && !noticed && strings.Contains(fault, "EIO") && c.calls != "pread64" {
					t.Errorf("%s: nobody was told", fault)
				}
				judgeFaulty(t, path, lines)
				if t.Failed() {
					t.Logf("%s:\n%s\nfailed:\n%s", fault, strings.Join(lines, "\n"), strings.Join(failed, "\n"))
					return
				}
			}
			if !strings.Contains(strings.Join(all, "\n"), c.wants) {
				t.Errorf("no child of the sweep said %q:\n%s", c.wants, strings.Join(all, "\n"))
			}
		})
	}
}

// The disk of a running store becomes bad for ever: nothing more is
// acknowledged, and the store stops and says why; a full one does not stop it.
//
// SF-08; edge cases 60, 61.
func TestSystemCallsFailForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ calls, fault, wants string }{
		"sync":  {"fsync,fdatasync", "error=EIO", "stopped checkpoint after a failed write"},
		"write": {"pwrite64", "error=EIO", "stopped checkpoint after a failed write"},
		"full":  {"pwrite64", "error=ENOSPC", "disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "holdfast.db")
			child := exec.Command(os.Args[0], path)
			child.Env = append(os.Environ(), childEnv+"=faulty")
			in, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = child.Process.Kill() }()
			said := &saying{bufio.NewScanner(out)}
			said.line(t)
			spoil(t, child.Process.Pid, path, c.calls, c.fault)
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			lines := said.all()
			if err := child.Wait(); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(lines, "\n")
			if !strings.Contains(text, c.wants) || strings.Contains(text, "ack ") || strings.Contains(text, "stopped") != (name != "full") {
				t.Errorf("want %q and nothing acknowledged; the child said:\n%s", c.wants, text)
			}
			judgeFaulty(t, path, lines)
		})
	}
}

// spoil makes the system calls of a running process fail from now on.
func spoil(t *testing.T, pid int, path, calls, fault string) {
	t.Helper()
	c := exec.Command(stracePath(t), "-f", "-p", fmt.Sprint(pid), "-o", os.DevNull, "-P", path, "-P", path+"-wal",
		"-e", "trace="+calls, "-e", "inject="+calls+":"+fault)
	complaint, err := c.StderrPipe()
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
	s := bufio.NewScanner(complaint)
	if !s.Scan() || !strings.Contains(s.Text(), "attached") {
		if strings.Contains(s.Text(), "not permitted") {
			t.Skipf("trace a process: %s; it takes the right to", s.Text())
		}
		t.Fatalf("trace a process: %q, %v", s.Text(), s.Err())
	}
	go func() {
		for s.Scan() { // so that it is never held up
		}
	}()
}
