//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C for the demo, which stops the nodes after it has counted.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
