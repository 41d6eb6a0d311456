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

// An owner is a user whom the processes run as.
type owner struct{ uid, gid int }

// unprivileged is as whom a server runs: nil, as oneself, but for root.
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

// detach lets a command run as the owner, and out of reach of the terminal's signals.
func detach(cmd *exec.Cmd, as *owner) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return nil
}

// roomIn is how many bytes are free in a folder's file system; 0 where there is no such folder.
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
