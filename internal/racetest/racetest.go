// Package racetest keeps tests at full size. A test that would take too long under the race
// detector, or in which there is nothing to detect, is not made smaller but skipped. scripts/test
// then runs it in a separate step without the detector.
package racetest

import (
	"runtime/debug"
	"slices"
	"testing"
)

// On reports whether the race detector is enabled.
func On() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Without skips a test under the race detector, and gives the reason. By the text of the skip
// scripts/test finds the tests to run again.
func Without(t testing.TB, why string) {
	t.Helper()
	if On() {
		t.Skip("runs without the race detector: " + why)
	}
}
