//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endTogether makes a command end together with all processes that it started.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
