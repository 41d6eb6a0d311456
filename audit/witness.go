package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Witness keeps checkpoints away from the database.
type Witness interface {
	// Keep returns when the checkpoint is kept for good.
	Keep(ctx context.Context, note string) error
	Notes
}

// Notes are checkpoints that somebody keeps away from the database.
type Notes interface {
	// Each calls yield for each checkpoint that was kept.
	Each(yield func(note string) error) error
}

// File is a witness: the path of a file to which checkpoints are appended. Put it on another volume.
type File string

// Keep implements Witness.
func (f File) Keep(_ context.Context, note string) error {
	file, err := os.OpenFile(string(f), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640) //nolint:gosec // checkpoints are for everybody to see
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	_, err = file.WriteString(note)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}

// signature begins the lines at the end of a note.
const signature = "\u2014 "

// Each implements Witness. Without a file there is no checkpoint.
func (f File) Each(yield func(note string) error) error {
	file, err := os.Open(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(file)
	var b strings.Builder
	signed := false
	for lines.Scan() {
		line := lines.Text()
		if is := strings.HasPrefix(line, signature); signed && !is {
			if err := yield(b.String()); err != nil {
				return err
			}
			b.Reset()
			signed = false
		} else if is {
			signed = true
		}
		b.WriteString(line + "\n")
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if signed {
		return yield(b.String())
	}
	return nil // nothing, or one that was cut off
}
