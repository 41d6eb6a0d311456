package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Pause freezes all processes of the server, like a stalled machine: connections stay open and nothing
// answers. Resume continues them.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != nil {
		return errors.New("pause the server: it is paused")
	}
	pids, err := s.freeze()
	if err != nil {
		return err
	}
	s.paused = pids
	// The watchdog may have to wake them, too.
	_, err = s.keep.write("paused", numbers(pids))
	return err
}

// Resume ends a pause.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == nil {
		return errors.New("resume the server: it is not paused")
	}
	var errs error
	for _, pid := range s.paused {
		// A child that was about to end when it was listed may be gone.
		if err := signal(pid, "CONT"); !errors.Is(err, syscall.ESRCH) {
			errs = errors.Join(errs, err)
		}
	}
	s.paused = nil
	return errors.Join(errs, os.Remove(filepath.Join(s.keep.dir, "paused")))
}

// Kill kills all processes of the server at once, with kill -9.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := s.paused
	if pids == nil {
		var err error
		if pids, err = s.freeze(); err != nil {
			return err
		}
	}
	for _, pid := range pids {
		_ = signal(pid, "KILL") // a child may have ended by itself
	}
	if s.paused != nil {
		_ = os.Remove(filepath.Join(s.keep.dir, "paused"))
	}
	s.paused = nil
	if err := s.run.wait(); !s.run.ended() {
		return err
	}
	return gone(pids)
}

// gone waits until the processes hold nothing: the next server refuses to start while a child of the
// last one has its memory. Unreaped entries of the process table do not matter.
func gone(pids []int) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		table, err := processes()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pids, func(pid int) bool {
			entry, ok := table[pid]
			return ok && !strings.HasPrefix(entry.state, "Z")
		}) {
			return nil
		}
	}
	return fmt.Errorf("kill the server: some of %v still run after %v", pids, patience)
}

// freeze stops the server's processes and returns their numbers, the parent's first: once it is
// stopped, it starts no others.
func (s *Server) freeze() ([]int, error) {
	if s.run.ended() {
		return nil, errors.New("the server does not run")
	}
	if err := signal(s.run.pid, "STOP"); err != nil {
		return nil, err
	}
	children, err := childrenOf(s.run.pid)
	if err != nil {
		return nil, errors.Join(err, signal(s.run.pid, "CONT"))
	}
	for _, pid := range children {
		_ = signal(pid, "STOP") // it may have ended since
	}
	return append([]int{s.run.pid}, children...), nil
}

// childrenOf returns the children of a server: each is a process group of its own, so a signal must be
// sent to each.
func childrenOf(parent int) ([]int, error) {
	table, err := processes()
	var pids []int
	for pid, entry := range table {
		if entry.parent == parent {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

type entry struct {
	parent int
	state  string
}

// processes runs ps, which each Unix has.
func processes() (map[int]entry, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes with ps (on Debian: apt-get install procps): %w", err)
	}
	table := map[int]entry{}
	for line := range strings.Lines(string(out)) {
		var pid int
		var e entry
		if _, err := fmt.Sscan(line, &pid, &e.parent, &e.state); err != nil {
			return nil, fmt.Errorf("read %q of ps: %w", line, err)
		}
		table[pid] = e
	}
	return table, nil
}
