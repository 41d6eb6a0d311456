//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// An owner is the user of the processes.
type owner struct{ uid, gid int }

// unprivileged returns the user for a server: nil, for the current one, unless that is root.
func unprivileged() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		return &owner{uid, gid}, errors.Join(err1, err2)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// detach makes a command run as the owner, detached from the terminal's signals.
func detach(cmd *exec.Cmd, as *owner) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return nil
}

// roomIn returns the free bytes in a folder's file system, or 0 if there is no such folder.
func roomIn(dir string) uint64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return 0
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize) //nolint:unconvert // FreeBSD counts these blocks with a sign
}

// signal sends a signal by its name, such as STOP.
func signal(pid int, name string) error {
	if err := syscall.Kill(pid, unix.SignalNum("SIG"+name)); err != nil {
		return fmt.Errorf("send %s to process %d: %w", name, pid, err)
	}
	return nil
}
