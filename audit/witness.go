package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	return EachNote(file, yield)
}

// EachNote calls yield for each note of a text that has one after the other. What was cut off is left out.
func EachNote(from io.Reader, yield func(note string) error) error {
	lines := bufio.NewScanner(from)
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

// AddNote returns what a witness that replaces its text as a whole has to keep when a note comes: of each log, and each key
// that begins a note of it, the largest, and every note that hands over to another key. Of a text that is no checkpoint
// nothing is left. ErrCheckpoint: the note is none.
func AddNote(text, note string) (string, error) {
	if _, err := ParseCheckpoint(note); err != nil {
		return "", err
	}
	type place struct {
		origin string
		key    Public
		hands  int64 // size of one that hands over; 0: it does not
	}
	var order []place
	best, sizes := map[place]string{}, map[place]int64{}
	add := func(note string) error {
		c, err := ParseCheckpoint(note)
		if err != nil {
			return nil //nolint:nilerr // somebody else's line
		}
		p := place{origin: c.Origin, key: c.Keys[0]}
		if len(c.Keys) > 1 {
			p.hands = c.Size
		}
		if _, known := best[p]; !known {
			order = append(order, p)
		} else if sizes[p] >= c.Size {
			return nil
		}
		best[p], sizes[p] = note, c.Size
		return nil
	}
	if err := EachNote(strings.NewReader(text), add); err != nil {
		return "", err
	}
	if err := add(note); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range order {
		b.WriteString(best[p])
	}
	return b.String(), nil
}
