package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// imageSize is that of a disk of the power-cut tests. Its file has holes.
const imageSize = 320 << 20

// powerDisk is a file system on a loop device, over a file that holds what
// has reached the device: what the kernel still has in its page cache only is
// not in it.
type powerDisk struct {
	image, dir string
	options    string // of mount
	mounted    bool
}

// newPowerDisk makes an empty file system. Without the rights to mount one it
// skips the test.
func newPowerDisk(t testing.TB, mkfs string) *powerDisk {
	t.Helper()
	needPower(t, mkfs)
	image := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, imageSize); err != nil {
		t.Fatal(err)
	}
	if out, err := command(append(strings.Fields(mkfs), image)...); err != nil {
		t.Fatalf("make a file system: %v: %s", err, out)
	}
	d := &powerDisk{image: image, dir: t.TempDir(), options: "loop"}
	if strings.Contains(mkfs, "xfs") {
		d.options = "loop,nouuid" // or it refuses a copy beside the original
	}
	d.mount(t)
	return d
}

func needPower(t testing.TB, mkfs string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("power cuts are not tested: to mount a loop device, run as root")
	}
	if _, err := exec.LookPath(strings.Fields(mkfs)[0]); err != nil {
		t.Skipf("power cuts are not tested: %v; on Debian: apt-get install e2fsprogs", err)
	}
	if out, err := command("losetup", "--find"); err != nil {
		t.Skipf("power cuts are not tested: no loop device: %v: %s", err, out)
	}
}

func command(args ...string) (string, error) {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

func (d *powerDisk) mount(t testing.TB) {
	t.Helper()
	if out, err := command("mount", "-o", d.options, d.image, d.dir); err != nil {
		if refusedToMount(out) {
			t.Skipf("power cuts are not tested: %s", out)
		}
		t.Fatalf("mount: %v: %s", err, out)
	}
	d.mounted = true
	t.Cleanup(func() { d.unmount(t) })
}

// refusedToMount says whether this place does not let root mount anything, as
// in most containers.
func refusedToMount(out string) bool {
	return slices.ContainsFunc([]string{"failed to setup loop device", "permission denied", "Operation not permitted", "must be superuser"}, func(text string) bool {
		return strings.Contains(out, text)
	})
}

// remount is what a machine does when it starts again: it has the file system
// checked if that cannot be mounted.
func (d *powerDisk) remount(t testing.TB) {
	t.Helper()
	d.unmount(t)
	out, err := command("mount", "-o", d.options, d.image, d.dir)
	if err == nil {
		d.mounted = true
		return
	}
	t.Logf("the file system is checked, since it cannot be mounted: %s", out)
	out, err = command("e2fsck", "-f", "-y", d.image)
	if e, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || e.ExitCode() != 1) { // 1: mended
		t.Fatalf("check the file system: %v: %s", err, out)
	}
	d.mount(t)
}

// unmount gives the loop device back, too.
func (d *powerDisk) unmount(t testing.TB) {
	t.Helper()
	if !d.mounted {
		return
	}
	d.mounted = false
	if out, err := command("umount", d.dir); err != nil {
		t.Errorf("unmount: %v: %s", err, out)
		_, _ = command("umount", "--lazy", d.dir)
	}
}

// cut ends the file system at once, in the middle of what it is writing: what
// is in the page cache only is gone, its journal ends where it is, and every
// later call fails.
func (d *powerDisk) cut(t testing.TB) {
	t.Helper()
	const shutdown, withoutFlush = 0x8004587d, uint32(2) // FS_IOC_SHUTDOWN, FS_SHUTDOWN_FLAGS_NOLOGFLUSH
	f, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdown, int(withoutFlush)); err != nil {
		t.Fatalf("shut the file system down: %v", err)
	}
}

// copyDisk copies what has reached the device, as it was at one moment: it
// begins again when the kernel has written meanwhile.
func (d *powerDisk) copyDisk(t testing.TB) *powerDisk {
	t.Helper()
	c := &powerDisk{image: filepath.Join(t.TempDir(), "copy.img"), dir: t.TempDir(), options: d.options}
	waittest.Until(t, "the kernel has written nothing during a copy", func() bool {
		before := d.writes(t)
		if err := copySparse(c.image, d.image); err != nil {
			t.Fatal(err)
		}
		return d.writes(t) == before
	})
	c.mount(t)
	return c
}

// drop unmounts a copy and deletes it.
func (d *powerDisk) drop(t testing.TB) {
	t.Helper()
	d.unmount(t)
	if err := os.Remove(d.image); err != nil {
		t.Error(err)
	}
}

// writes counts what the device has written; the same count again means that
// nothing was written and nothing was under way.
func (d *powerDisk) writes(t testing.TB) string {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(d.dir, &s); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(s.Dev), unix.Minor(s.Dev))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b))
	if len(f) < 9 {
		t.Fatalf("%s has %q", path, b)
	}
	if f[8] != "0" {
		return fmt.Sprint("under way at ", time.Now())
	}
	return f[4] + " writes, sectors " + f[6]
}

// copySparse copies a file without its holes, over the one that stands there.
func copySparse(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	s, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.Truncate(s.Size()); err != nil {
		return err
	}
	for at := int64(0); ; {
		data, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) {
			return nil // nothing but a hole is left
		}
		if err != nil {
			return err
		}
		if at, err = in.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, data), io.NewSectionReader(in, data, at-data)); err != nil {
			return err
		}
	}
}
