//go:build linux

package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// OI-12: a disk that has no room for the reserve holds none of it, and says so.
func TestAReserveThatFindsNoRoomIsNotHeld(t *testing.T) {
	t.Parallel()
	const memory = "/dev/shm"
	var s unix.Statfs_t
	if err := unix.Statfs(memory, &s); err != nil || s.Type != unix.TMPFS_MAGIC || s.Blocks == 0 {
		t.Skip("there is no file system in memory, which refuses at once what is larger than itself")
	}
	dir, err := os.MkdirTemp(memory, "holdfast-reserve-") //nolint:usetesting // on that file system
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &reserve{path: filepath.Join(dir, "reserve"), want: 2 * int64(s.Blocks) * s.Bsize}
	if err := r.fill(); err == nil || r.holds() != 0 || r.missing() != r.want {
		t.Errorf("fill: %v; %d bytes are held", err, r.holds())
	}
}

// A system without a call for it writes zeros, and says when the disk takes no more.
func TestZerosThatTheDiskRefusesAreTold(t *testing.T) {
	t.Parallel()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no device that is always full")
	}
	defer f.Close()
	if err := writeZeros(f, 0, 1<<20); err == nil {
		t.Error("written to a full device")
	}
}
