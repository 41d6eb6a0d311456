//go:build !linux && !darwin && !freebsd && !windows

package doctor

import "errors"

func diskFound(string) DiskFound {
	return DiskFound{Err: errors.New("cannot be asked on this system")}
}
