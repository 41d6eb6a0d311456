package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// syncDisks writes back what earlier cells left in memory.
func syncDisks() { syscall.Sync() }

// onDisk refuses a directory in memory, where a sync costs nothing.
func onDisk(dir string) error {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if kind := uint32(s.Type); kind == tmpfs || kind == ramfs {
		return fmt.Errorf("%s is in memory: name a directory on disk with -dir", dir)
	}
	return nil
}

// memory reports what this process holds now and held at most, in MB.
func memory() (now, peak float64, err error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, 0, fmt.Errorf("read memory: %w", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		kb, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
		switch name {
		case "VmRSS":
			now = kb / 1024
		case "VmHWM":
			peak = kb / 1024
		}
	}
	return now, peak, nil
}
