package namedfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

func TestAFileWithinItsBoundIsRead(t *testing.T) {
	t.Parallel()
	path := write(t, "12345678\r\n")
	got, err := namedfile.Read(path, 10)
	if err != nil || string(got) != "12345678\r\n" {
		t.Errorf("got %q, %v, want all of it", got, err)
	}
	line, err := namedfile.ReadLine(path, 10)
	if err != nil || string(line) != "12345678" {
		t.Errorf("got %q, %v, want the line without its end", line, err)
	}
}

func TestWhatIsTooLargeEmptyOrAbsentIsRefusedByName(t *testing.T) {
	t.Parallel()
	large, empty := write(t, "12345678901"), write(t, "\n")
	if _, err := namedfile.Read(large, 10); !errors.Is(err, namedfile.ErrTooLarge) || !strings.Contains(err.Error(), large) {
		t.Errorf("got %v, want ErrTooLarge with the path", err)
	}
	if _, err := namedfile.ReadLine(empty, 10); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("got %v, want that the file is empty", err)
	}
	if _, err := namedfile.Read(filepath.Join(t.TempDir(), "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	if _, err := namedfile.Read(t.TempDir(), 10); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v for a folder, want that it is no regular file", err)
	}
}

func TestAFileWithoutCertificatesIsSaidSo(t *testing.T) {
	t.Parallel()
	path := write(t, "no certificate")
	if _, err := namedfile.Authorities(path); !errors.Is(err, namedfile.ErrNoCertificate) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want ErrNoCertificate with the path", err)
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
