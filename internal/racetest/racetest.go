// Package racetest keeps tests whole: one that the race detector would make too
// long, or in which it has nothing to find, is not made smaller, but left out, and
// scripts/test runs it in a step of its own, without the detector.
package racetest

import (
	"runtime/debug"
	"slices"
	"testing"
)

// On says whether the race detector watches this process.
func On() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Without skips a test under the race detector, for a reason. By the words of the
// skip scripts/test finds what it has to run again.
func Without(t testing.TB, why string) {
	t.Helper()
	if On() {
		t.Skip("runs without the race detector: " + why)
	}
}
