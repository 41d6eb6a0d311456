//go:build !linux

package main

import "errors"

func syncDisks() {}

func onDisk(string) error { return nil }

func memory() (now, peak float64, err error) {
	return 0, 0, errors.New("memory is read on Linux only")
}
