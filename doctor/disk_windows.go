package doctor

import (
	"fmt"

	"golang.org/x/sys/windows"
)

func diskFound(dir string) DiskFound {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return DiskFound{Err: fmt.Errorf("look at the file system: %w", err)}
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, nil); err != nil {
		return DiskFound{Err: fmt.Errorf("look at the file system: %w", err)}
	}
	return DiskFound{Free: int64(free), Total: int64(total)}
}
