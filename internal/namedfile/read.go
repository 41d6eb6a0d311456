// Package namedfile reads the files that settings name: configurations, certificates, keys,
// credentials, secrets. The author of a setting may not be the person who runs the node, so a name
// may lead to an endless device or to a pipe that nobody writes. Such files are refused, and no
// file is read beyond its limit.
package namedfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// ErrTooLarge means that a file is larger than its limit.
var ErrTooLarge = errors.New("too large")

// Read returns the content of a regular file of at most most bytes. It never waits: it refuses a
// pipe as it opens it. Errors name the file.
func Read(path string, most int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|doNotWait, 0) //nolint:gosec // a setting names it; what is no file is refused below
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")})
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(content) > most {
		return nil, fmt.Errorf("read: %w", &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, most)})
	}
	return content, nil
}

// ReadLine is Read for a file that holds one secret, with or without a line end. An empty file is
// an error.
func ReadLine(path string, most int) ([]byte, error) {
	content, err := Read(path, most)
	if err != nil {
		return nil, err
	}
	line := strings.TrimRight(string(content), "\r\n")
	if line == "" {
		return nil, fmt.Errorf("read: %w", &fs.PathError{Op: "read", Path: path, Err: errors.New("the file is empty")})
	}
	return []byte(line), nil
}
