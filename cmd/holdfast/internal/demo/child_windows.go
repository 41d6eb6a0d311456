package demo

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C for the demo: it stops the nodes when it has counted.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
