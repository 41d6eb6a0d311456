//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

var errNotHere = errors.New("a private PostgreSQL is started on Unix only: it takes signals and a watchdog of this package")

type owner struct{ uid, gid int }

func unprivileged() (*owner, error) { return nil, errNotHere }

func detach(*exec.Cmd, *owner) error { return errNotHere }

func roomIn(string) uint64 { return 0 }

func signal(int, string) error { return errNotHere }
