//go:build unix

package namedfile_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// F1-07: a device without an end filled the memory, a pipe hung the request.
func TestDevicesAndPipesAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := map[string]func(path string) error{
		"Read":        func(path string) error { _, err := namedfile.Read(path, 1<<20); return err },
		"ReadLine":    func(path string) error { _, err := namedfile.ReadLine(path, 1<<20); return err },
		"Authorities": func(path string) error { _, err := namedfile.Authorities(path); return err },
		"KeyPair":     func(path string) error { _, err := namedfile.KeyPair(path, path); return err },
	}
	for name, one := range read {
		for _, path := range []string{pipe, "/dev/zero"} {
			if err := one(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s of %s: got %v, want that it is no regular file", name, path, err)
			}
		}
	}
}
