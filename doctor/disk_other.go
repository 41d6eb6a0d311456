//go:build !linux && !darwin && !freebsd && !windows

package doctor

import "errors"

func diskFound(string) DiskFound {
	return DiskFound{Err: errors.New("not known how to ask on this system")}
}
