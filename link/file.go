package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// Identity is the content of a site's credential file: what the site proves its identity with.
type Identity struct {
	Site       string `json:"site"`
	Central    string `json:"central"` // where the site enrolled; for people
	Credential string `json:"credential"`
}

// ReadIdentity reads a credential file. It refuses a file that others may read: they may know the
// credential. The error is fs.ErrNotExist if the site is not enrolled.
func ReadIdentity(path string) (Identity, error) {
	var id Identity
	info, err := os.Stat(path)
	if err != nil {
		return id, fmt.Errorf("read credential: %w; enroll the site first: holdfast enroll", err)
	}
	if loose := info.Mode().Perm() & 0o077; loose != 0 && runtime.GOOS != "windows" {
		return id, fmt.Errorf("read credential: other users may read %s (mode %04o): chmod 600 it, and enroll again if others could read it for long", path, info.Mode().Perm())
	}
	text, err := namedfile.Read(path, ownFile)
	if err != nil {
		return id, fmt.Errorf("read credential: %w", err)
	}
	if err := json.Unmarshal(text, &id); err != nil || CheckName(id.Site) != nil || id.Credential == "" {
		return Identity{}, fmt.Errorf("read credential: %s was not written by holdfast enroll; enroll again", path)
	}
	return id, nil
}

// identityFile is a credential file that is checked at each request.
type identityFile struct {
	path string
	mu   sync.Mutex
	info fs.FileInfo // of the file as last read; nil: nothing is cached
	id   Identity
}

// settledFor is how old a file must be before its modification time tells it from a replacement:
// some file systems have clocks of a second or more.
const settledFor = 3 * time.Second

// read reads the file if it has changed, so that a rotated credential takes effect at once.
func (f *identityFile) read() (Identity, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if was := f.info; err == nil && was != nil && os.SameFile(info, was) && info.Mode() == was.Mode() && info.Size() == was.Size() && info.ModTime().Equal(was.ModTime()) {
		return f.id, nil
	}
	f.info = nil
	id, fault := ReadIdentity(f.path)
	if err == nil && fault == nil && time.Since(info.ModTime()) > settledFor {
		f.info, f.id = info, id
	}
	return id, fault
}

// ownFile limits the bytes read of a file that this package writes; such a file has a few hundred.
const ownFile = 64 << 10

// writeFile replaces a file atomically, with mode 0600: after a crash the file holds either the old
// content or the new.
func writeFile(path string, v any) (err error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // its mode is 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	namedfile.SyncFolder(filepath.Dir(path)) // a rename that is lost is made again
	return nil
}

// isAbsent reports whether err means that the file does not exist.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
