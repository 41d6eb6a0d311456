package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-mq/holdfast/doctor"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// stopped is the data folder of a node that has run.
func stopped(t *testing.T) string {
	t.Helper()
	c := serving(t, "")
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	return c.data
}

func TestDoctorOfAFullDiskThatIsReadOnly(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one command after the other looks at a node that has stopped")
	from, disk := stopped(t), filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o750); err != nil {
		t.Fatal(err)
	}
	err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=20m,mode=0750")
	if errors.Is(err, unix.EPERM) {
		t.Skip("to mount a small disk takes root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	data := filepath.Join(disk, "data")
	if err := os.CopyFS(data, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(filler, zeros{}, 40<<20); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("got %v, want a full disk", err)
	}
	filler.Close()
	args := []string{"--data", data, "--listen", freeAddress(t)}
	checks, _, code, _ := examined(t, args...)
	wantChecks(t, checks, map[string]doctor.Status{
		"space": doctor.Failing, "file system": doctor.Warning, "sync speed": doctor.Skipped, "integrity": doctor.OK, "ownership": doctor.OK,
	})
	if code != exitFailing {
		t.Errorf("got exit code %d, want %d", code, exitFailing)
	}
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	checks, _, code, _ = examined(t, args...)
	wantChecks(t, checks, map[string]doctor.Status{"data folder": doctor.Failing, "integrity": doctor.OK, "ownership": doctor.OK})
	if code != exitFailing || !strings.Contains(checks["data folder"].Detail, "read-only") {
		t.Errorf("got exit code %d and %q, want %d and a read-only disk", code, checks["data folder"].Detail, exitFailing)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Another user learns what may be known, and how to look closer.
func TestDoctorOfAnotherUsersFolder(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one command after the other looks at a node that has stopped")
	if os.Getuid() != 0 {
		t.Skip("to run as another user takes root")
	}
	data := stopped(t)
	open := t.TempDir()
	binary := filepath.Join(open, "holdfast")
	path, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Chmod(filepath.Dir(open), 0o755), os.Chmod(open, 0o755), os.WriteFile(binary, text, 0o755), os.CopyFS(filepath.Join(open, "data"), os.DirFS(data))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		folder, file os.FileMode
		want         map[string]doctor.Status
	}{
		"may not enter": {0o700, 0o600, map[string]doctor.Status{
			"data folder": doctor.Warning, "ownership": doctor.Warning, "database": doctor.Warning,
		}},
		"may list and not read": {0o755, 0o600, map[string]doctor.Status{
			"data folder": doctor.Warning, "ownership": doctor.Warning, "database": doctor.Warning, "sync speed": doctor.Skipped,
		}},
		"may read": {0o755, 0o644, map[string]doctor.Status{
			"data folder": doctor.Warning, "ownership": doctor.OK, "database": doctor.OK, "integrity": doctor.OK,
		}},
	} {
		folder := filepath.Join(open, "data")
		for _, f := range files(t, folder) {
			if err := os.Chmod(filepath.Join(folder, f), c.file); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(folder, c.folder); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "doctor", "--json", "--data", folder, "--listen", freeAddress(t))
		cmd.Dir = open
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.Output()
		var r doctor.Report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		checks := map[string]doctor.Check{}
		for _, c := range r.Checks {
			checks[c.Name] = c
		}
		t.Log(name)
		wantChecks(t, checks, c.want)
		if got := cmd.ProcessState.ExitCode(); got != exitWarnings {
			t.Errorf("%s: got exit code %d, want %d", name, got, exitWarnings)
		}
	}
}
